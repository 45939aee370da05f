"""Each coordinator that is broken on purpose is detected within a few seeds of its scene."""

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.broker.runtime.coordinators import hosted_shard, runtime
from ottla.broker.runtime.coordinators.hosted_shard import HostedShard
from ottla.broker.runtime.coordinators.transaction_endings import Ending
from ottla.coordinator.contract import Effects, NoFastReplay
from ottla.coordinator.groups.classic.group import ClassicGroup
from ottla.coordinator.groups.consumer import reconciliation
from ottla.coordinator.groups.offsets import offsets
from ottla.coordinator.groups.offsets.offsets import Offsets
from ottla.coordinator.groups.shard import GroupShard
from ottla.coordinator.transactions import init_producer_id
from ottla.coordinator.transactions.shard import Clockwork, TransactionShard
from ottla.coordinator.transactions.transaction import EPOCH_MAX, Transaction
from ottla.sim.plan import SCENES, scene_of
from ottla.sim.run import RunFailed, run_seed

SEEDS_MAX = 60


def answers_before_commits(patch: pytest.MonkeyPatch) -> None:
    submit = HostedShard.submit

    def submit_and_answer(hosted: HostedShard[Any], effects: Effects, verified_by: Any = None) -> None:
        answers, effects.answers = effects.answers, []
        submit(hosted, effects, verified_by)
        for reply, response in answers:
            hosted_shard._deliver(reply, response)

    patch.setattr(HostedShard, "submit", submit_and_answer)


def loads_miss_the_last_record(patch: pytest.MonkeyPatch) -> None:
    load_shard = runtime.load_shard

    async def load_most(shard: Any, *where: Any) -> int:
        replayed: list[Callable[[], None]] = []
        listener: Any = SimpleNamespace(
            replay=lambda *what: replayed.append(partial(shard.replay, *what)),
            replay_end=lambda *what: replayed.append(partial(shard.replay_end, *what)),
            fast_replay=NoFastReplay,
        )
        count = await load_shard(listener, *where)
        for again in replayed[:-1]:
            again()
        return count

    patch.setattr(runtime, "load_shard", load_most)


def any_generation_may_commit(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ClassicGroup, "check_commit", lambda group, *who: None)


def partitions_are_given_before_they_are_given_up(patch: pytest.MonkeyPatch) -> None:
    following = reconciliation._next

    def without_looking(group: Any, *what: Any) -> Any:
        empty: Any = SimpleNamespace(holder_epochs={})
        return following(empty, *what)

    patch.setattr(reconciliation, "_next", without_looking)


def ends_of_transactions_are_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(GroupShard, "replay_end", lambda shard, producer, is_commit: None)


def aborted_offsets_count(patch: pytest.MonkeyPatch) -> None:
    replay_end = Offsets.replay_end
    patch.setattr(Offsets, "replay_end", lambda offsets, producer, is_commit: replay_end(offsets, producer, True))


def markers_are_not_sent_after_a_load(patch: pytest.MonkeyPatch) -> None:
    loaded = TransactionShard.loaded

    def loaded_without_orders(shard: TransactionShard, now: Any) -> Effects:
        effects = loaded(shard, now)
        effects.orders = []
        return effects

    patch.setattr(TransactionShard, "loaded", loaded_without_orders)


def aborts_are_marked_as_commits(patch: pytest.MonkeyPatch) -> None:
    begin = Ending.__init__

    def begin_commit(ending: Ending, hosted: Any, order: Any) -> None:
        begin(ending, hosted, order._replace(is_commit=True))

    patch.setattr(Ending, "__init__", begin_commit)


def markers_miss_a_partition(patch: pytest.MonkeyPatch) -> None:
    begin = Ending.__init__

    def begin_short(ending: Ending, hosted: Any, order: Any) -> None:
        begin(ending, hosted, order._replace(partitions=sorted(order.partitions)[1:]))

    patch.setattr(Ending, "__init__", begin_short)


def zombies_are_not_fenced(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(init_producer_id, "_next_epoch", lambda table, known, expected: (known.epoch, known.epoch))


def transactions_never_time_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Clockwork, "watch", lambda clockwork, now: None)


def deleted_offsets_stay(patch: pytest.MonkeyPatch) -> None:
    delete = offsets.delete_offsets

    def answer_only(*what: Any) -> Effects:
        effects = delete(*what)
        effects.records = []
        return effects

    patch.setattr(offsets, "delete_offsets", answer_only)


def the_last_epoch_is_handed_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Transaction, "is_epoch_exhausted", property(lambda known: known.epoch >= EPOCH_MAX))


MUTATIONS = {
    answers_before_commits: ("groups", r"has no offset|went back|was in (generation|epoch)|were given|was answered with"),
    loads_miss_the_last_record: ("groups", r"has no offset|went back|was in (generation|epoch)|were given|while .* has it"),
    any_generation_may_commit: ("groups", r"committed for (group \S+ in generation|\S+ of group \S+ in epoch) \d+, after"),
    partitions_are_given_before_they_are_given_up: ("groups", r"gave \S+ to \S+, while \S+ has it"),
    deleted_offsets_stay: ("groups", r"went back to \d+ for \S+: it was deleted"),
    ends_of_transactions_are_ignored: ("transactions", r"has no offset|has been refused|went back"),
    aborted_offsets_count: ("transactions", r"which was never committed|nothing was made of|went back"),
    markers_are_not_sent_after_a_load: ("transactions", r"has been refused|some transaction has not ended"),
    aborts_are_marked_as_commits: ("transactions", r"whose commit was never requested|which was never committed"),
    markers_miss_a_partition: (
        "transactions",
        r"some transaction has not ended|has been refused|another time|went back|commit was never|records are gone",
    ),
    zombies_are_not_fenced: (
        "transactions",
        r"was handed producer \d+ in|was done, after producer|was acknowledged there",
    ),
    the_last_epoch_is_handed_out: ("transactions", r"which is for fencing only"),
    transactions_never_time_out: ("transactions", r"some transaction has not ended"),
}


def run_seeds(scene: str, count: int) -> None:
    for seed in [seed for seed in range(count * len(SCENES)) if scene_of(seed) == scene]:
        run_seed(seed)


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_a_broken_coordinator_is_detected(
    mutation: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    scene, found = MUTATIONS[mutation]
    mutation(monkeypatch)
    with pytest.raises(RunFailed, match=found):
        run_seeds(scene, SEEDS_MAX)
