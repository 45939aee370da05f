"""AlterReplicaLogDirs: the moves it requests, and its response."""

from tests.support.nodes.data_node import DataNode

from ottla.broker.handlers.admin import alter_replica_log_dirs
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition
from ottla.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)


class Moves:
    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    async def request(self, name: TopicPartition, path: str) -> None:
        self.asked.append((str(name), path))
        if path == "/nowhere":
            raise KafkaError(ErrorCode.LOG_DIR_NOT_FOUND, "not found")


def ask(moves: Moves, *wanted: tuple[str, str, list[int]], version: int = 2) -> list[tuple[str, list[tuple[int, int]]]]:
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


def test_each_partition_has_its_own_error_code() -> None:
    moves = Moves()
    answer = ask(moves, ("/a", "t", [0, 1]), ("/nowhere", "u", [0]), ("/b", "t", [2]), version=1)
    assert answer == [("t", [(0, 0), (1, 0), (2, 0)]), ("u", [(0, ErrorCode.LOG_DIR_NOT_FOUND)])]
    assert moves.asked == [("t-0", "/a"), ("t-1", "/a"), ("u-0", "/nowhere"), ("t-2", "/b")]


def test_partition_named_twice_moves_to_the_last_directory() -> None:
    moves = Moves()
    assert ask(moves, ("/a", "t", [0, 0]), ("/b", "t", [0])) == [("t", [(0, 0)])]
    assert moves.asked == [("t-0", "/b")]


def test_empty_request_gets_an_empty_response() -> None:
    assert ask(Moves()) == []
