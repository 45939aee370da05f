"""lz4: the frame format, with independent blocks, since Kafka's reader refuses linked ones.

    magic 04 22 4d 18 | flags | block size | [content size, 8 bytes] | header checksum | (size uint32 | block | [checksum])... |
    size 0 | [content checksum]        numbers little endian; the highest bit of a block's size says that it is stored plain

We write 64 KiB blocks without checksums (a batch has its CRC), as Kafka does. Like Kafka's reader, ours stops at the end of the
first frame and does not look at what follows.

Levels are 1 to 17, as in `compression.lz4.level`. The default, 9, means the fast compressor there and here; any other level
means the high one, whose levels this library counts from 3 to 12, so lower and higher ones mean these two.
"""

from collections.abc import Iterator
from struct import Struct

import cramjam

from ottla.errors import CorruptRecords
from ottla.records.compression.bounded import Buffer, decompress_bounded, level_in

LEVEL_DEFAULT = LEVEL_FASTEST = 9
_LEVEL_IN_PIECES_MAX = 9
"""Of this library's own levels. Its high compressor keeps the interpreter lock; above this, 64 KiB can take it 50 ms."""
_MAGIC = b"\x04\x22\x4d\x18"
_HEADER = _MAGIC + b"\x60\x40\x82"  # version 1, independent blocks; 64 KiB each; the checksum of these two
_BLOCK_SIZE = 64 * 1024
_SIZE = Struct("<I")
_STORED = 0x80000000
_END = b"\x00\x00\x00\x00"

_FLAG_INDEPENDENT = 0x20
_FLAG_BLOCK_CHECKSUM = 0x10
_FLAG_CONTENT_SIZE = 0x08
_FLAG_CONTENT_CHECKSUM = 0x04


def compress(data: Buffer, level: int | None) -> bytes:
    if level is None or level == LEVEL_DEFAULT:
        return b"".join(_compress_fast(data))
    chosen = max(3, min(12, level_in("lz4", level, 1, 17)))
    compressor = cramjam.lz4.Compressor(level=chosen, block_linked=False)
    compressor.compress(bytes(data))  # of all of cramjam, this call alone takes nothing but bytes
    return bytes(compressor.finish())


def compress_in_pieces(data: Buffer, level: int | None) -> Iterator[Buffer]:
    if level is None or level == LEVEL_DEFAULT:
        yield from _compress_fast(data)
        return
    chosen = max(3, min(_LEVEL_IN_PIECES_MAX, level_in("lz4", level, 1, 17)))
    compressor = cramjam.lz4.Compressor(level=chosen, block_linked=False)
    whole = memoryview(data)
    for start in range(0, len(whole), _BLOCK_SIZE):
        compressor.compress(bytes(whole[start : start + _BLOCK_SIZE]))
        yield bytes(compressor.flush())
    yield bytes(compressor.finish())


def _compress_fast(data: Buffer) -> Iterator[Buffer]:
    yield _HEADER
    whole = memoryview(data)
    for start in range(0, len(whole), _BLOCK_SIZE):
        plain = whole[start : start + _BLOCK_SIZE]
        block = bytes(cramjam.lz4.compress_block(plain, store_size=False))
        if len(block) < len(plain):
            yield _SIZE.pack(len(block))
            yield block
        else:
            yield _SIZE.pack(len(plain) | _STORED)
            yield plain
    yield _END


def decompress(data: Buffer, size_bytes_max: int) -> bytearray:
    whole = memoryview(data)
    end, blocks, block_size_max = _measure_frame(whole)
    return decompress_bounded("lz4", cramjam.lz4.decompress_into, whole[:end], size_bytes_max, blocks * block_size_max)


def has_linked_blocks(frame: memoryview) -> bool:
    """Whether `frame` begins as one whose blocks depend on each other."""
    return len(frame) >= len(_HEADER) and frame[:4] == _MAGIC and not frame[4] & _FLAG_INDEPENDENT


def _measure_frame(whole: memoryview) -> tuple[int, int, int]:
    """(where the frame ends, how many blocks it has, how large they can be); `CorruptRecords` where that cannot be."""
    if len(whole) < len(_HEADER) or whole[:4] != _MAGIC:
        raise CorruptRecords(f"{len(whole)} bytes said to be lz4 do not begin as an lz4 frame does", 0)
    if has_linked_blocks(whole):
        raise CorruptRecords("an lz4 frame with linked blocks: Kafka reads only frames with independent ones", 4)
    flags = whole[4]
    block_size_max = 1 << (8 + 2 * (whole[5] >> 4 & 7))
    checksum_size = 4 if flags & _FLAG_BLOCK_CHECKSUM else 0
    position = len(_HEADER) + (8 if flags & _FLAG_CONTENT_SIZE else 0)
    blocks = 0
    while position + _SIZE.size <= len(whole):
        size = _SIZE.unpack_from(whole, position)[0] & ~_STORED
        position += _SIZE.size
        if size == 0:
            end = position + (4 if flags & _FLAG_CONTENT_CHECKSUM else 0)
            if end > len(whole):
                break
            return end, blocks, block_size_max
        if size > block_size_max:
            raise CorruptRecords(
                f"an lz4 block of {size} bytes in a frame whose blocks have at most {block_size_max}", position
            )
        position += size + checksum_size
        blocks += 1
    raise CorruptRecords(f"an lz4 frame goes on after its {len(whole)} bytes: the batch is cut short", len(whole))
