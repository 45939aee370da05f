"""Checkers of partitions: states, ISRs, committed records, equal replicas, coordinators."""

from collections.abc import Mapping
from types import MappingProxyType

import pytest
from tests.support.nodes.watched_partitions import KEY, TOPIC_ID, entry, held, image, state

from ottla.coordinator.placement import partition_for
from ottla.errors.codes import ErrorCode
from ottla.ids import OFFSETS_TOPIC, TopicPartition
from ottla.metadata.image.image import MetadataImage, Provenance
from ottla.metadata.image.topics import NO_LEADER, PartitionState, Topic, TopicsImage
from ottla.sim.checkers.checker import Batch, Place, SeenRecord, TopicPlan, Violation
from ottla.sim.cluster.checkers.checker import Answer, Entry, HeldPartition, PartitionKey
from ottla.sim.cluster.checkers.partitions import (
    ANY_EPOCH,
    CommittedRecords,
    Coordinators,
    EligibleIsr,
    EqualReplicas,
    PartitionStates,
    Replica,
    SteadyIsr,
)
from ottla.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
    BrokerState,
)

BOTH = [entry(0), entry(1)]
PLACE = Place(TopicPlan("t", TOPIC_ID, 1), 0)


class Nodes:
    """What each node holds."""

    def __init__(self) -> None:
        self.by_id: dict[int, HeldPartition] = {1: held(BOTH, 2), 2: held(BOTH, 1, is_leading=False)}
        self.checker = CommittedRecords(self.held_by)
        self.image = image(state(), {1: 10, 2: 20, 3: 30})
        self.checker.image_committed(MetadataImage(), self.image)

    def held_by(self, number: int, key: PartitionKey) -> HeldPartition | None:
        return self.by_id.get(number) if key == KEY else None

    def leader_moves(self) -> None:
        self.checker.partition_held("n1", self.by_id[1])

    def commit(self, changed: MetadataImage) -> None:
        before, self.image = self.image, changed
        self.checker.image_committed(before, changed)


def test_what_all_in_sync_replicas_have_is_committed() -> None:
    nodes = Nodes()
    nodes.leader_moves()
    nodes.checker.acknowledged(Batch("p", PLACE, 0, [b"v", b"w"], [None, None], True, -1), 0)
    nodes.checker.seen(PLACE, [SeenRecord(1, b"w")])
    assert nodes.checker.judged > 2


def test_a_replica_in_sync_that_is_behind() -> None:
    nodes = Nodes()
    nodes.by_id[2] = held(BOTH[:1], is_leading=False)
    with pytest.raises(Violation, match="n2, which is in the ISR of t-0, ends at 1, and committed is everything up to 2"):
        nodes.leader_moves()


def test_a_replica_in_sync_with_another_record() -> None:
    nodes = Nodes()
    nodes.by_id[2] = held([entry(0), entry(1, epoch=0)], is_leading=False)
    with pytest.raises(Violation, match=r"n2, .* has 1-1 of epoch 0 .* and 1-1 of epoch 1 .* is committed there"):
        nodes.leader_moves()


def test_only_the_ends_of_compacted_logs_are_compared() -> None:
    nodes = Nodes()
    nodes.by_id[1] = nodes.by_id[1]._replace(is_compacted=True)
    nodes.by_id[2] = held([entry(1, crc=8)], is_leading=False, is_compacted=True)
    nodes.leader_moves()


@pytest.mark.parametrize("changed", [state((1, 3), partition_epoch=2), state((1,), elr=(3,), partition_epoch=2)])
def test_a_replica_that_becomes_electable_without_all_records(changed: object) -> None:
    nodes = Nodes()
    nodes.leader_moves()
    nodes.by_id[3] = held(BOTH[:1], is_leading=False)
    with pytest.raises(Violation, match=r"n3, which is in the (ISR|ELR) of t-0, ends at 1"):
        nodes.commit(image(changed, {1: 10, 2: 20, 3: 30}))  # type: ignore[arg-type]


def test_a_replica_that_is_electable_before_its_node_has_opened_it() -> None:
    nodes = Nodes()
    nodes.leader_moves()
    nodes.commit(image(state((1, 2, 3), partition_epoch=2), {1: 10, 2: 20, 3: 30}))
    with pytest.raises(Violation, match="n3, which was in the ISR of t-0 before it opened it, ends at 0"):
        nodes.checker.partition_held("n3", held((), is_leading=False, isr=(1, 2, 3)))


def test_a_replica_that_lost_its_place_or_has_everything_may_be_opened() -> None:
    nodes = Nodes()
    nodes.leader_moves()
    nodes.commit(image(state((1, 2, 3), partition_epoch=2), {1: 10, 2: 20, 3: 30}))
    nodes.checker.partition_held("n3", held(BOTH, is_leading=False, isr=(1, 2, 3)))
    nodes.commit(image(state((1, 2), partition_epoch=3), {1: 10, 2: 20, 3: 30}))
    nodes.checker.partition_held("n3", held((), is_leading=False))


def test_a_leader_without_all_records() -> None:
    nodes = Nodes()
    nodes.leader_moves()
    nodes.commit(image(state(leader=2, leader_epoch=2, partition_epoch=2), {1: 10, 2: 20, 3: 30}))
    nodes.checker.partition_held("n3", held(BOTH[:1], 1, leader=3, leader_epoch=0))  # has not heard of the later ones
    with pytest.raises(Violation, match="n2, which leads t-0 in epoch 2, ends at 1"):
        nodes.checker.partition_held("n2", held(BOTH[:1], 1, leader=2, leader_epoch=2))


def test_a_replica_that_lost_its_writes_is_excused_until_it_is_registered_again() -> None:
    nodes = Nodes()
    nodes.checker.writes_lost("n2")
    nodes.by_id[2] = held(BOTH[:1], is_leading=False)
    nodes.leader_moves()
    nodes.checker.partition_held("n2", held(BOTH[:1], 1, leader=2))
    with pytest.raises(Violation, match="n2, which is in the ISR"):
        nodes.commit(image(state(partition_epoch=2), {1: 10, 2: 21, 3: 30}))


def test_leader_that_is_paused_before_it_tells_of_its_high_watermark_is_looked_at() -> None:
    nodes = Nodes()
    nodes.checker.acknowledged(Batch("p", PLACE, 0, [b"v", b"w"], [None, None], True, -1), 0)
    nodes.by_id[2] = held(BOTH[:1], 1, is_leading=False)
    with pytest.raises(Violation, match="n2, which is in the ISR of t-0, ends at 1"):
        nodes.checker.image_committed(MetadataImage(), nodes.image)


def test_what_clients_see_is_committed() -> None:
    nodes = Nodes()
    nodes.by_id[1] = held(BOTH, 1)
    nodes.leader_moves()
    nodes.checker.acknowledged(Batch("p", PLACE, 1, [b"w"], [None], True, 1), 1)  # acks=1 promises less
    with pytest.raises(Violation, match="p got an answer for offset 1 of t-0, and only what is below 1 is committed"):
        nodes.checker.acknowledged(Batch("p", PLACE, 1, [b"w"], [None], True, -1), 1)
    with pytest.raises(Violation, match="a consumer has read offset 1"):
        nodes.checker.seen(PLACE, [SeenRecord(0, b"v"), SeenRecord(1, b"w")])


SHRUNK = state((1,), partition_epoch=2)


def after(*states: PartitionState) -> PartitionStates:
    checker, before = PartitionStates(), MetadataImage()
    for each in states:
        now = image(each)
        checker.image_committed(before, now)
        before = now
    return checker


def test_changes_that_keep_the_rules() -> None:
    checker = after(state(), SHRUNK, state((2, 1), leader=2, leader_epoch=2, partition_epoch=3))
    checker.partition_held("n1", held())
    checker.partition_held("n1", held(isr=(1,), partition_epoch=2))
    checker.started("n1")
    checker.partition_held("n1", held())  # a new life begins with older metadata
    assert checker.judged == 3


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        (state((1,)), "partition epoch has not risen"),
        (state(leader_epoch=0, partition_epoch=2), "leader epoch of t-0 was 1, and then 0"),
        (state((1, 4), partition_epoch=2), "not among its replicas"),
        (state((1,), elr=(1,), partition_epoch=2), "are not apart"),
        (state((2,), partition_epoch=2), "led by broker 1, which is not in its ISR"),
        (state(leader=2, partition_epoch=2), "has two leaders: 1 and 2"),
    ],
)
def test_a_change_that_breaks_a_rule(changed: PartitionState, text: str) -> None:
    with pytest.raises(Violation, match=text):
        after(state(), changed)


def test_a_node_that_goes_back_to_an_older_state() -> None:
    checker = after(state(), SHRUNK)
    checker.partition_held("n1", held(isr=(1,), partition_epoch=2))
    with pytest.raises(Violation, match="n1 went back from partition epoch 2 of t-0 to 1"):
        checker.partition_held("n1", held())


def test_a_node_with_a_state_that_is_not_committed() -> None:
    with pytest.raises(Violation, match="partition epoch 2, which is not committed"):
        after(state()).partition_held("n1", held(partition_epoch=2))
    with pytest.raises(Violation, match=r"with ISR \(1,\), leader 1"):
        after(state()).partition_held("n1", held(isr=(1,)))


def proposal(epochs: Mapping[int, int], offset: int | None, error: int = ErrorCode.NONE) -> Answer:
    """An answer to a proposal of these replicas, in these epochs; its change is in the log at `offset`."""
    isr = [BrokerState(broker_id=broker_id, broker_epoch=epoch) for broker_id, epoch in epochs.items()]
    asked = AlterPartitionRequestPartitionData(partition_index=0, new_isr_with_epochs=isr)
    told = AlterPartitionResponsePartitionData(partition_index=0, error_code=error)
    return Answer(
        AlterPartitionRequest(topics=[AlterPartitionRequestTopicData(topic_id=TOPIC_ID, partitions=[asked])]),
        AlterPartitionResponse(topics=[AlterPartitionResponseTopicData(topic_id=TOPIC_ID, partitions=[told])]),
        [] if offset is None else [entry(offset)],
        broker_epoch=1,
    )


def registered() -> EligibleIsr:
    """Broker 2 is registered at offset 4, and again at offset 8."""
    checker = EligibleIsr()
    first = image(state(), {1: 3, 2: 4})._replace(provenance=Provenance(4, 1, 0))
    checker.image_committed(MetadataImage(), first)
    checker.image_committed(first, image(state(), {1: 3, 2: 8})._replace(provenance=Provenance(8, 1, 0)))
    return checker


def test_the_epoch_that_a_broker_had_when_the_controller_decided_may_join() -> None:
    checker = registered()
    checker.answered("n1", proposal({1: 3, 2: 4}, offset=6))
    checker.answered("n1", proposal({1: 3, 2: 8}, offset=9))
    checker.answered("n1", proposal({1: 3, 2: ANY_EPOCH}, offset=9))
    assert checker.judged == 6


def test_a_proposal_that_is_refused_or_changes_nothing_may_have_any_epoch() -> None:
    checker = registered()
    checker.answered("n1", proposal({2: 4}, offset=9, error=ErrorCode.INELIGIBLE_REPLICA))
    checker.answered("n1", proposal({2: 4}, offset=None))
    assert checker.judged == 0


def test_a_process_that_is_gone_and_joins_is_found() -> None:
    with pytest.raises(
        Violation, match=r"n1 has let broker 2 into an ISR with broker epoch 4, and at offset 9 it was registered in epoch 8"
    ):
        registered().answered("n1", proposal({1: 3, 2: 4}, offset=9))


LAG_S = 1.0


def moved(high_watermark: int) -> HeldPartition:
    return held([entry(offset) for offset in range(high_watermark + 1)], high_watermark)


def led(at_s: list[float]) -> tuple[SteadyIsr, HeldPartition]:
    """A leader whose high watermark has moved at these times; it is 1.0 s now."""
    now_s = [0.0]
    checker = SteadyIsr(lambda: now_s[0], LAG_S)
    for count, each_s in enumerate(at_s, start=1):
        now_s[0] = each_s
        checker.partition_held("n1", moved(count))
    now_s[0] = 1.0
    return checker, moved(len(at_s))


def test_a_replica_that_keeps_pace_is_dropped() -> None:
    checker, partition = led([0.1, 0.3, 0.6, 0.9])
    with pytest.raises(Violation, match=r"n1 wants to drop \[2\] from the ISR of t-0"):
        checker.isr_proposed("n1", partition, (1,))


def test_a_replica_may_be_dropped_when_the_high_watermark_has_stood_still() -> None:
    checker, partition = led([0.1, 0.3, 0.4])
    checker.isr_proposed("n1", partition, (1,))
    assert checker.judged == 1


def test_proposals_to_add_a_replica_are_not_judged() -> None:
    checker, partition = led([0.1, 0.3, 0.6, 0.9])
    checker.isr_proposed("n1", partition, (1, 2, 3))
    assert checker.judged == 0


PARTITION = TopicPartition("t", 0)
FIRST, SECOND, THIRD = (Entry(offset, offset, 1, 7) for offset in range(3))
OTHER = SECOND._replace(crc=8)
EPOCHS = [(1, 0)]


def test_what_is_above_a_high_watermark_or_deleted_is_not_compared() -> None:
    checker = EqualReplicas()
    whole = Replica(0, 3, [FIRST, SECOND, THIRD], EPOCHS)
    behind = Replica(0, 1, [FIRST, OTHER], EPOCHS)
    shorter = Replica(1, 3, [SECOND, THIRD], [(1, 1)])
    checker.replicas_read(PARTITION, {"n1": whole, "n2": behind})
    checker.replicas_read(PARTITION, {"n1": shorter, "n2": whole})
    checker.replicas_read(PARTITION, {"n1": whole})
    assert checker.judged == 2


@pytest.mark.parametrize("entries", [[FIRST, OTHER], [FIRST]], ids=["another batch", "none"])
def test_a_difference_below_is_found(entries: list[Entry]) -> None:
    replicas = {"n1": Replica(0, 2, [FIRST, SECOND], EPOCHS), "n2": Replica(0, 2, entries, EPOCHS)}
    with pytest.raises(Violation, match=r"t-0 at offset 1: n1 has 1-1 of epoch 1 .*, and n2 has"):
        EqualReplicas().replicas_read(PARTITION, replicas)
    with pytest.raises(Violation, match="t-0 at offset 1: n2 has"):
        EqualReplicas().replicas_read(PARTITION, dict(reversed(replicas.items())))


def test_epochs_without_records_may_differ() -> None:
    replicas = {"n1": Replica(0, 2, [FIRST, SECOND], [(1, 0), (3, 2)]), "n2": Replica(0, 2, [FIRST, SECOND], EPOCHS)}
    EqualReplicas().replicas_read(PARTITION, replicas)


def test_a_batch_that_begins_before_the_log_start_has_its_epoch() -> None:
    EqualReplicas().replicas_read(PARTITION, {"n1": Replica(1, 3, [Entry(0, 2, 1, 7)], [(1, 1)])})


@pytest.mark.parametrize("epochs", [[(0, 0), (1, 1)], [(1, 1)], [(1, 0), (2, 1)], []], ids=str)
def test_epochs_that_contradict_a_batch_are_found(epochs: list[tuple[int, int]]) -> None:
    with pytest.raises(Violation, match=r"t-0: n1 has .* of epoch 1 .*, and its leader epochs say (0|2|None) for offset (0|1)"):
        EqualReplicas().replicas_read(PARTITION, {"n1": Replica(0, 2, [FIRST, SECOND], epochs)})


GROUP, OTHER_GROUP = "a", "b"


def led_by(node: int) -> MetadataImage:
    """The partition of `GROUP` is led by `node`, that of `OTHER` by 3."""
    leaders = {partition_for(GROUP, 2): node, partition_for(OTHER_GROUP, 2): 3}
    topic = Topic(OFFSETS_TOPIC, TOPIC_ID, {number: state(leader=leader) for number, leader in leaders.items()})
    return MetadataImage(topics=TopicsImage(MappingProxyType({OFFSETS_TOPIC: topic})))


class Cluster:
    """Coordinators that are told the leader of `GROUP` at a time."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.coordinators = Coordinators(lambda: self.now_s)
        self._image = MetadataImage()

    def lead(self, node: int, at_s: float) -> None:
        before, self.now_s, self._image = self._image, at_s, led_by(node)
        self.coordinators.image_committed(before, self._image)


def test_a_deposed_leader_is_no_coordinator() -> None:
    cluster = Cluster()
    cluster.lead(2, at_s=1.0)
    assert cluster.coordinators.is_coordinator(GROUP, 2, 0.5), "asked before the topic was made, and nobody led before"
    cluster.lead(1, at_s=2.0)
    assert not cluster.coordinators.is_coordinator(GROUP, 2, 2.5)
    assert cluster.coordinators.is_coordinator(GROUP, 1, 2.5)
    assert cluster.coordinators.is_coordinator(OTHER_GROUP, 3, 1.5)


def test_one_that_leads_again_may_have_answered_while_another_led() -> None:
    cluster = Cluster()
    for node, at_s in ((2, 1.0), (1, 2.0), (2, 3.0)):
        cluster.lead(node, at_s)
    assert not cluster.coordinators.is_coordinator(GROUP, 2, 2.5)
    assert cluster.coordinators.is_coordinator(GROUP, 2, 3.0)


def test_the_last_leader_stays_the_coordinator_while_there_is_none() -> None:
    cluster = Cluster()
    for node, at_s in ((2, 1.0), (NO_LEADER, 2.0), (2, 3.0)):
        cluster.lead(node, at_s)
        assert cluster.coordinators.is_coordinator(GROUP, 2, 1.0)
