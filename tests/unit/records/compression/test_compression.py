"""The codecs: round trips at every level, Kafka's framings, and bounds on what comes out."""

import subprocess
import sys
import tracemalloc

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.logs.record_data import golden_batches

from ottla.errors import CorruptRecords
from ottla.records.batch import BatchView
from ottla.records.compression import Codec, compress, decompress

MEBIBYTE = 1 << 20
CODECS = [codec for codec in Codec if codec is not Codec.NONE]
LEVELS = {Codec.GZIP: [-1, 1, 6, 9], Codec.SNAPPY: [None], Codec.LZ4: [1, 2, 9, 12, 17], Codec.ZSTD: [-131072, -1, 0, 1, 3, 22]}
PAST_THE_END = {Codec.GZIP: [-2, 0, 10], Codec.LZ4: [0, 18, -1], Codec.ZSTD: [-131073, 23]}

texts = st.binary(max_size=2000) | st.lists(st.sampled_from([b"kafka", b" ", b"ottla", b"\x00" * 30]), max_size=300).map(
    b"".join
)


def payload(name: str) -> bytes:
    return bytes(BatchView(bytes.fromhex(golden_batches()[name]["bytes"])).payload)


@given(texts, st.sampled_from(CODECS))
def test_what_is_compressed_is_decompressed(data: bytes, codec: Codec) -> None:
    assert decompress(codec, compress(codec, data), len(data)) == data


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("size", [0, 1, 32 * 1024, 32 * 1024 + 1, 64 * 1024, 64 * 1024 + 1, 300_000])
def test_block_boundaries(codec: Codec, size: int) -> None:
    noise = bytes(cramjam.zstd.compress(bytes(range(256)) * 2000))[:size]  # compressed data is incompressible
    for data in (bytes(size), (noise * (size // max(1, len(noise)) + 1))[:size]):
        assert decompress(codec, memoryview(bytearray(compress(codec, memoryview(data)))), size) == data


@pytest.mark.parametrize(("codec", "level"), [(codec, level) for codec, levels in LEVELS.items() for level in levels])
def test_every_level_that_the_configuration_allows(codec: Codec, level: int | None) -> None:
    data = b"some words and some more words, " * 500
    compressed = compress(codec, data, level)
    assert decompress(codec, compressed, len(data)) == data
    if level != -131072:
        assert len(compressed) < len(data) // 4


@pytest.mark.parametrize(("codec", "level"), [(codec, level) for codec, levels in PAST_THE_END.items() for level in levels])
def test_invalid_levels_are_refused(codec: Codec, level: int) -> None:
    with pytest.raises(ValueError, match=f"no compression level {level}"):
        compress(codec, b"data", level)


@pytest.mark.parametrize("codec", list(Codec))
def test_output_above_the_limit_is_refused(codec: Codec) -> None:
    data = b"abcdefgh" * 10_000
    compressed = compress(codec, data)
    assert decompress(codec, compressed, len(data)) == data
    for allowed in (len(data) - 1, 1, 0):
        with pytest.raises(CorruptRecords, match="allowed here"):
            decompress(codec, compressed, allowed)


@pytest.mark.parametrize("codec", CODECS)
def test_decompression_bomb_is_refused_with_little_memory(codec: Codec) -> None:
    bomb = bytes(compress(codec, bytes(64 * MEBIBYTE)))
    tracemalloc.start()
    try:
        with pytest.raises(CorruptRecords, match="bomb"):
            decompress(codec, bomb, 2 * MEBIBYTE)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * MEBIBYTE


@pytest.mark.parametrize("codec", CODECS)
def test_truncated_streams_are_refused(codec: Codec) -> None:
    data = b"some words and some more words, " * 40
    compressed = bytes(compress(codec, data))
    for kept in range(len(compressed)):
        if codec is Codec.SNAPPY and kept == 16:
            continue  # a stream header and no blocks: an empty stream
        with pytest.raises(CorruptRecords):
            decompress(codec, compressed[:kept], len(data))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("garbage", [b"\xff" * 40, b"garbage", b"\x00" * 9])
def test_garbage_is_refused(codec: Codec, garbage: bytes) -> None:
    with pytest.raises(CorruptRecords):
        decompress(codec, garbage, MEBIBYTE)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.ZSTD, Codec.SNAPPY])
def test_concatenated_streams_are_decompressed(codec: Codec) -> None:
    data = bytes(compress(codec, b"one, ")) + bytes(compress(codec, b"two, ")) + bytes(compress(codec, b"three"))
    assert decompress(codec, data, 15) == b"one, two, three"
    with pytest.raises(CorruptRecords, match="allowed here"):
        decompress(codec, data, 14)


def test_bytes_after_an_lz4_frame_or_gzip_member_are_ignored() -> None:
    for codec in (Codec.LZ4, Codec.GZIP):
        assert decompress(codec, bytes(compress(codec, b"one")) + b"garbage", 3) == b"one"
    frames = bytes(compress(Codec.LZ4, b"one")) + bytes(compress(Codec.LZ4, b"two"))
    assert decompress(Codec.LZ4, frames, 3) == b"one"


@pytest.mark.parametrize(("codec", "header_size"), [(Codec.SNAPPY, 16), (Codec.LZ4, 7)])
def test_the_framing_is_that_of_apache_kafka(codec: Codec, header_size: int) -> None:
    for name in (f"codec-{codec.title}", f"codec-{codec.title}-large"):
        theirs = payload(name)
        plain = decompress(codec, theirs, MEBIBYTE)
        framed = bytes(compress(codec, plain))
        assert framed[:header_size] == theirs[:header_size]
        assert abs(len(framed) - len(theirs)) < len(theirs) // 10


class TestLz4:
    def test_blocks_are_independent(self) -> None:
        for level in LEVELS[Codec.LZ4]:
            assert bytes(compress(Codec.LZ4, bytes(200_000), level))[4] & 0x20

    def test_linked_blocks_are_refused(self) -> None:
        compressor = cramjam.lz4.Compressor(block_linked=True)
        compressor.compress(bytes(200_000))
        with pytest.raises(CorruptRecords, match="linked"):
            decompress(Codec.LZ4, bytes(compressor.finish()), MEBIBYTE)

    def test_checksums_of_blocks_and_content_are_read_and_checked(self) -> None:
        compressor = cramjam.lz4.Compressor(content_checksum=True, block_linked=False)
        compressor.compress(b"some words " * 10_000)
        framed = bytearray(compressor.finish())
        assert framed[4] & 0x14 == 0x14
        assert decompress(Codec.LZ4, framed, MEBIBYTE) == b"some words " * 10_000
        for position in (len(framed) - 1, len(framed) // 2):
            damaged = bytearray(framed)
            damaged[position] ^= 1
            with pytest.raises(CorruptRecords):
                decompress(Codec.LZ4, damaged, MEBIBYTE)

    def test_block_larger_than_the_frame_allows_is_refused(self) -> None:
        framed = bytearray(compress(Codec.LZ4, b"some words " * 10_000))
        framed[7:11] = (65_537).to_bytes(4, "little")
        with pytest.raises(CorruptRecords, match="65537"):
            decompress(Codec.LZ4, framed, MEBIBYTE)


class TestZstd:
    def test_frame_with_a_size_above_the_limit_is_refused_unread(self) -> None:
        bomb = bytes(compress(Codec.ZSTD, bytes(64 * MEBIBYTE)))
        tracemalloc.start()
        try:
            with pytest.raises(CorruptRecords, match="bomb"):
                decompress(Codec.ZSTD, bomb, 32 * MEBIBYTE)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < MEBIBYTE

    def test_frame_with_a_wrong_size_is_refused(self) -> None:
        frame = bytearray(compress(Codec.ZSTD, b"some words " * 30))  # 330 bytes: two bytes of size, from 256
        assert frame[4] >> 6 == 1
        for lie in (0, 73, 75, 0xFFFF):
            frame[5:7] = lie.to_bytes(2, "little")
            with pytest.raises(CorruptRecords):
                decompress(Codec.ZSTD, frame, MEBIBYTE)


class TestSnappy:
    def test_a_raw_block_is_read(self) -> None:
        assert (
            decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(b"words, words, words")), 19) == b"words, words, words"
        )

    def test_block_with_an_impossible_size_is_refused(self) -> None:
        lie = b"\xff\xff\xff\x3f" + b"\x00a"  # a claimed size of 128 MiB - 1
        with pytest.raises(CorruptRecords, match="which none can"):
            decompress(Codec.SNAPPY, lie, 1 << 30)

    @pytest.mark.parametrize("size", [-1, 100, 2**31 - 1])
    def test_wrong_block_size_is_refused(self, size: int) -> None:
        stream = bytearray(compress(Codec.SNAPPY, b"some words"))
        stream[16:20] = size.to_bytes(4, "big", signed=True)
        with pytest.raises(CorruptRecords, match="claims"):
            decompress(Codec.SNAPPY, stream, MEBIBYTE)

    def test_version_0_is_refused(self) -> None:
        stream = bytearray(compress(Codec.SNAPPY, b"some words"))
        stream[11] = 0
        with pytest.raises(CorruptRecords, match="version 0"):
            decompress(Codec.SNAPPY, stream, MEBIBYTE)


def test_names_are_those_of_compression_type() -> None:
    assert [codec.title for codec in Codec] == ["none", "gzip", "snappy", "lz4", "zstd"]


def test_compression_library_is_imported_on_first_use() -> None:
    program = (
        "import sys, ottla.records.reader, ottla.records.produced.validate, ottla.records.columns;"
        "assert 'cramjam' not in sys.modules;"
        "from ottla.records.compression import Codec, compress; compress(Codec.ZSTD, b''); assert 'cramjam' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
