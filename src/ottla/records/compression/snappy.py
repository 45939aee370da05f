"""snappy in the stream framing of the Java library that Kafka uses (xerial); there are no levels:

    magic 82 53 4e 41 50 50 59 00 | version int32 | lowest compatible version int32 | (size int32 | raw snappy block)...

We write blocks of 32 KiB of plain bytes, as that library does. As it does, too, we read streams that were put one behind the
other, and take bytes without the magic for one raw block, which is what some clients write.
"""

from collections.abc import Iterator
from struct import Struct

import cramjam

from ottla.errors import CorruptRecords
from ottla.records.compression.bounded import Buffer, too_large

LEVEL_FASTEST = None
_MAGIC = b"\x82SNAPPY\x00"
_HEADER = _MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_BLOCK_SIZE = 32 * 1024
_SIZE = Struct(">i")
_VERSIONS = Struct(">ii")
_MAGIC_AS_SIZE = _SIZE.unpack_from(_MAGIC)[0]
_VERSION_MIN = 1
_EXPANSION_MAX = 22
"""No element of a block puts out more than 64 bytes for each 3 it takes, so a block that says more is lying."""


def compress(data: Buffer, level: int | None) -> bytes:
    return b"".join(compress_in_pieces(data, level))


def compress_in_pieces(data: Buffer, level: int | None) -> Iterator[bytes]:
    yield _HEADER
    whole = memoryview(data)
    for start in range(0, len(whole), _BLOCK_SIZE):
        block = bytes(cramjam.snappy.compress_raw(whole[start : start + _BLOCK_SIZE]))
        yield _SIZE.pack(len(block))
        yield block


def decompress(data: Buffer, size_bytes_max: int) -> bytes:
    whole = memoryview(data)
    if whole[: len(_MAGIC)] != _MAGIC:
        return _block(whole, size_bytes_max, len(whole))
    parts: list[bytes] = []
    left = size_bytes_max
    position = _after_header(whole, 0)
    end = len(whole)
    while position < end:
        if end - position < _SIZE.size:
            raise CorruptRecords(f"a snappy stream ends inside a block size, at byte {position} of {end}", position)
        (size,) = _SIZE.unpack_from(whole, position)
        if size == _MAGIC_AS_SIZE:
            position = _after_header(whole, position)
            continue
        position += _SIZE.size
        if size < 0 or size > end - position:
            raise CorruptRecords(f"a snappy block at byte {position} claims {size} bytes; {end - position} are left", position)
        part = _block(whole[position : position + size], left, end)
        left -= len(part)
        parts.append(part)
        position += size
    return b"".join(parts)


def _after_header(whole: memoryview, position: int) -> int:
    """Where the blocks begin, after the stream header at `position`."""
    if len(whole) - position < len(_HEADER) or whole[position : position + len(_MAGIC)] != _MAGIC:
        raise CorruptRecords(f"a snappy stream has a damaged header at byte {position}", position)
    version, _ = _VERSIONS.unpack_from(whole, position + len(_MAGIC))
    if version < _VERSION_MIN:
        raise CorruptRecords(f"a snappy stream of version {version}: the lowest there is is {_VERSION_MIN}", position)
    return position + len(_HEADER)


def _block(block: memoryview, size_bytes_max: int, compressed_size: int) -> bytes:
    try:
        size = cramjam.snappy.decompress_raw_len(block)
        if size > len(block) * _EXPANSION_MAX:
            raise CorruptRecords(f"a snappy block of {len(block)} bytes claims to hold {size}, which none can")
        if size > size_bytes_max:
            raise too_large("snappy", compressed_size, size_bytes_max)
        out = bytearray(size)
        written = cramjam.snappy.decompress_raw_into(block, out)
    except cramjam.DecompressionError as problem:
        raise CorruptRecords(f"{len(block)} bytes said to be snappy cannot be decompressed: {problem}") from None
    return bytes(memoryview(out)[:written])
