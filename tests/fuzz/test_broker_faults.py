"""Faults around a node: files damaged while it was off, a full disk, kills.

A node either serves, or ends with exit code 1 and one sentence that says what to do. It never prints a traceback and never
loses an acknowledged record.
"""

import random
import shutil
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.hostile.hostile_node import HostileNode, linux_only
from tests.support.logs.batches import make_batch, values_of
from tests.support.peers.topics import await_leaders, make_topic
from tests.support.servers.ottla_server import run_ottla

from ottla.errors.codes import ErrorCode
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.produce import PartitionProduceData, PartitionProduceResponse, ProduceRequest, TopicProduceData

pytestmark = linux_only

METADATA = "__cluster_metadata-0"
NOISE = random.Random(3).randbytes(200)


def produce(node: HostileNode, value: bytes, topic: str = "kept", index: int = 0) -> PartitionProduceResponse:
    part = PartitionProduceData(index=index, records=bytes(make_batch(value)))
    request = ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[TopicProduceData(name=topic, partition_data=[part])])
    with node.connect() as client:
        answer = client.request(request, 9).responses[0].partition_responses[0]
    assert isinstance(answer, PartitionProduceResponse)
    return answer


def records(node: HostileNode) -> list[bytes | None]:
    part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=50_000_000)
    fetch = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=50_000_000, session_epoch=-1)
    fetch.topics = [FetchTopic(topic="kept", partitions=[part])]
    with node.connect() as client:
        return values_of(bytes(client.request(fetch, 11).responses[0].partitions[0].records))


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a node after a clean shutdown. Tests damage copies of it."""
    data = tmp_path_factory.mktemp("faults") / "data"
    with HostileNode(data) as node:
        make_topic(node.bootstrap, "kept")
        assert produce(node, b"kept").error_code == 0
    return data


def overwrite(name: str, content: bytes) -> Callable[[Path], None]:
    return lambda data: void((data / name).write_bytes(content))


def void(_: object) -> None:
    pass


def cut(name: str, size_bytes: int) -> Callable[[Path], None]:
    return lambda data: void((data / name).write_bytes((data / name).read_bytes()[:-size_bytes]))


def torn_by_a_crash(data: Path) -> None:
    (data / ".kafka_cleanshutdown").unlink()
    cut(f"{METADATA}/00000000000000000000.log", 5)(data)


def folder_in_place_of(name: str) -> Callable[[Path], None]:
    def change(data: Path) -> None:
        (data / name).unlink()
        (data / name).mkdir()

    return change


REFUSED: dict[str, tuple[Callable[[Path], None], str]] = {
    "another node's": (overwrite("meta.properties", b"version=1\nnode.id=7\ncluster.id=MkU3OEVBNTcwNTJENDM2Qg\n"), "node 7"),
    "another version": (overwrite("meta.properties", b"version=0\nbroker.id=1\n"), "version"),
    "noise for properties": (overwrite("meta.properties", NOISE), "meta.properties"),
    "no properties": (lambda data: (data / "meta.properties").unlink(), "log directory"),
    "a folder for properties": (folder_in_place_of("meta.properties"), "meta.properties"),
    "half a vote": (overwrite(f"{METADATA}/quorum-state", b'{"leaderId":1,'), "quorum-state"),
    "an empty vote": (overwrite(f"{METADATA}/quorum-state", b""), "quorum-state"),
    "a vote of another kind": (overwrite(f"{METADATA}/quorum-state", b'{"leaderId":"x","data_version":1}'), "quorum-state"),
    "no metadata": (lambda data: shutil.rmtree(data / METADATA), "metadata log is empty"),
    "a damaged metadata log after a clean stop": (cut(f"{METADATA}/00000000000000000000.log", 5), "shut down cleanly"),
    "a folder that is no partition": (lambda data: (data / "photos").mkdir(), "photos"),
}
SERVED: dict[str, Callable[[Path], None]] = {
    "noise for recovery points": overwrite("recovery-point-offset-checkpoint", NOISE),
    "noise for high watermarks": overwrite("replication-offset-checkpoint", NOISE),
    "noise for log starts": overwrite("log-start-offset-checkpoint", NOISE),
    "noise for the offset index": overwrite("kept-0/00000000000000000000.index", NOISE),
    "noise for the time index": overwrite("kept-0/00000000000000000000.timeindex", NOISE),
    "noise for leader epochs": overwrite("kept-0/leader-epoch-checkpoint", NOISE),
    "a metadata log torn by a crash": torn_by_a_crash,
    "no clean stop": lambda data: (data / ".kafka_cleanshutdown").unlink(),
}


QUICK = (
    "another node's",
    "half a vote",
    "no metadata",
    "a damaged metadata log after a clean stop",
    "noise for recovery points",
    "a metadata log torn by a crash",
    "no clean stop",
)
"""Damage that every run has; the rest is slow, and tests/fuzz/test_log_damage.py has it without processes."""


def marked(damage: Mapping[str, object]) -> list[Any]:
    return [pytest.param(each, marks=() if each in QUICK else pytest.mark.slow) for each in damage]


@pytest.mark.parametrize("what", marked(REFUSED))
def test_start_is_refused_with_one_sentence(what: str, stopped: Path, tmp_path: Path) -> None:
    damage, said = REFUSED[what]
    shutil.copytree(stopped, tmp_path / "data")
    damage(tmp_path / "data")
    done = run_ottla("up", "--port", 0, "--data", tmp_path / "data", "--json")
    assert done.returncode == 1, done.stdout + done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("ottla: ")]
    assert said in line
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("what", marked(SERVED))
def test_node_serves_in_spite_of_the_damage(what: str, stopped: Path, tmp_path: Path) -> None:
    shutil.copytree(stopped, tmp_path / "data")
    SERVED[what](tmp_path / "data")
    with HostileNode(tmp_path / "data") as node:
        assert records(node) == [b"kept"]
        assert produce(node, b"more").error_code == 0


def test_full_disk_ends_the_node_and_loses_nothing(tmp_path: Path) -> None:
    """The disk of the metadata log is full: the node says so and ends. With space again, every acknowledged record is there."""
    data = tmp_path / "data"
    node = HostileNode(data, command_prefix=["prlimit", "--fsize=1000000"])
    try:
        make_topic(node.bootstrap, "kept")
        acknowledged = []
        for number in range(30):
            value = b"%d " % number + bytes(90_000)
            try:
                answer = produce(node, value)
            except (ConnectionError, TimeoutError):
                break
            if answer.error_code:
                assert answer.error_code == 56
                break
            acknowledged.append(value)
        assert 5 < len(acknowledged) < 30
        assert node.await_exit() == 1
        log = node.log
    finally:
        node.kill()
    assert log.rstrip().splitlines()[-1].startswith("ottla: the node cannot work without its metadata log: ")
    assert "Traceback" not in log
    with HostileNode(data) as again:
        assert records(again)[: len(acknowledged)] == acknowledged


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_signal_under_load_loses_no_acknowledged_record(number: signal.Signals, tmp_path: Path) -> None:
    node = HostileNode(tmp_path / "data")
    try:
        make_topic(node.bootstrap, "kept")
        acknowledged: list[bytes] = []
        for index in range(300):
            if index == 200:
                node.send_signal(number)
            try:
                if produce(node, b"%d" % index).error_code == 0:
                    acknowledged.append(b"%d" % index)
            except ConnectionError:
                break
        assert node.await_exit() == (0 if number is signal.SIGTERM else -signal.SIGKILL)
        assert "Traceback" not in node.log
    finally:
        node.kill()
    assert len(acknowledged) >= 200
    with HostileNode(tmp_path / "data") as again:
        assert records(again)[: len(acknowledged)] == acknowledged


def test_partitions_beyond_the_file_limit_open_no_files_until_they_are_used(tmp_path: Path) -> None:
    with HostileNode(tmp_path / "data", command_prefix=["prlimit", "--nofile=400:400"]) as node:
        make_topic(node.bootstrap, "kept", configs={"segment.bytes": 1_048_576})
        make_topic(node.bootstrap, "large", 300)
        make_topic(node.bootstrap, "late", 3)
        for number in range(20):  # two segments: the log can still roll
            answer = produce(node, bytes(100_000))
            assert (answer.error_code, answer.base_offset) == (0, number)
        assert len(records(node)) > 1
        codes = [produce(node, b"first", "large", index).error_code for index in range(300)]
        assert set(codes) == {ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR}
        assert produce(node, b"still").base_offset == 20
        assert "failed" not in node.log
        with node.connect() as client:
            client.request(DeleteTopicsRequest(topics=[DeleteTopicState(name="large")], timeout_ms=30_000), 6)
        assert produce(node, b"first", "late").error_code == 0
    with HostileNode(tmp_path / "data") as node:
        assert produce(node, b"next").base_offset == 21
        await_leaders(node.bootstrap, "late", 3)
