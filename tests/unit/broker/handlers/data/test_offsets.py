"""ListOffsets and OffsetForLeaderEpoch where the broker's state decides.

Plain requests: tests/compat/broker/test_offset_requests.py.
"""

import pytest
from tests.support.logs.batches import T0
from tests.support.nodes.data_node import DataNode, append, end_transaction

from ottla.broker.handlers.data import list_offsets, offset_for_leader_epoch
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

NEWEST = 11
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
NOTHING = (0, -1, -1, -1)

Answer = tuple[int, int, int, int]
"""(error code, timestamp, offset, leader epoch)"""


def request(topic: str, index: int, timestamp: int, epoch: int = -1, **more: int) -> ListOffsetsRequest:
    asked = ListOffsetsPartition(partition_index=index, current_leader_epoch=epoch, timestamp=timestamp)
    return ListOffsetsRequest(
        replica_id=more.get("replica", -1),
        isolation_level=more.get("isolation", 0),
        topics=[ListOffsetsTopic(name=topic, partitions=[asked])],
    )


def ask(node: DataNode, timestamp: int, version: int = NEWEST, topic: str = "t", index: int = 0, **more: int) -> Answer:
    response = node.ask(list_offsets, request(topic, index, timestamp, **more), version)
    [[found]] = [answered.partitions for answered in response.topics]
    assert found.partition_index == index
    return (found.error_code, found.timestamp, found.offset, found.leader_epoch)


@pytest.fixture
def node() -> DataNode:
    """Three batches of three records: at T0, T0 + 10 and T0 + 5; each record is a millisecond later than the one before it."""
    node = DataNode()
    hosted = node.topic("t", 2)
    for timestamp in (T0, T0 + 10, T0 + 5):
        append(hosted, b"a", b"b", b"c", timestamp=timestamp)
    return node


def test_offsets_above_the_high_watermark_are_for_replicas_only(node: DataNode) -> None:
    log = node.partitions.leader("t", 0).log
    log.update_high_watermark(4)
    assert ask(node, LATEST) == (0, -1, 4, 3)
    assert ask(node, T0 + 11) == NOTHING
    assert ask(node, T0 + 10) == (0, T0 + 10, 3, 3)
    assert ask(node, MAX_TIMESTAMP) == NOTHING
    for replica in (2, -2):
        assert ask(node, LATEST, replica=replica) == (0, -1, 9, 3)
        assert ask(node, MAX_TIMESTAMP, replica=replica) == (0, T0 + 12, 5, 3)


def test_read_committed_gets_the_last_stable_offset() -> None:
    node = DataNode()
    hosted = node.topic("t")
    append(hosted, b"a", timestamp=T0)
    append(hosted, b"b", timestamp=T0 + 5, producer=(1, 0, 0), transactional=True)
    append(hosted, b"c", timestamp=T0 + 9)
    assert ask(node, LATEST, isolation=1) == (0, -1, 1, 3)
    assert ask(node, LATEST, isolation=0) == (0, -1, 3, 3)
    assert ask(node, T0 + 1, isolation=1) == ask(node, MAX_TIMESTAMP, isolation=1) == NOTHING
    end_transaction(hosted, 1, commit=False)
    assert ask(node, LATEST, isolation=1) == (0, -1, 4, 3)
    assert ask(node, T0 + 1, isolation=1) == (0, T0 + 5, 1, 3)


def test_a_new_leader_that_is_catching_up_gives_no_end(node: DataNode) -> None:
    hosted = node.partitions.leader("t", 0)
    hosted.log.update_high_watermark(4)
    state = node.image.topics.by_name["t"].partitions[0]
    hosted.adopt(state._replace(replicas=(1, 2), isr=(1, 2), leader_epoch=4, partition_epoch=state.partition_epoch + 1))
    assert ask(node, LATEST)[0] == ErrorCode.OFFSET_NOT_AVAILABLE
    assert ask(node, LATEST, version=4)[0] == ErrorCode.LEADER_NOT_AVAILABLE
    assert ask(node, T0 + 12)[0] == ErrorCode.OFFSET_NOT_AVAILABLE
    assert ask(node, T0) == (0, T0, 0, 3)
    assert ask(node, LATEST, replica=2) == (0, -1, 9, 4)
    hosted.follower_fetches(2, 9, 0, -1)
    assert ask(node, LATEST) == (0, -1, 9, 4)


def test_only_debugging_tools_may_ask_a_follower(node: DataNode) -> None:
    node.follow("t")
    assert ask(node, LATEST)[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert ask(node, LATEST, replica=-2) == (0, -1, 9, 4)


def test_topic_without_partitions_is_left_out_of_the_response(node: DataNode) -> None:
    asked = request("t", 0, LATEST)
    asked.topics += [ListOffsetsTopic(name="t"), ListOffsetsTopic(name="nope")]
    assert [(each.name, len(each.partitions)) for each in node.ask(list_offsets, asked, NEWEST).topics] == [("t", 1)]


def test_a_failed_disk_is_a_storage_error(node: DataNode) -> None:
    log = node.partitions.leader("t", 0).log
    node.storage.disk.fail_directory(log.folder.rpartition("/")[0])
    assert ask(node, T0)[0] == ErrorCode.KAFKA_STORAGE_ERROR
    [loss] = node.storage.directories.take_losses()
    assert log.partition in loss.partitions


def ask_epoch(node: DataNode, epoch: int, current: int = -1, topic: str = "t", index: int = 0) -> tuple[int, int, int]:
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
    assert ask_epoch(node, epoch) == answer


def test_refusals() -> None:
    node = DataNode()
    node.topic("t")
    node.topic("followed")
    node.follow("followed")
    assert ask_epoch(node, 3, current=3) == (0, 3, 0)
    assert ask_epoch(node, 3, current=2) == (ErrorCode.FENCED_LEADER_EPOCH, -1, -1)
    assert ask_epoch(node, 3, current=4) == (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1)
    assert ask_epoch(node, 3, topic="nope") == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)
    assert ask_epoch(node, 3, index=7) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)
    assert ask_epoch(node, 3, topic="followed") == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, -1)
