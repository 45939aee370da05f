"""Text checkpoints: the bytes are Apache's, round trips hold, damage is found."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.errors import CorruptFile
from ottla.ids import TopicPartition
from ottla.log.directories.checkpoint import OffsetCheckpoint, format_epochs, format_offsets, parse_epochs, parse_offsets
from ottla.sim.disk import MemoryDisk

TOPICS = st.text("abcXYZ019._-", min_size=1, max_size=30)
PARTITIONS = st.builds(TopicPartition, TOPICS, st.integers(0, 2**31 - 1))
OFFSETS = st.integers(0, 2**63 - 1)


def test_bytes_are_apaches() -> None:
    assert format_offsets({TopicPartition("a.b-c", 0): 10}) == b"0\n1\na.b-c 0 10\n"
    assert format_offsets({}) == b"0\n0\n"
    assert format_epochs([(0, 0), (3, 17)]) == b"0\n2\n0 0\n3 17\n"


@given(st.dictionaries(PARTITIONS, OFFSETS))
def test_offsets_round_trip(offsets: dict[TopicPartition, int]) -> None:
    assert parse_offsets("/f", format_offsets(offsets)) == offsets


@given(st.sets(st.integers(0, 2**31 - 1)), st.sets(OFFSETS))
def test_epochs_round_trip(epochs: set[int], offsets: set[int]) -> None:
    entries = list(zip(sorted(epochs), sorted(offsets), strict=False))
    assert parse_epochs("/f", format_epochs(entries)) == entries


@pytest.mark.parametrize("entries", [[(1, 0), (1, 5)], [(2, 0), (1, 5)], [(0, 5), (1, 5)], [(0, 5), (1, 4)]])
def test_epochs_that_do_not_rise_are_damage(entries: list[tuple[int, int]]) -> None:
    with pytest.raises(CorruptFile, match=r"line 4 says .* which does not follow on the line before"):
        parse_epochs("/f", format_epochs(entries))


def test_an_empty_file_is_an_empty_checkpoint() -> None:
    assert parse_offsets("/f", b"") == {}
    assert parse_epochs("/f", b"") == []


def test_blanks_and_repeated_partitions_are_read_as_apache_does() -> None:
    assert parse_offsets("/f", b"0\n2\nt  0\t5\nt 0 7\n") == {TopicPartition("t", 0): 7}


@pytest.mark.parametrize(
    ("data", "position", "what"),
    [
        (b"0", 1, "middle of a line"),
        (b"0\n", 2, "number of entries; it is missing"),
        (b"0\n2\nt 0 1\n", 2, "2 entries announced, 1 found"),
        (b"0\n0\nt 0 1\n", 2, "0 entries announced, 1 found"),
        (b"0\n1\nt 0 12", 10, "middle of a line"),
        (b"1\n0\n", 0, "version 1 is unknown"),
        (b"x\n0\n", 0, "line 1 should be the version 0, not 'x'"),
        (b"0\n-1\n", 2, "number of entries"),
        (b"0\n99999999999\n", 2, "number of entries"),
        (b"0\n1\nt 0\n", 4, "line 3 should be `topic partition offset`, not 't 0'"),
        (b"0\n2\nt 0 1\nt x 1\n", 10, "line 4"),
        (b"0\n1\nt 0 -1\n", 4, "line 3"),
        (b"0\n1\nt 0 9223372036854775808\n", 4, "line 3"),
        (b"0\n1\nt\xff 0 1\n", 4, "line 3"),
        (b"\0\0\0\0\n", 0, "line 1"),
    ],
)
def test_damage_is_named(data: bytes, position: int, what: str) -> None:
    with pytest.raises(CorruptFile, match=what) as damage:
        parse_offsets("/logs/f", data)
    assert damage.value.path == "/logs/f"
    assert damage.value.position == position
    assert "Delete the file" in damage.value.remedy


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for parse in (parse_offsets, parse_epochs):
        try:
            parse("/f", data)
        except CorruptFile as damage:
            assert 0 <= damage.position <= len(data)  # noqa: PT017 - either way is fine, a third is not


def test_file_is_written_and_read() -> None:
    disk = MemoryDisk()
    disk.make_directory("/logs")
    checkpoint = OffsetCheckpoint(disk, "/logs/recovery-point-offset-checkpoint")
    assert checkpoint.read() == {}
    offsets = {TopicPartition("t", 1): 5, TopicPartition("a", 0): 2}
    asyncio.run(checkpoint.write(offsets))
    assert checkpoint.read() == offsets
    assert disk.read_file(checkpoint.path) == b"0\n2\na 0 2\nt 1 5\n"
    assert disk.list_directory("/logs") == ["recovery-point-offset-checkpoint"]


def test_damaged_file_can_be_ignored() -> None:
    disk = MemoryDisk()
    disk.make_directory("/logs")
    asyncio.run(disk.replace_file("/logs/c", b"0\n7\n"))
    offsets, damage = OffsetCheckpoint(disk, "/logs/c").read_or_forget()
    assert offsets == {}
    assert damage is not None
    assert "/logs/c" in str(damage)
