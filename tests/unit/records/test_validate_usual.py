"""The batches that the kernel finds nothing to say about are those that validation accepts unchanged."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.config.topic import LogConfig
from ottla.records import validate
from ottla.records.builder import build_batch
from ottla.records.checksum import crc32c
from ottla.records.compression import Codec
from ottla.records.kernels import Record

NOW = 1_700_000_000_000

configs = st.builds(
    LogConfig,
    cleanup_policy=st.sampled_from([("delete",), ("compact",)]),
    compression_type=st.sampled_from(["producer", "producer", "uncompressed", "gzip"]),
    max_message_bytes=st.sampled_from([60, 150, 1_000_000]),
    message_timestamp_type=st.sampled_from(["CreateTime", "CreateTime", "LogAppendTime"]),
    message_timestamp_before_max_ms=st.sampled_from([2**63 - 1, 2**63 - 1, 50, 0]),
    message_timestamp_after_max_ms=st.sampled_from([3_600_000, 50, 0]),
)


@st.composite
def batches(draw: st.DrawFn) -> bytearray:
    """Mostly good ones; some with a field of the header, or any byte, changed."""
    times = draw(st.lists(st.integers(-100, 100), min_size=1, max_size=4))
    key = draw(st.sampled_from([None, b"k"]))
    producer = draw(st.booleans())
    batch = build_batch(
        [Record(index, NOW + time, key, b"value", ()) for index, time in enumerate(times)],
        codec=draw(st.sampled_from([Codec.NONE, Codec.NONE, Codec.GZIP, Codec.ZSTD])),
        transactional=producer and draw(st.booleans()),
        producer_id=7 if producer else -1,
        producer_epoch=0 if producer else -1,
        base_sequence=draw(st.sampled_from([-1, 0, 9])) if producer else -1,
    )
    if draw(st.booleans()):
        at = draw(st.integers(0, len(batch) - 1))
        batch[at] ^= draw(st.integers(1, 255))
        if draw(st.booleans()):
            batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4, "big")
    return batch


def usual(twin: Any, batch: bytearray, config: LogConfig, from_client: bool, version: int) -> Any:
    limits = twin.batch.BatchLimits(config, twin.columns.RecordWalk())
    front, back = b"before", b"behind"
    data = front + batch + back
    covered = memoryview(batch)[21:]
    found = limits.check(data, len(front), len(front) + len(batch), covered, NOW, from_client, version)
    return None if found is None else {name: getattr(found, name) for name in FIELDS}


FIELDS = ("attributes", "base_sequence", "count", "max_timestamp", "producer_epoch", "producer_id", "size_bytes")
versions = st.sampled_from([3, 7, 13])


@settings(max_examples=600, deadline=None)
@given(batch=batches(), config=configs, from_client=st.booleans(), version=versions)
def test_what_is_usual_is_accepted_unchanged(
    twin: Any, batch: bytearray, config: LogConfig, from_client: bool, version: int
) -> None:
    found = usual(twin, batch, config, from_client, version)
    if found is None:
        return
    data = bytearray(batch)
    accepted = validate.validate_produced(
        data, config, now_ms=NOW, partition="t-0", from_client=from_client, request_version=version
    )
    view = accepted.view
    assert (bytes(accepted.data), accepted.append_time_ms) == (bytes(batch), -1)
    assert found == {
        "attributes": view.attributes,
        "base_sequence": view.base_sequence,
        "count": view.last_offset_delta + 1,
        "max_timestamp": accepted.max_timestamp,
        "producer_epoch": view.producer_epoch,
        "producer_id": view.producer_id,
        "size_bytes": len(batch),
    }


@settings(max_examples=600, deadline=None)
@given(batch=batches(), config=configs, from_client=st.booleans(), version=versions)
def test_both_twins_find_the_same(twins: Any, batch: bytearray, config: LogConfig, from_client: bool, version: int) -> None:
    assert usual(twins[0], batch, config, from_client, version) == usual(twins[1], batch, config, from_client, version)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.ZSTD])
def test_most_batches_are_usual(twin: Any, codec: Codec) -> None:
    batch = build_batch([Record(0, NOW, None, b"value", ())], codec=codec)
    assert usual(twin, batch, LogConfig(), True, 13) is not None
    assert usual(twin, batch[:-1], LogConfig(), True, 13) is None


@pytest.mark.parametrize(("start", "end"), [(-1, 0), (0, 1), (1, 1)])
def test_nothing_is_read_beyond_the_data(twin: Any, start: int, end: int) -> None:
    batch = build_batch([Record(0, NOW, None, b"value", ())])
    limits = twin.batch.BatchLimits(LogConfig(), twin.columns.RecordWalk())
    assert limits.check(batch, start, len(batch) + end, memoryview(batch)[21:], NOW, True, 13) is None
