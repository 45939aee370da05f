"""DescribeLogDirs and AlterReplicaLogDirs: directories, and moves between them."""

import pytest
from tests.support.nodes.data_node import DataNode, append, run

from ottla.broker.handlers.admin import alter_replica_log_dirs, describe_log_dirs
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition
from ottla.log.directories.partition_metadata import write_partition_metadata
from ottla.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from ottla.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest, DescribeLogDirsResponse

Found = dict[str, dict[str, tuple[int, int, bool]]]
"""Directory → partition → (size, lag, whether it is a future replica)"""


def ask(node: DataNode, *topics: tuple[str, list[int]], all_topics: bool = False) -> DescribeLogDirsResponse:
    asked = [DescribableLogDirTopic(topic=name, partitions=indexes) for name, indexes in topics]
    response: DescribeLogDirsResponse = node.ask(
        describe_log_dirs, DescribeLogDirsRequest(topics=None if all_topics else asked), 5
    )
    return response


def found(response: DescribeLogDirsResponse) -> Found:
    return {
        result.log_dir: {
            f"{topic.name}-{each.partition_index}": (each.partition_size, each.offset_lag, each.is_future_key)
            for topic in result.topics
            for each in topic.partitions
        }
        for result in response.results
    }


@pytest.fixture
def node() -> DataNode:
    """t-0 and u-0 in /a, t-1 in /b."""
    node = DataNode()
    append(node.topic("t", 2), b"a", b"b")
    append(node.topic("u"), b"a")
    return node


def test_total_and_usable_bytes_of_each_directory(node: DataNode) -> None:
    for result in ask(node).results:
        assert 0 < result.usable_bytes < result.total_bytes
        assert (result.error_code, result.is_cordoned) == (0, False)


def test_a_replica_that_is_being_moved_is_shown_with_its_lag(node: DataNode) -> None:
    """As left by a move that was stopped half-way."""
    storage, folder = node.storage, f"/b/u-0.{'0' * 32}-future"
    storage.disk.make_directory(folder)
    run(write_partition_metadata(storage.disk, folder, node.image.topics.by_name["u"].id))
    node.services["directories"] = storage.reopen()
    sizes = found(ask(node, ("u", [0])))
    assert sizes["/b"] == {"u-0": (0, 1, True)}
    assert sizes["/a"]["u-0"][1:] == (0, False)


def test_a_directory_that_has_failed(node: DataNode) -> None:
    node.storage.disk.fail_directory("/b")
    response = ask(node, all_topics=True)
    [works, failed] = response.results
    assert (works.error_code, failed.error_code) == (0, ErrorCode.KAFKA_STORAGE_ERROR)
    assert (failed.topics, failed.total_bytes, failed.usable_bytes) == ([], -1, -1)
    [loss] = node.storage.directories.take_losses()
    assert loss.partitions == (TopicPartition("t", 1),)
    assert ask(node, all_topics=True).results[1].error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_directory_of_the_metadata_log_alone_is_not_shown(node: DataNode) -> None:
    node.storage.close()
    node.storage.use(log_dirs=("/b",))
    node.services["directories"] = node.storage.open()
    assert [result.log_dir for result in ask(node).results] == ["/b"]


class Moves:
    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    async def request(self, name: TopicPartition, path: str) -> None:
        self.asked.append((str(name), path))
        if path == "/nowhere":
            raise KafkaError(ErrorCode.LOG_DIR_NOT_FOUND, "not found")


def move(moves: Moves, *wanted: tuple[str, str, list[int]], version: int = 2) -> list[tuple[str, list[tuple[int, int]]]]:
    node = DataNode()
    node.services["moves"] = moves
    dirs = [
        AlterReplicaLogDir(path=path, topics=[AlterReplicaLogDirTopic(name=topic, partitions=indexes)])
        for path, topic, indexes in wanted
    ]
    response = node.ask(alter_replica_log_dirs, AlterReplicaLogDirsRequest(dirs=dirs), version)
    return [
        (result.topic_name, [(each.partition_index, each.error_code) for each in result.partitions])
        for result in response.results
    ]


def test_partition_named_twice_moves_to_the_last_directory() -> None:
    moves = Moves()
    assert move(moves, ("/a", "t", [0, 0]), ("/b", "t", [0])) == [("t", [(0, 0)])]
    assert moves.asked == [("t-0", "/b")]
