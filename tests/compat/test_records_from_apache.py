"""Batches that Apache Kafka wrote, read with `ottla.records`, and built again from their records."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.logs.apache_logs import TOPICS, LogsFromApache, SeenRecord

from ottla.records.batch import BatchView, iterate_batches
from ottla.records.builder import build_batch
from ottla.records.compression import Codec
from ottla.records.reader import read_records
from ottla.records.record import Record


def batches(folder: Path) -> Iterator[BatchView]:
    for path in sorted(folder.glob("*.log")):
        yield from iterate_batches(path.read_bytes())


def as_seen(batch: BatchView, record: Record) -> SeenRecord:
    return SeenRecord(
        record.offset, record.timestamp, batch.is_append_time, batch.leader_epoch, record.key, record.value, record.headers
    )


@pytest.mark.parametrize("topic", TOPICS)
def test_records_are_those_that_apaches_consumer_returns(logs_from_apache: LogsFromApache, topic: str) -> None:
    seen = logs_from_apache.seen[topic]
    read = []
    for batch in batches(logs_from_apache.stopped / f"{topic}-0"):
        batch.check()
        if not batch.is_control:
            read += [as_seen(batch, record) for record in read_records(batch) if record.offset >= seen.beginning]
    assert read == seen.records


def test_logs_hold_every_case_that_is_tested(logs_from_apache: LogsFromApache) -> None:
    """Guards the fixture: if a setting stopped rolling or compaction, the comparison would prove nothing."""
    for topic, codec in [(f"codec-{codec.name.lower()}", codec) for codec in Codec]:
        found = list(batches(logs_from_apache.stopped / f"{topic}-0"))
        assert {batch.codec for batch in found} == {codec}
        assert {batch.has_producer_id for batch in found} == {True, False}
        assert len({batch.leader_epoch for batch in found}) == 2
        assert len(list((logs_from_apache.stopped / f"{topic}-0").glob("*.log"))) > 2
    compacted = list(batches(logs_from_apache.stopped / "compacted-0"))
    assert any(batch.has_delete_horizon for batch in compacted)
    assert any(batch.count < batch.last_offset_delta + 1 for batch in compacted)
    seen = logs_from_apache.seen
    assert len(seen["compacted-expired"].records) < len(seen["compacted"].records) < 500
    assert len(seen["transactions"].committed) < len(seen["transactions"].records)
    assert seen["transactions"].last_stable < seen["transactions"].end
    assert seen["deleted"].beginning == 133
    assert seen["empty"].end == 0
    crashed = logs_from_apache.crashed
    assert not (crashed / ".kafka_cleanshutdown").exists()
    assert (logs_from_apache.stopped / ".kafka_cleanshutdown").exists()
    active = max((crashed / "codec-none-0").glob("*.index"))
    assert active.stat().st_size == 65536


@pytest.mark.parametrize("topic", ["codec-none", "transactions", "compacted"])
def test_uncompressed_batches_are_built_again_byte_for_byte(logs_from_apache: LogsFromApache, topic: str) -> None:
    """Only uncompressed ones: compressors differ between implementations. Append time hides the first base timestamp from
    readers, so that topic is left out."""
    built = 0
    for batch in batches(logs_from_apache.stopped / f"{topic}-0"):
        if batch.codec is not Codec.NONE or batch.is_control:
            continue
        again = build_batch(
            read_records(batch),
            base_offset=batch.base_offset,
            leader_epoch=batch.leader_epoch,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
            transactional=batch.is_transactional,
            append_time_ms=batch.max_timestamp if batch.is_append_time else None,
            delete_horizon_ms=batch.delete_horizon_ms if batch.has_delete_horizon else None,
            last_offset_delta=batch.last_offset_delta,
        )
        assert bytes(again) == bytes(batch.data)
        built += 1
    assert built > 5
