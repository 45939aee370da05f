"""snappy in the stream framing of the Java library that Kafka uses (xerial):

    magic 82 53 4e 41 50 50 59 00 | version int32 | lowest compatible version int32 | (size int32 | raw snappy block)...

Blocks hold 32 KiB of plain bytes each. There are no levels.
"""

from struct import Struct

import cramjam

from ottla.errors import CorruptRecords
from ottla.records.compression.bounded import Buffer, too_large

_MAGIC = b"\x82SNAPPY\x00"
_HEADER = _MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_BLOCK_SIZE = 32 * 1024
_SIZE = Struct(">i")


def compress(data: Buffer, level: int | None) -> bytes:
    parts: list[bytes] = [_HEADER]
    with memoryview(data) as whole:
        for start in range(0, len(whole), _BLOCK_SIZE):
            block = bytes(cramjam.snappy.compress_raw(whole[start : start + _BLOCK_SIZE]))
            parts.append(_SIZE.pack(len(block)))
            parts.append(block)
    return b"".join(parts)


def decompress(data: Buffer, size_bytes_max: int) -> bytes:
    with memoryview(data) as whole:
        if bytes(whole[: len(_MAGIC)]) != _MAGIC:
            return _block(whole, size_bytes_max, len(whole))
        return _stream(whole, size_bytes_max)


def _stream(whole: memoryview, size_bytes_max: int) -> bytes:
    position = len(_HEADER)
    end = len(whole)
    if end < position:
        raise CorruptRecords(f"a snappy stream of {end} bytes is shorter than its own header")
    parts: list[bytes] = []
    left = size_bytes_max
    while position < end:
        if end - position < _SIZE.size:
            raise CorruptRecords(f"a snappy stream ends inside a block size, at byte {position} of {end}", position)
        (size,) = _SIZE.unpack_from(whole, position)
        position += _SIZE.size
        if size < 0 or size > end - position:
            raise CorruptRecords(f"a snappy block at byte {position} claims {size} bytes; {end - position} are left", position)
        part = _block(whole[position : position + size], left, end)
        left -= len(part)
        parts.append(part)
        position += size
    return b"".join(parts)


def _block(block: memoryview, size_bytes_max: int, compressed_size: int) -> bytes:
    try:
        size = cramjam.snappy.decompress_raw_len(block)
        if size > size_bytes_max:
            raise too_large("snappy", compressed_size, size_bytes_max)
        return bytes(cramjam.snappy.decompress_raw(block, output_len=size))
    except cramjam.DecompressionError as problem:
        raise CorruptRecords(f"{len(block)} bytes said to be snappy cannot be decompressed: {problem}") from None
