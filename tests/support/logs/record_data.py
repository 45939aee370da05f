"""Records and batches for tests: made up by Hypothesis, and Apache Kafka's own from tests/golden/records."""

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from ottla.records.kernels import Headers, Record, Row

GOLDEN = Path(__file__).parents[2] / "golden" / "records"
INT64_MAX = 2**63 - 1
INT64_MIN = -(2**63)

fields = st.none() | st.binary(max_size=40) | st.binary(min_size=60, max_size=300)
# Any text, and what is left of bytes that are no text: lone surrogates of the kind that stand for single bytes.
header_keys = st.text(max_size=12) | st.binary(max_size=6).map(lambda raw: raw.decode("utf-8", "surrogateescape"))
headers = st.lists(st.tuples(header_keys, fields), max_size=4).map(tuple)
usual_timestamps = st.integers(0, 2**42) | st.just(-1)
timestamps = usual_timestamps | st.integers(INT64_MIN, INT64_MAX)


def rows(min_size: int = 1, max_size: int = 12, stamps: st.SearchStrategy[int] = timestamps) -> st.SearchStrategy[list[Row]]:
    """Records that have no offsets yet."""
    return st.lists(st.tuples(stamps, fields, fields, headers), min_size=min_size, max_size=max_size)


@st.composite
def records(draw: st.DrawFn, min_size: int = 1, stamps: st.SearchStrategy[int] = timestamps) -> list[Record]:
    """Records whose offsets ascend, with gaps."""
    made: list[Record] = []
    offset = draw(st.integers(0, 2**40))
    for timestamp, key, value, found in draw(rows(min_size, stamps=stamps)):
        made.append(Record(offset, timestamp, key, value, found))
        offset += draw(st.integers(1, 3) | st.integers(1, 2**20))
    return made


def plain(record: Any) -> tuple[int, int, bytes | None, bytes | None, Headers]:
    """A record of either variant as a tuple, to be compared."""
    return (record.offset, record.timestamp, record.key, record.value, record.headers)


@cache
def golden_batches() -> dict[str, dict[str, Any]]:
    """What Apache Kafka's builder made, by name."""
    return {row["name"]: row for row in _rows("batches.jsonl.gz")}


@cache
def golden_answers() -> dict[str, dict[str, Any]]:
    """What Apache Kafka's broker answers to produced bytes, by name."""
    return {row["name"]: row for row in _rows("produce.jsonl.gz")}


def golden_records(batch: dict[str, Any]) -> list[tuple[int, int, bytes | None, bytes | None, Headers]]:
    """The records that Apache Kafka finds in a golden batch."""
    return [
        (offset, timestamp, _bytes(key), _bytes(value), tuple((name, _bytes(field)) for name, field in found))
        for offset, timestamp, key, value, found in batch["records"]
    ]


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def _rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress((GOLDEN / name).read_bytes()).splitlines()]
