"""Snapshots of the metadata log: names, bytes and damage."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.errors import CorruptFile
from ottla.ids import Uuid
from ottla.raft import control
from ottla.raft.snapshots import (
    BATCH_RECORDS_MAX,
    SnapshotId,
    build_snapshot,
    parse_snapshot_name,
    read_snapshot,
    snapshot_name,
    snapshot_timestamp_ms,
)
from ottla.raft.voters import ReplicaKey, Voter, VoterSet
from ottla.records.batch import BatchView
from ottla.wire.log_records import encode_metadata_record
from ottla.wire.messages.metadata_records import FeatureLevelRecord, TopicRecord

VOTERS = VoterSet([Voter(ReplicaKey(1, Uuid(b"1" * 16)), {"CONTROLLER": ("localhost", 9093)})])


def values(count: int) -> list[bytes]:
    return [encode_metadata_record(TopicRecord(name=f"t{number}", topic_id=Uuid(b"t" * 16)), 0) for number in range(count)]


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        ("00000000000000000000-0000000000.checkpoint", (SnapshotId(0, 0), ".checkpoint")),
        ("00000000000000000123-0000000004.checkpoint", (SnapshotId(123, 4), ".checkpoint")),
        ("00000000000000000123-0000000004-8812.checkpoint.part", (SnapshotId(123, 4), ".checkpoint.part")),
        ("00000000000000000123-0000000004.checkpoint.deleted", (SnapshotId(123, 4), ".checkpoint.deleted")),
        ("00000000000000000123.snapshot", None),
        ("bootstrap.checkpoint", None),
        ("leader-epoch-checkpoint", None),
    ],
)
def test_names(name: str, parsed: tuple[SnapshotId, str] | None) -> None:
    assert parse_snapshot_name(name) == parsed


def test_a_snapshot_name_pads_offset_and_epoch_with_zeros() -> None:
    assert snapshot_name(SnapshotId(123, 4)) == "00000000000000000123-0000000004.checkpoint"


@pytest.mark.parametrize("count", [0, 1, BATCH_RECORDS_MAX, BATCH_RECORDS_MAX + 1])
def test_what_was_written_is_read(count: int) -> None:
    data = build_snapshot(SnapshotId(count, 7), 123, 1, VOTERS, values(count), 1_000)
    content = read_snapshot("f", data)
    assert content.timestamp_ms == 123
    assert [record.name for record in content.records] == [f"t{number}" for number in range(count)]
    assert control.read_kraft_version(content.controls[0]) == 1
    assert control.read_kraft_voters(content.controls[1]) == VOTERS
    assert snapshot_timestamp_ms("f", data[:500]) == 123


def test_offsets_go_on_from_batch_to_batch() -> None:
    data = build_snapshot(SnapshotId(9, 7), 123, 1, VOTERS, values(BATCH_RECORDS_MAX + 5), 1_000)
    expected, position = 0, 0
    while position < len(data):
        view = BatchView(data, position)
        assert view.base_offset == expected
        assert view.leader_epoch == 7
        expected, position = view.next_offset, position + view.size
    assert expected == 3 + BATCH_RECORDS_MAX + 5 + 1


def test_without_a_dynamic_quorum_there_are_no_voters() -> None:
    record = FeatureLevelRecord(name="metadata.version", feature_level=30)
    content = read_snapshot("f", build_snapshot(SnapshotId(0, 0), 0, 0, None, [encode_metadata_record(record, 0)], 5))
    assert content.controls == []
    assert content.records == [record]


def test_a_snapshot_without_its_end_is_refused() -> None:
    data = build_snapshot(SnapshotId(9, 7), 123, 1, VOTERS, values(3), 1_000)
    last = BatchView(data, 0)
    position = 0
    while position < len(data):
        last = BatchView(data, position)
        position += last.size
    with pytest.raises(CorruptFile, match="footer"):
        read_snapshot("f", data[: len(data) - last.size])
    with pytest.raises(CorruptFile):
        read_snapshot("f", b"")


@given(st.integers(0, 400), st.integers(1, 255))
def test_a_flipped_byte_under_a_checksum_is_refused(position: int, flip: int) -> None:
    data = bytearray(build_snapshot(SnapshotId(9, 7), 123, 1, VOTERS, values(3), 1_000))
    position %= len(data)
    before = read_snapshot("f", bytes(data))
    data[position] ^= flip
    try:
        after = read_snapshot("f", bytes(data))
    except CorruptFile:
        return
    assert (after.timestamp_ms, after.controls, after.records) == (before.timestamp_ms, before.controls, before.records), (
        "only what no checksum covers may change: offsets and epochs of the batches"
    )


def test_a_head_without_a_header_is_refused() -> None:
    data = build_snapshot(SnapshotId(9, 7), 123, 1, VOTERS, [], 1_000)
    footer = data[BatchView(data).size :]
    for head in (b"", data[:40], footer):
        with pytest.raises(CorruptFile):
            snapshot_timestamp_ms("f", head)
