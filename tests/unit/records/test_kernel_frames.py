"""What the sizes in compressed frames say: never less than what is inside, and nothing about bytes that are no frame."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.cases.examples import examples
from tests.support.logs.record_data import golden_batches

from ottla.errors import CorruptRecords
from ottla.records.batch import BatchView
from ottla.records.compression import Codec, compress, decompress

CODECS = [codec for codec in Codec if codec is not Codec.NONE]
texts = st.binary(max_size=2000) | st.lists(st.sampled_from([b"kafka", b" ", b"ottla", b"\x00" * 9000]), max_size=60).map(
    b"".join
)


def size_max(variant: Any, codec: int, data: bytes) -> int:
    """With bytes around `data` that do not belong to it."""
    found = variant.frames.plain_bytes_max(codec, b"before" + data + b"behind", 6, 6 + len(data))
    assert isinstance(found, int)
    return found


@settings(max_examples=examples(200), deadline=None)
@given(data=texts, codec=st.sampled_from(CODECS), times=st.integers(1, 2))
def test_a_frame_holds_no_more_than_its_sizes_say(variant: Any, data: bytes, codec: Codec, times: int) -> None:
    frame = bytes(compress(codec, data)) * (1 if codec is Codec.LZ4 else times)  # Kafka reads one frame of lz4
    assert size_max(variant, codec, frame) >= len(decompress(codec, frame, 1 << 30))


@pytest.mark.parametrize("name", sorted(golden_batches()))
def test_frames_of_apache_kafka_are_recognized(variant: Any, name: str) -> None:
    view = BatchView(bytes.fromhex(golden_batches()[name]["bytes"]))
    if view.is_compressed and view.count:
        plain = decompress(view.codec, view.payload, 1 << 30)
        assert size_max(variant, view.codec, bytes(view.payload)) >= len(plain)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
def test_random_bytes_are_no_frame(variant: Any, codec: Codec) -> None:
    chance = Random(5)
    for size in (0, 1, 7, 20, 300, 5000):
        assert size_max(variant, codec, chance.randbytes(size)) == -1


@pytest.mark.parametrize("codec", [Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_a_frame_that_is_cut_is_none(variant: Any, codec: Codec) -> None:
    frame = bytes(compress(codec, Random(6).randbytes(200_000)))
    assert size_max(variant, codec, frame) >= 200_000
    for cut in (1, 5, 60_000, len(frame) - 20):
        assert size_max(variant, codec, frame[:-cut]) == -1


def test_a_zstd_frame_cannot_claim_more_than_its_blocks_hold(variant: Any) -> None:
    claimed = (1 << 30).to_bytes(4, "little")
    block = (5 << 3 | 1).to_bytes(3, "little") + b"plain"
    assert size_max(variant, Codec.ZSTD, b"\x28\xb5\x2f\xfd\xa0" + (5).to_bytes(4, "little") + block) == 5
    assert size_max(variant, Codec.ZSTD, b"\x28\xb5\x2f\xfd\xa0" + claimed + block) == -1


def test_a_skippable_zstd_frame_holds_nothing(variant: Any) -> None:
    skippable = b"\x53\x2a\x4d\x18" + (3).to_bytes(4, "little") + b"abc"
    frame = bytes(compress(Codec.ZSTD, b"text"))
    assert size_max(variant, Codec.ZSTD, skippable + frame) == size_max(variant, Codec.ZSTD, frame)
    assert size_max(variant, Codec.ZSTD, skippable[:-1]) == -1


def test_no_codec_has_no_frame(variant: Any) -> None:
    assert size_max(variant, 0, b"anything at all") == size_max(variant, 5, b"anything at all") == -1


@st.composite
def damaged(draw: st.DrawFn) -> tuple[Codec, bytes]:
    codec = draw(st.sampled_from(CODECS))
    frame = bytearray(compress(codec, draw(texts)))
    for _ in range(draw(st.integers(0, 3))):
        frame[draw(st.integers(0, len(frame) - 1))] = draw(st.integers(0, 255))
    return codec, bytes(frame[: draw(st.integers(0, len(frame)))] if draw(st.booleans()) else frame)


@settings(max_examples=examples(500), deadline=None)
@given(damaged())
def test_what_can_be_unpacked_is_bounded_also_if_damaged(variants: Any, case: tuple[Codec, bytes]) -> None:
    codec, frame = case
    pure, compiled = (size_max(variant, codec, frame) for variant in variants)
    assert pure == compiled
    try:
        plain = decompress(codec, frame, 1 << 24)
    except CorruptRecords:
        return
    assert pure == -1 or pure >= len(plain)
