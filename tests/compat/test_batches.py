"""Batches that Ottla built, read by Apache Kafka's own classes; and the golden records, generated again."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.logs.record_data import golden_answers, golden_batches, golden_records, plain
from tests.support.servers.apache_kafka import ApacheKafka
from tools.golden_records.make import golden_answers as answers_anew
from tools.golden_records.make import golden_batches as batches_anew

from ottla.records.batch import BatchView
from ottla.records.builder import build_batch, build_produce_batch
from ottla.records.compression import Codec
from ottla.records.control import build_end_marker
from ottla.records.kernels import Record
from ottla.records.patch import set_append_time, set_base_offset_and_epoch
from ottla.records.reader import read_records

JAVA = Path(__file__).parents[2] / "tools" / "golden_records" / "Records.java"
LEVELS: dict[Codec, list[int | None]] = {
    Codec.NONE: [None],
    Codec.GZIP: [None, 1, 9],
    Codec.SNAPPY: [None],
    Codec.LZ4: [None, 1, 17],
    Codec.ZSTD: [None, -131072, -5, 1, 19, 22],
}


def some_records(value_size: int = 40) -> list[Record]:
    made = []
    for index in range(60):
        headers = (("h", b"x"), ("none", None), ("Grüße", b"")) if index % 3 == 0 else ()
        key = None if index % 7 == 0 else b"key-%d" % index
        value = None if index % 11 == 0 else (b"value %d, " % (index % 5)) * (index % 9 * value_size // 9)
        made.append(Record(100 + index * (1 + index % 2), 1_700_000_000_000 + index * 37 % 50, key, value, headers))
    return sorted(made, key=lambda record: record.offset)


def ours() -> dict[str, bytearray]:
    """Batches of every kind that we build, by name."""
    found: dict[str, bytearray] = {}
    distinct = list({record.offset: record for record in some_records()}.values())
    large = list({record.offset: record for record in some_records(9000)}.values())
    for codec, levels in LEVELS.items():
        for level in levels:
            found[f"{codec.title}@{level}"] = build_batch(distinct, codec=codec, level=level)
            found[f"{codec.title}@{level}-large"] = build_batch(large, codec=codec, level=level)
    found["idempotent"] = build_batch(distinct, producer_id=5, producer_epoch=2, base_sequence=2**31 - 20, transactional=True)
    found["horizon"] = build_batch(distinct, delete_horizon_ms=1_700_000_099_000, codec=Codec.LZ4)
    found["append-time"] = build_batch(distinct, append_time_ms=1_700_000_012_345, codec=Codec.SNAPPY)
    found["patched"] = build_batch(distinct, codec=Codec.ZSTD)
    set_append_time(found["patched"], 0, 1_700_000_000_001)
    set_base_offset_and_epoch(found["patched"], 0, 10**12, 77)
    found["kept-range"] = build_batch(distinct[5:6], base_offset=90, last_offset_delta=5000, leader_epoch=3)
    found["emptied"] = build_batch([], base_offset=90, last_offset_delta=10, max_timestamp=5)
    found["marker"] = build_end_marker(is_commit=True, producer_id=4, producer_epoch=1, coordinator_epoch=9, timestamp_ms=1)
    rows = [record.astuple()[1:] for record in distinct]
    found["produced"] = build_produce_batch(rows, codec=Codec.GZIP)
    return found


def test_apache_kafka_reads_what_we_build(apache_kafka: ApacheKafka) -> None:
    batches = ours()
    lines = "".join(f"{name} {data.hex()}\n" for name, data in batches.items())
    answers = {
        row["name"]: row for row in map(json.loads, apache_kafka.run_java(JAVA, "read", stdin=lines).stdout.splitlines())
    }
    assert set(answers) == set(batches)
    for name, data in batches.items():
        assert answers[name]["error"] is None, name
        (theirs,) = answers[name]["batches"]
        view = BatchView(data)
        assert golden_records(theirs) == [plain(record) for record in read_records(view)], name
        for field in ("base_offset", "last_offset", "last_sequence", "max_timestamp", "count", "crc", "delete_horizon_ms"):
            assert theirs[field] == getattr(view, field), (name, field)


@pytest.mark.slow
@pytest.mark.parametrize(("made", "kept"), [(batches_anew, golden_batches), (answers_anew, golden_answers)])
def test_golden_records_are_what_apache_kafka_generates(apache_kafka: ApacheKafka, made: Any, kept: Any) -> None:
    assert {row["name"]: row for row in made(apache_kafka)} == kept(), "run `python -m tools.golden_records.make`"
