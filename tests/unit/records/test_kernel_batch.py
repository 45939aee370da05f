"""The fast check of batches: what passes it is what validation accepts unchanged, in both variants."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.cases.examples import examples

from ottla.config.topic import LogConfig
from ottla.records.builder import build_batch
from ottla.records.checksum import crc32c
from ottla.records.compression import Codec
from ottla.records.decline import Decline
from ottla.records.kernels import Record
from ottla.records.layout import CRC_AT, CRC_START
from ottla.records.produced import validate
from ottla.records.produced.inspection import Inspection

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
        codec=draw(st.sampled_from([Codec.NONE, Codec.NONE, *Codec])),
        transactional=producer and draw(st.booleans()),
        producer_id=7 if producer else -1,
        producer_epoch=0 if producer else -1,
        base_sequence=draw(st.sampled_from([-1, 0, 9])) if producer else -1,
    )
    if draw(st.booleans()):
        at = draw(st.integers(0, len(batch) - 1))
        batch[at] ^= draw(st.integers(1, 255))
        if draw(st.booleans()):
            batch[CRC_AT:CRC_START] = crc32c(bytes(batch[CRC_START:])).to_bytes(4, "big")
    return batch


def checked(variant: Any, batch: bytearray, config: LogConfig, from_client: bool, version: int) -> Any:
    limits = variant.batch.BatchLimits(config, variant.columns.RecordWalk(), Inspection())
    front, back = b"before", b"behind"
    data = front + batch + back
    covered = memoryview(batch)[CRC_START:]
    found = limits.check(data, len(front), len(front) + len(batch), covered, NOW, from_client, version)
    assert found.limits is limits
    passed = {name: getattr(found, name) for name in FIELDS} if found.decline == Decline.NO else None
    return Decline(found.decline), passed


FIELDS = ("attributes", "base_sequence", "count", "max_timestamp", "producer_epoch", "producer_id", "size_bytes")
versions = st.sampled_from([3, 7, 13])


@settings(max_examples=examples(600), deadline=None)
@given(batch=batches(), config=configs, from_client=st.booleans(), version=versions)
def test_validation_accepts_unchanged_what_passes(
    variant: Any, batch: bytearray, config: LogConfig, from_client: bool, version: int
) -> None:
    decline, found = checked(variant, batch, config, from_client, version)
    if decline is not Decline.NO:
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


@settings(max_examples=examples(600), deadline=None)
@given(batch=batches(), config=configs, from_client=st.booleans(), version=versions)
def test_both_variants_find_the_same(
    variants: Any, batch: bytearray, config: LogConfig, from_client: bool, version: int
) -> None:
    pure, compiled = (checked(variant, batch, config, from_client, version) for variant in variants)
    assert pure == compiled


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.ZSTD])
def test_an_ordinary_batch_passes_and_a_torn_one_does_not(variant: Any, codec: Codec) -> None:
    batch = build_batch([Record(0, NOW, None, b"value", ())], codec=codec)
    assert checked(variant, batch, LogConfig(), True, 13)[0] is Decline.NO
    assert checked(variant, batch[:-1], LogConfig(), True, 13)[0] is Decline.HEADER


@pytest.mark.parametrize(("start", "end"), [(-1, 0), (0, 1), (1, 1)])
def test_nothing_is_read_beyond_the_data(variant: Any, start: int, end: int) -> None:
    batch = build_batch([Record(0, NOW, None, b"value", ())])
    limits = variant.batch.BatchLimits(LogConfig(), variant.columns.RecordWalk(), Inspection())
    assert limits.check(batch, start, len(batch) + end, memoryview(batch)[CRC_START:], NOW, True, 13).decline == Decline.HEADER
