"""Compression for a topic, within bounds of size, time and place."""

from itertools import count

import pytest

from ottla.records.compression import Codec, decompress
from ottla.records.effort import FULL, ON_LOOP, Effort, TooExpensive, loop_compressed_bytes
from ottla.records.produced import validate
from ottla.records.produced.validate import recompress

PLAIN = bytes(range(256)) * 20_000
LEVELS = [(Codec.NONE, None), (Codec.GZIP, 9), (Codec.SNAPPY, None), (Codec.LZ4, 9), (Codec.LZ4, 17), (Codec.ZSTD, 19)]


@pytest.mark.parametrize(("codec", "level"), LEVELS)
def test_all_of_it_is_compressed_behind_the_header(codec: Codec, level: int | None) -> None:
    batch = bytearray(b"header")
    recompress(batch, PLAIN, codec, level, 1 << 30, FULL)
    assert batch[:6] == b"header"
    assert decompress(codec, memoryview(batch)[6:], 1 << 30) == PLAIN


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.SNAPPY])
def test_it_stops_when_the_result_is_too_large(codec: Codec) -> None:
    batch = bytearray()
    recompress(batch, PLAIN, codec, None, 1000, FULL)
    assert 1000 < len(batch) < 80_000


def test_the_fastest_level_is_used_when_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    levels: list[int | None] = []
    real = validate.compress_in_pieces

    def noted(codec: Codec, data: validate.Buffer, level: int | None) -> object:
        levels.append(level)
        return real(codec, data, level)

    monkeypatch.setattr(validate, "compress_in_pieces", noted)
    ticks = count()
    batch = bytearray(b"h")
    recompress(batch, PLAIN, Codec.GZIP, 9, 1 << 30, Effort(1 << 30, now_s=lambda: next(ticks) * 0.5))
    assert levels == [9, 1]
    assert decompress(Codec.GZIP, memoryview(batch)[1:], 1 << 30) == PLAIN


def test_it_stops_when_nobody_waits() -> None:
    with pytest.raises(TooExpensive):
        recompress(bytearray(), PLAIN, Codec.GZIP, 9, 1 << 30, Effort(1 << 30, is_wanted=lambda: False))


@pytest.mark.parametrize(("codec", "level"), LEVELS)
def test_only_a_little_is_compressed_on_the_loop(codec: Codec, level: int | None) -> None:
    size = loop_compressed_bytes(codec, level)
    assert 16 * 1024 <= size <= 256 * 1024
    recompress(bytearray(), PLAIN[:size], codec, level, 1 << 30, ON_LOOP)
    with pytest.raises(TooExpensive):
        recompress(bytearray(), PLAIN[: size + 1], codec, level, 1 << 30, ON_LOOP)
