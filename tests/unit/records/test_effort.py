"""What is too expensive for the loop is refused there, with nothing changed, and accepted with more effort."""

import pytest
from tests.support.logs.batches import T0, make_batch

from ottla.config.topic import LogConfig
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.records.compression import Codec
from ottla.records.effort import FULL, ON_LOOP, SMALL_BYTES, Effort, TooExpensive
from ottla.records.produced.validate import ValidBatch, validate_produced

COMPACTED = LogConfig(cleanup_policy=("compact",))
GZIP = LogConfig(compression_type="gzip", compression_gzip_level=9)
CODECS = [codec for codec in Codec if codec]


def validate(data: bytearray, config: LogConfig, effort: Effort) -> ValidBatch:
    return validate_produced(data, config, now_ms=T0, partition="t-0", effort=effort)


@pytest.mark.parametrize("codec", CODECS)
def test_what_decompresses_to_much_needs_more_effort(codec: Codec) -> None:
    data = make_batch(bytes(6 << 20), key=b"k", codec=codec)
    before = bytes(data)
    for effort in (ON_LOOP, Effort(SMALL_BYTES)):
        with pytest.raises(TooExpensive):
            validate(data, COMPACTED, effort)
        assert data == before
    assert validate(data, COMPACTED, FULL).data == before


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])  # snappy makes 1.5 MB of this, which is too large
def test_what_no_effort_may_decompress_is_refused(codec: Codec) -> None:
    data = make_batch(bytes(33 << 20), key=b"k", codec=codec)
    with pytest.raises(KafkaError) as refused:
        validate(data, COMPACTED, FULL)
    assert refused.value.code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("size_bytes", [100_000, 500_000])
def test_recompression_needs_more_effort(size_bytes: int) -> None:
    data = make_batch(bytes(range(250)) * (size_bytes // 250), codec=Codec.SNAPPY)
    with pytest.raises(TooExpensive):
        validate(data, GZIP, ON_LOOP)
    assert validate(data, GZIP, Effort(SMALL_BYTES)).view.codec == Codec.GZIP


@pytest.mark.parametrize("config", [COMPACTED, GZIP])
@pytest.mark.parametrize("codec", CODECS)
def test_small_batches_are_checked_on_the_loop(config: LogConfig, codec: Codec) -> None:
    assert validate(make_batch(bytes(10_000), key=b"k", codec=codec), config, ON_LOOP).view.count == 1
