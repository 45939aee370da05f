"""Control records: Apache Kafka's own, end markers, and malformed keys and values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.logs.record_data import golden_batches

from ottla.errors import CorruptRecords
from ottla.records.batch import BatchView
from ottla.records.control import (
    ControlRecord,
    ControlType,
    EndMarker,
    build_control_batch,
    build_end_marker,
    control_key,
    control_value,
    parse_control,
    parse_control_type,
    parse_end_marker,
)
from ottla.records.kernels import Record
from ottla.records.reader import read_records

GOLDEN_TYPES = {
    "end-abort": ControlType.ABORT,
    "end-commit": ControlType.COMMIT,
    "leader-change": ControlType.LEADER_CHANGE,
    "snapshot-header": ControlType.SNAPSHOT_HEADER,
    "snapshot-footer": ControlType.SNAPSHOT_FOOTER,
    "kraft-version": ControlType.KRAFT_VERSION,
    "kraft-voters": ControlType.KRAFT_VOTERS,
}


def golden(name: str) -> BatchView:
    return BatchView(bytes.fromhex(golden_batches()[name]["bytes"]))


@pytest.mark.parametrize("name", GOLDEN_TYPES)
def test_every_type_that_apache_kafka_writes(name: str) -> None:
    view = golden(name)
    (record,) = read_records(view)
    assert view.is_control
    control = parse_control(record)
    assert control.type == GOLDEN_TYPES[name] == parse_control_type(record.key)
    assert control.version == 0
    assert control.value == record.value


@pytest.mark.parametrize("name", [name for name in GOLDEN_TYPES if not name.startswith("end-")])
def test_metadata_log_batches_equal_those_of_apache_kafka(name: str) -> None:
    view = golden(name)
    (record,) = read_records(view)
    built = build_control_batch(
        [parse_control(record)], base_offset=view.base_offset, timestamp_ms=record.timestamp, leader_epoch=view.leader_epoch
    )
    assert built.hex() == golden_batches()[name]["bytes"]


@pytest.mark.parametrize(("name", "is_commit"), [("end-abort", False), ("end-commit", True)])
def test_end_markers_are_built_as_apache_kafka_builds_them(name: str, is_commit: bool) -> None:
    view = golden(name)
    (record,) = read_records(view)
    assert parse_end_marker(record) == EndMarker(is_commit, 12)
    built = build_end_marker(
        is_commit=is_commit,
        producer_id=4711,
        producer_epoch=3,
        coordinator_epoch=12,
        timestamp_ms=record.timestamp,
        base_offset=500,
        leader_epoch=6,
    )
    assert built.hex() == golden_batches()[name]["bytes"]


@given(
    st.lists(
        st.builds(ControlRecord, st.sampled_from(ControlType), st.integers(0, 2**15 - 1), st.binary(max_size=50)),
        min_size=1,
        max_size=4,
    )
)
def test_what_is_built_is_parsed(controls: list[ControlRecord]) -> None:
    view = BatchView(build_control_batch(controls, base_offset=9, timestamp_ms=5, leader_epoch=1))
    view.check()
    assert view.is_control
    assert not view.is_transactional
    assert [parse_control(record) for record in read_records(view)] == controls


def test_unknown_types_and_versions_are_not_damage() -> None:
    assert parse_control_type(b"\x00\x00\x00\x63") == 99
    assert parse_control_type(b"\x00\x01\x00\x01more") == ControlType.COMMIT


@pytest.mark.parametrize("key", [None, b"", b"\x00\x00\x00", b"\xff\xff\x00\x00"])
def test_malformed_keys_are_refused(key: bytes | None) -> None:
    with pytest.raises(CorruptRecords, match="key"):
        parse_control_type(key)


@pytest.mark.parametrize("value", [None, b"", b"\x00"])
def test_values_without_a_version_are_refused(value: bytes | None) -> None:
    with pytest.raises(CorruptRecords, match="offset 5"):
        parse_control(Record(5, 0, control_key(ControlType.COMMIT), value))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (control_key(ControlType.LEADER_CHANGE), control_value(0, bytes(4))),
        (control_key(ControlType.COMMIT), control_value(0, bytes(3))),
        (control_key(ControlType.COMMIT), control_value(-1, bytes(4))),
    ],
)
def test_records_that_are_no_end_marker_are_refused(key: bytes, value: bytes) -> None:
    with pytest.raises(CorruptRecords, match="offset 5"):
        parse_end_marker(Record(5, 0, key, value))
