"""Committed records are on every replica that could lead, and clients see no others."""

import pytest
from tests.support.nodes.watched_partitions import KEY, TOPIC_ID, entry, held, image, state

from ottla.metadata.image.image import MetadataImage
from ottla.sim.checkers.checker import Batch, Place, SeenRecord, TopicPlan, Violation
from ottla.sim.cluster.checkers.checker import HeldPartition, PartitionKey
from ottla.sim.cluster.checkers.partitions import CommittedRecords

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
