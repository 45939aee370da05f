"""OffsetForLeaderEpoch: where epochs end."""

import pytest
from tests.support.nodes.data_node import DataNode, append

from ottla.broker.handlers.data import offset_for_leader_epoch
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)


def ask(node: DataNode, epoch: int, current: int = -1, topic: str = "t", index: int = 0) -> tuple[int, int, int]:
    asked = OffsetForLeaderPartition(partition=index, current_leader_epoch=current, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=topic, partitions=[asked])])
    [[found]] = [answered.partitions for answered in node.ask(offset_for_leader_epoch, request, 4).topics]
    assert found.partition == index
    return found.error_code, found.leader_epoch, found.end_offset


@pytest.mark.parametrize(
    ("epoch", "answer"),
    [
        (3, (0, 3, 6)),
        (2, (0, 1, 6)),
        (1, (0, 1, 6)),
        (0, (0, 0, 4)),
        (-2, (0, -2, 4)),
        (4, (0, -1, -1)),
        (-1, (0, -1, -1)),
    ],
)
def test_ends_of_epochs(epoch: int, answer: tuple[int, int, int]) -> None:
    """Epoch 1 wrote offsets up to 5, and 4 and 5 are left; epoch 3 leads and has written nothing."""
    node = DataNode()
    hosted = node.topic("t", 2)
    log = hosted.log
    log.epochs.clear()
    hosted.leader_epoch = 1
    for _ in range(3):
        append(hosted, b"a", b"b")
    hosted.leader_epoch = 3
    log.assign_epoch(3, 6)
    log.delete_records(4)
    assert ask(node, epoch) == answer


def test_an_epoch_without_records_is_known() -> None:
    node = DataNode()
    node.topic("t")
    assert ask(node, 3) == (0, 3, 0)


def test_refusals() -> None:
    node = DataNode()
    node.topic("t")
    node.topic("followed")
    node.follow("followed")
    assert ask(node, 3, current=3) == (0, 3, 0)
    assert ask(node, 3, current=2) == (ErrorCode.FENCED_LEADER_EPOCH, -1, -1)
    assert ask(node, 3, current=4) == (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1)
    assert ask(node, 3, topic="nope") == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)
    assert ask(node, 3, index=7) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)
    assert ask(node, 3, topic="followed") == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, -1)
