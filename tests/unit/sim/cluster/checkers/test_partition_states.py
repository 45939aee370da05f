"""States of partitions: epochs rise, one leader per epoch, and nodes use committed states."""

import pytest
from tests.support.nodes.watched_partitions import held, image, state

from ottla.metadata.image.image import MetadataImage
from ottla.metadata.image.topics import PartitionState
from ottla.sim.checkers.checker import Violation
from ottla.sim.cluster.checkers.partitions import PartitionStates

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
