"""The short way through validation lets through only what the long way accepts unchanged."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.config.topic import LogConfig
from ottla.errors import KafkaError
from ottla.records import validate
from ottla.records.builder import build_batch
from ottla.records.compression import Codec
from ottla.records.kernels import Record

NOW = 1_700_000_000_000

configs = st.builds(
    LogConfig,
    cleanup_policy=st.sampled_from([("delete",), ("compact",)]),
    compression_type=st.sampled_from(["producer", "producer", "uncompressed", "gzip"]),
    max_message_bytes=st.sampled_from([60, 150, 1_000_000]),
    message_timestamp_type=st.sampled_from(["CreateTime", "CreateTime", "LogAppendTime"]),
    message_timestamp_before_max_ms=st.sampled_from([2**63 - 1, 50, 0]),
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
        codec=draw(st.sampled_from([Codec.NONE, Codec.NONE, Codec.GZIP])),
        transactional=producer and draw(st.booleans()),
        producer_id=7 if producer else -1,
        producer_epoch=0 if producer else -1,
        base_sequence=draw(st.sampled_from([-1, 0, 9])) if producer else -1,
    )
    if draw(st.booleans()):
        at = draw(st.integers(0, len(batch) - 1))
        batch[at] ^= draw(st.integers(1, 255))
        if draw(st.booleans()):
            batch[17:21] = validate.crc32c(bytes(batch[21:])).to_bytes(4, "big")
    return batch


def judged(batch: bytearray, config: LogConfig, from_client: bool) -> Any:
    data = bytearray(batch)
    try:
        accepted = validate.validate_produced(data, config, now_ms=NOW, partition="t-0", from_client=from_client)
    except KafkaError as refused:
        return refused.code
    return accepted.max_timestamp, accepted.append_time_ms, bytes(accepted.data), bytes(data)


@settings(max_examples=600, deadline=None)
@given(batch=batches(), config=configs, from_client=st.booleans())
def test_both_ways_agree(batch: bytearray, config: LogConfig, from_client: bool) -> None:
    short = judged(batch, config, from_client)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(validate, "_usual_batch", lambda *_: None)
        assert judged(batch, config, from_client) == short


def test_the_usual_batch_takes_the_short_way() -> None:
    batch = build_batch([Record(0, NOW, None, b"value", ())])
    assert validate._usual_batch(batch, LogConfig(), NOW, True) is not None
