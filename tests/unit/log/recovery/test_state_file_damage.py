"""Every state file cut, flipped and deleted: a start recovers or refuses with a typed error, and no record is lost.

Kafka's text files have no checksums, so a flipped digit can pass for another number. It may then change where a log begins and
how long recovery takes, but never the records from there on.
"""

from collections.abc import Iterator

import pytest
from tests.support.logs.batches import make_batch
from tests.support.logs.log_directories import NodeStorage
from tests.support.logs.partition_logs import run

from ottla.errors import CorruptFile, KafkaError, OttlaError
from ottla.ids import TopicPartition
from ottla.log.directories.meta_properties import WrongDirectory
from ottla.sim.disk import MemoryDisk, copy_tree

PARTITION = TopicPartition("t", 0)
END_OFFSET = 12
BITS = (0x01, 0x10, 0x80)
DIRECTORY_FILES = (
    "/a/meta.properties",
    "/a/recovery-point-offset-checkpoint",
    "/a/replication-offset-checkpoint",
    "/a/log-start-offset-checkpoint",
    "/a/cleaner-offset-checkpoint",
    "/a/.kafka_cleanshutdown",
)
PARTITION_FILES = ("/a/t-0/partition.metadata", "/a/t-0/leader-epoch-checkpoint", "/a/t-0/{end:020d}.snapshot")
FILES = DIRECTORY_FILES + tuple(path.format(end=END_OFFSET) for path in PARTITION_FILES)


def closed_node() -> NodeStorage:
    """One partition of 12 records in two epochs that begins at 2, with a producer that has written six batches."""
    node = NodeStorage(("/a",), compaction=True)
    node.open()
    log = node.directories.find(node.create("t"))
    assert log is not None
    for sequence in range(6):
        log.append_as_leader(make_batch(b"1", b"2", producer=(7, 0, sequence * 2)), leader_epoch=sequence // 3)
    log.update_high_watermark(END_OFFSET)
    log.delete_records(2)
    run(node.disk.replace_file("/a/cleaner-offset-checkpoint", b"0\n1\nt 0 0\n"))
    node.close()
    return node


def copied(written: NodeStorage) -> NodeStorage:
    """A node on a copy of the directory."""
    node = NodeStorage(("/a",), compaction=True)
    node.disk = MemoryDisk(clock=node.clock)
    copy_tree(written.disk, "/a", node.disk, "/a")
    return node


def damaged_versions(data: bytes, is_quick: bool) -> Iterator[bytes | None]:
    """The file deleted, empty, cut at every length, with one or three bits of each byte flipped, with garbage at its end."""
    yield None
    yield from (data[:length] for length in range(len(data)))
    for position in range(len(data)):
        for bit in BITS[position % len(BITS) :][:1] if is_quick else BITS:
            yield data[:position] + bytes([data[position] ^ bit]) + data[position + 1 :]
    yield data + b"\0\xff"


def test_the_files_are_there() -> None:
    node = closed_node()
    for path in FILES:
        assert node.disk.exists(path), path


@pytest.mark.parametrize("clean", [True, False], ids=["clean shutdown", "crash"])
@pytest.mark.parametrize("path", FILES)
@pytest.mark.parametrize("is_quick", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["one bit", "three bits"])
def test_damage_is_recovered_or_refused(path: str, clean: bool, is_quick: bool) -> None:
    outcomes = set()
    written = closed_node()
    data = written.disk.read_file(path)
    for damaged in damaged_versions(data, is_quick):
        node = copied(written)
        if not clean:
            run(node.disk.remove("/a/.kafka_cleanshutdown"))
        if damaged is None:
            run(node.disk.remove(path))
        else:
            run(node.disk.replace_file(path, damaged))
        outcomes.add(outcome(node))
    assert "opened" in outcomes
    if path.endswith("meta.properties"):
        assert "start refused" in outcomes
    if path.endswith("partition.metadata"):
        assert "partition refused" in outcomes


def outcome(node: NodeStorage) -> str:
    try:
        node.open()
    except (CorruptFile, WrongDirectory) as refused:
        assert_helpful(refused)
        return "start refused"
    try:
        log = node.directories.find(PARTITION)
    except KafkaError as refused:
        assert_helpful(refused)
        return "partition refused"
    assert log is not None
    assert log.log_end_offset == END_OFFSET or log.log_start_offset > END_OFFSET
    assert log.log_start_offset <= log.high_watermark <= log.log_end_offset
    if log.log_end_offset == END_OFFSET:
        assert len(log.producers.producers[7].batches) == 5
        assert log.latest_epoch == 1 or log.log_start_offset == END_OFFSET
        log.append_as_leader(make_batch(b"more", producer=(7, 0, 12)), leader_epoch=2)
    node.close()
    node.open()
    return "opened"


def assert_helpful(error: OttlaError) -> None:
    text = str(error)
    assert "/a" in text
    assert len(text.split()) > 8
