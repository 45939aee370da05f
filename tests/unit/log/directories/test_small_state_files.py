"""partition.metadata, meta.properties and the clean shutdown file: Apache's bytes, and what damage means."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.errors import CorruptFile
from ottla.ids import Uuid, uuid_parse
from ottla.log.directories.clean_shutdown import (
    CleanShutdown,
    format_clean_shutdown,
    parse_clean_shutdown,
    read_clean_shutdown,
    remove_clean_shutdown,
    write_clean_shutdown,
)
from ottla.log.directories.meta_properties import (
    MetaProperties,
    WrongDirectory,
    check_same_node,
    format_meta_properties,
    parse_meta_properties,
    read_meta_properties,
    write_meta_properties,
)
from ottla.log.directories.partition_metadata import (
    format_partition_metadata,
    parse_partition_metadata,
    read_partition_metadata,
    write_partition_metadata,
)
from ottla.sim.disk import MemoryDisk

# Each as a broker of Apache Kafka 4.3.0 left it.
PARTITION_METADATA = b"version: 0\ntopic_id: SlPnj6dETLOyZy4PLZgoWA"
CLEAN_SHUTDOWN = b'{"version":0,"brokerEpoch":14}'
META_PROPERTIES = (
    b"#\n#Sun Nov 15 20:09:11 UTC 2026\nnode.id=1\ndirectory.id=3Q6ERKWuSPqMQoy0_90Hwg\nversion=1\n"
    b"cluster.id=b3R0bGEtdGVzdHMtMDAwMQ\n"
)
WRITTEN_MS = 1794773351000
META = MetaProperties("b3R0bGEtdGVzdHMtMDAwMQ", 1, uuid_parse("3Q6ERKWuSPqMQoy0_90Hwg"))
TOPIC_ID = uuid_parse("SlPnj6dETLOyZy4PLZgoWA")


def disk_with_folder() -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_directory("/logs")
    return disk


def test_bytes_are_apaches() -> None:
    assert format_partition_metadata(TOPIC_ID) == PARTITION_METADATA
    assert parse_partition_metadata("/f", PARTITION_METADATA) == TOPIC_ID
    assert format_clean_shutdown(14) == CLEAN_SHUTDOWN
    assert parse_clean_shutdown(CLEAN_SHUTDOWN) == CleanShutdown(14)
    assert format_meta_properties(META, WRITTEN_MS) == META_PROPERTIES
    assert parse_meta_properties("/f", META_PROPERTIES) == META


def test_partition_metadata_on_disk() -> None:
    disk = disk_with_folder()
    assert read_partition_metadata(disk, "/logs") is None
    asyncio.run(write_partition_metadata(disk, "/logs", TOPIC_ID))
    assert read_partition_metadata(disk, "/logs") == TOPIC_ID


def test_partition_metadata_of_a_later_version_is_read() -> None:
    assert parse_partition_metadata("/f", b"version: 3\ntopic_id: SlPnj6dETLOyZy4PLZgoWA\nmore: x\n") == TOPIC_ID


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "line 1 should be `version: 0`"),
        (b"version: x\n", "line 1"),
        (b"version: 0", "line 2 should be `topic_id: ` and an id; it is missing"),
        (b"version: 0\ntopic_id:", "line 2"),
        (b"version: 0\ntopic_id: SlPnj6dETLOyZy4PLZgoW", "is not a Kafka UUID"),
        (b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", "the topic id is zero"),
        (b"\xff\xfe\0", "line 1"),
    ],
)
def test_damaged_partition_metadata_is_refused_with_advice(data: bytes, what: str) -> None:
    with pytest.raises(CorruptFile, match=what) as damage:
        parse_partition_metadata("/logs/t-0/partition.metadata", data)
    assert "Copy the file from another partition" in damage.value.remedy


@given(st.integers(0, len(PARTITION_METADATA) - 1))
def test_every_cut_of_partition_metadata_is_refused(length: int) -> None:
    with pytest.raises(CorruptFile):
        parse_partition_metadata("/f", PARTITION_METADATA[:length])


def test_clean_shutdown_on_disk() -> None:
    disk = disk_with_folder()
    assert read_clean_shutdown(disk, "/logs") is None
    asyncio.run(write_clean_shutdown(disk, "/logs", 14))
    assert read_clean_shutdown(disk, "/logs") == CleanShutdown(14)
    asyncio.run(remove_clean_shutdown(disk, "/logs"))
    assert read_clean_shutdown(disk.crash(power_loss=True), "/logs") is None


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"14", b"{}", b'{"brokerEpoch":"x"}', b"\xff", b"[" * 100_000])
def test_damaged_clean_shutdown_still_says_clean(data: bytes) -> None:
    assert parse_clean_shutdown(data) == CleanShutdown(None)


def test_meta_properties_on_disk() -> None:
    disk = disk_with_folder()
    assert read_meta_properties(disk, "/logs") is None
    asyncio.run(write_meta_properties(disk, "/logs", META, WRITTEN_MS))
    assert read_meta_properties(disk, "/logs") == META


def test_meta_properties_from_before_directory_ids() -> None:
    old = MetaProperties("c", 3)
    assert parse_meta_properties("/f", b"version=1\ncluster.id=c\nnode.id=3\n") == old
    assert b"directory" not in format_meta_properties(old, 0)


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "version '' is unknown"),
        (b"version=0\nbroker.id=1\ncluster.id=c\n", "ZooKeeper"),
        (b"version=1\ncluster.id=c\n", "node.id should be a number, not ''"),
        (b"version=1\ncluster.id=c\nnode.id=x\n", "node.id"),
        (b"version=1\ncluster.id=c\nnode.id=99999999999999999999\n", "node.id"),
        (b"version=1\nnode.id=1\n", "cluster.id is missing"),
        (b"version=1\nnode.id=1\ncluster.id=c\ndirectory.id=short\n", "directory.id: 'short' is not a Kafka UUID"),
        (b"version=1\nnode.id=1\ncluster.id=c\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAA\n", "reserved id"),
        (b"version=1\\u00\n", "line 1 has a"),
    ],
)
def test_damaged_meta_properties_are_refused(data: bytes, what: str) -> None:
    with pytest.raises(CorruptFile, match=what):
        parse_meta_properties("/logs/meta.properties", data)


@given(st.integers(0, len(META_PROPERTIES) * 8 - 1), st.integers(0, len(META_PROPERTIES)))
def test_meta_properties_cut_or_flipped_are_read_or_refused(bit: int, length: int) -> None:
    flipped = bytearray(META_PROPERTIES)
    flipped[bit // 8] ^= 1 << bit % 8
    for data in (bytes(flipped), META_PROPERTIES[:length]):
        try:
            parse_meta_properties("/f", data)
        except CorruptFile:
            pass


OTHER_ID = Uuid(bytes(15) + b"\xff")


@pytest.mark.parametrize(
    ("metas", "cluster_id", "sentence"),
    [
        ({"/a": MetaProperties("c", 2)}, None, "/a belongs to node 2, but this is node 1: correct node.id or log.dirs"),
        ({"/a": MetaProperties("c", 1), "/b": MetaProperties("d", 1)}, None, "/b belongs to cluster d, but /a belongs to c"),
        ({"/a": MetaProperties("c", 1)}, "x", "/a belongs to cluster c, but this cluster is x"),
        ({"/a": MetaProperties("c", 1, OTHER_ID), "/b": MetaProperties("c", 1, OTHER_ID)}, None, "one is a copy of the other"),
    ],
)
def test_wrong_directory_gets_one_sentence(metas: dict[str, MetaProperties], cluster_id: str | None, sentence: str) -> None:
    with pytest.raises(WrongDirectory, match=sentence):
        check_same_node(metas, 1, cluster_id)


def test_directories_of_one_node_agree() -> None:
    check_same_node({}, 1)
    check_same_node({"/a": MetaProperties("c", 1), "/b": MetaProperties("c", 1, OTHER_ID)}, 1, "c")
