"""The transaction coordinator under Hypothesis, with partitions, late batches, zombies, lost answers and restarts.

The invariants are in tests/model/transaction_model.py. Producers of both transaction versions share the ids.
"""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.model.transaction_model import PARTITIONS, Instance, World
from tests.support.cases.examples import examples
from tests.support.shards.transaction_shard import NEW, OLD

from ottla.ids import TopicPartition

IDS = st.sampled_from(["a", "a", "b"])
CLIENTS = st.sampled_from([OLD, NEW])
ANY = st.integers(0, 10_000)
PLACES = st.lists(st.sampled_from(PARTITIONS), min_size=1, max_size=4)
MOSTLY = st.sampled_from([True, True, True, False])


class TransactionMachine(RuleBasedStateMachine):
    """One coordinator, two transactional ids, and three partitions, one of them for offsets."""

    world: World

    @initialize(version=st.sampled_from([0, 1, 2, 2]))
    def begin(self, version: int) -> None:
        self.world = World(version)

    def _alive(self) -> list[Instance]:
        return [each for each in self.world.instances if not each.is_over]

    def _pick(self, index: int) -> Instance | None:
        alive = self._alive()
        return alive[index % len(alive)] if alive else None

    @rule(name=IDS, client=CLIENTS, is_welcome=ANY, is_two_phase=st.booleans())
    def a_producer_comes(self, name: str, client: int, is_welcome: int, is_two_phase: bool) -> None:
        # Each fences the one before: likely if there is none, unlikely if there is.
        if is_welcome % 4 == 0 or all(each.name != name for each in self._alive()):
            self.world.new_instance(name, client, is_two_phase)

    @rule(name=IDS, is_two_phase=st.booleans(), times=st.integers(1, 2))
    def what_is_prepared_is_kept(self, name: str, is_two_phase: bool, times: int) -> None:
        for _ in range(times):
            self.world.keep(name, is_two_phase)

    @rule(name=IDS, client=CLIENTS, place=st.sampled_from(PARTITIONS))
    def a_producer_takes_over(self, name: str, client: int, place: TopicPartition) -> None:
        """The previous producer does not know yet that it is fenced, and continues."""
        for _ in range(2):
            self.world.new_instance(name, client)
            self.world.send_all_markers()
        self.world.send(self.world.instances[-1], place)

    @rule(index=ANY, names=PLACES, commit=MOSTLY, is_answered=MOSTLY)
    def a_whole_transaction(self, index: int, names: list[TopicPartition], commit: bool, is_answered: bool) -> None:
        sender = self._pick(index)
        if sender is None or sender.asked_to is not None or sender.has_failed or sender.is_prepared:
            return
        for name in names:
            self.world.send(sender, name)
        for batch in list(self.world.batches):
            if batch.sender is sender:
                self.world.deliver(batch, True)
        self.world.end(sender, commit, is_answered)

    @rule(index=ANY, names=PLACES, times=st.integers(1, 2), is_two_phase=st.booleans(), commit=MOSTLY, is_answered=MOSTLY)
    def a_prepared_transaction_is_recovered(
        self, index: int, names: list[TopicPartition], times: int, is_two_phase: bool, commit: bool, is_answered: bool
    ) -> None:
        """A producer has flushed its transaction; another takes it over and ends it. The first one wakes up in between."""
        sender = self._pick(index)
        if sender is None or sender.asked_to is not None or sender.has_failed or sender.is_prepared:
            return
        for name in names:
            self.world.send(sender, name)
        for batch in list(self.world.batches):
            if batch.sender is sender:
                self.world.deliver(batch, True)
        for _ in range(times):
            self.world.keep(sender.name, is_two_phase)
        owner = self.world.instances[-1]
        self.world.end(sender, commit, is_answered)
        if owner.kept is None:
            return
        self.world.send(owner, names[0])
        self.world.end(owner, commit, is_answered)
        if is_answered:
            self.world.send_all_markers()
            self.world.send(owner, names[-1])

    @precondition(lambda self: self.world.ended)
    @rule(index=ANY)
    def an_end_arrives_again(self, index: int) -> None:
        ended = self.world.ended
        self.world.repeat_end(*ended[-1 - index % min(3, len(ended))])

    @precondition(lambda self: self.world.sending)
    @rule()
    def all_markers_are_written(self) -> None:
        self.world.send_all_markers()

    @rule(index=ANY, name=st.sampled_from(PARTITIONS))
    def a_batch_is_sent(self, index: int, name: TopicPartition) -> None:
        sender = self._pick(index)
        if sender is not None and sender.asked_to is None and not sender.has_failed and not sender.is_prepared:
            self.world.send(sender, name)

    @precondition(lambda self: self.world.batches)
    @rule(index=ANY, is_acknowledged=MOSTLY)
    def a_batch_arrives(self, index: int, is_acknowledged: bool) -> None:
        batches = self.world.batches
        self.world.deliver(batches[index % len(batches)], is_acknowledged)

    @precondition(lambda self: self.world.batches)
    @rule()
    def all_batches_arrive(self) -> None:
        for batch in list(self.world.batches):
            self.world.deliver(batch, True)

    @rule(index=ANY, commit=MOSTLY, is_answered=MOSTLY)
    def a_transaction_ends(self, index: int, commit: bool, is_answered: bool) -> None:
        sender = self._pick(index)
        if sender is not None:
            self.world.end(sender, commit, is_answered)

    @rule(index=ANY)
    def a_producer_begins_again(self, index: int) -> None:
        sender = self._pick(index)
        if sender is not None:
            self.world.initialise_again(sender)

    @rule(index=ANY, left=st.integers(0, 3))
    def epochs_are_used_up(self, index: int, left: int) -> None:
        sender = self._pick(index)
        if sender is not None and sender.asked_to is None and not sender.in_flight and not (sender.added or sender.kept):
            self.world.use_up_epochs(sender, left)

    @precondition(lambda self: self.world.sending)
    @rule(index=ANY, place=ANY)
    def a_marker_is_written(self, index: int, place: int) -> None:
        order = list(self.world.sending)[index % len(self.world.sending)]
        left = self.world.sending[order]
        if left:
            self.world.send_marker(order, left[place % len(left)])
        else:
            self.world.finish(order)

    @rule()
    def the_coordinator_restarts(self) -> None:
        self.world.restart_coordinator()

    @rule(elapsed_ms=st.sampled_from([1000, 15_000, 45_000]))
    def time_passes(self, elapsed_ms: int) -> None:
        self.world.pass_time(elapsed_ms)

    @invariant()
    def nothing_is_visible_that_was_not_committed(self) -> None:
        if hasattr(self, "world"):
            self.world.check()

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.wind_up()


TestTransactions = TransactionMachine.TestCase
TestTransactions.settings = settings(
    max_examples=examples(200), stateful_step_count=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
