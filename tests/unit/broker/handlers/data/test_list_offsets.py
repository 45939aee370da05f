"""ListOffsets: the special values by version, times, isolation, leader epochs, and what is refused."""

import pytest
from tests.support.logs.batches import T0
from tests.support.nodes.data_node import DataNode, append, end_transaction

from ottla.broker.handlers.data import list_offsets
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

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


@pytest.mark.parametrize(
    ("timestamp", "since", "answer"),
    [
        (LATEST, 1, (0, -1, 9, 3)),
        (EARLIEST, 1, (0, -1, 0, 3)),
        (MAX_TIMESTAMP, 7, (0, T0 + 12, 5, 3)),
        (EARLIEST_LOCAL, 8, (0, -1, 0, 3)),
        (LATEST_TIERED, 9, NOTHING),
        (PENDING_UPLOAD, 11, NOTHING),
        (-7, 99, NOTHING),
        (-100, 99, NOTHING),
    ],
)
@pytest.mark.parametrize("version", range(1, NEWEST + 1))
def test_special_values_by_version(node: DataNode, timestamp: int, since: int, answer: Answer, version: int) -> None:
    expected = answer if version >= since else (ErrorCode.UNSUPPORTED_VERSION, -1, -1, -1)
    assert ask(node, timestamp, version) == (expected if version >= 4 else (*expected[:3], -1))


@pytest.mark.parametrize(
    ("after", "answer"),
    [(-1, (0, T0, 0, 3)), (1, (0, T0 + 1, 1, 3)), (3, (0, T0 + 10, 3, 3)), (12, (0, T0 + 12, 5, 3)), (13, NOTHING)],
)
def test_by_time(node: DataNode, after: int, answer: Answer) -> None:
    assert ask(node, T0 + after) == answer


def test_an_empty_partition_has_a_beginning_and_an_end_and_no_times(node: DataNode) -> None:
    assert ask(node, LATEST, index=1) == ask(node, EARLIEST, index=1) == (0, -1, 0, 3)
    assert ask(node, MAX_TIMESTAMP, index=1) == ask(node, T0, index=1) == NOTHING


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


def test_leader_epochs(node: DataNode) -> None:
    assert ask(node, LATEST, epoch=3) == (0, -1, 9, 3)
    assert ask(node, LATEST, epoch=2)[0] == ErrorCode.FENCED_LEADER_EPOCH
    assert ask(node, LATEST, epoch=4)[0] == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_only_debugging_tools_may_ask_a_follower(node: DataNode) -> None:
    node.follow("t")
    assert ask(node, LATEST)[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert ask(node, LATEST, replica=-2) == (0, -1, 9, 4)


@pytest.mark.parametrize(("topic", "index"), [("nope", 0), ("t", 7), ("t", -1), ("", 0)])
def test_unknown_partitions(node: DataNode, topic: str, index: int) -> None:
    assert ask(node, LATEST, topic=topic, index=index) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1, -1)


def test_an_unknown_isolation_level(node: DataNode) -> None:
    assert ask(node, LATEST, isolation=2) == (ErrorCode.UNKNOWN_SERVER_ERROR, -1, -1, -1)


def test_a_partition_asked_for_twice_is_refused_and_the_others_are_not(node: DataNode) -> None:
    first, second = request("t", 0, LATEST), request("t", 0, EARLIEST)
    second.topics[0].partitions.append(ListOffsetsPartition(partition_index=1, current_leader_epoch=-1, timestamp=LATEST))
    first.topics += second.topics
    response = node.ask(list_offsets, first, NEWEST)
    [topic] = response.topics
    assert [(each.partition_index, each.error_code) for each in topic.partitions] == [(0, ErrorCode.INVALID_REQUEST), (1, 0)]


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
