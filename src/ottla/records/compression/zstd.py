"""zstd: one or more frames. Levels -131072 to 22, as in `compression.zstd.level`; the default is 3.

    magic 28 b5 2f fd | descriptor | [window, 1 byte] | [dictionary id] | [content size] | blocks...

A frame may say how much it holds. Most clients write that, Java's does not. It is taken as a hint for how large a buffer to
begin with; a frame that says more than is allowed is refused unread, since what it says is too much or not true.
"""

from collections.abc import Iterator

import cramjam

from ottla.records.compression.bounded import Buffer, decompress_bounded, level_in, too_large

LEVEL_DEFAULT = 3
LEVEL_FASTEST = 1
_PIECE_SIZE = 1 << 20
"""A frame for each megabyte: the highest levels take 170 MB and more for a frame of 31 MB, and a few for one of this size."""


def compress(data: Buffer, level: int | None) -> bytes:
    return bytes(cramjam.zstd.compress(data, _level(level)))


def compress_in_pieces(data: Buffer, level: int | None) -> Iterator[bytes]:
    whole = memoryview(data)
    for start in range(0, max(len(whole), 1), _PIECE_SIZE):
        yield bytes(cramjam.zstd.compress(whole[start : start + _PIECE_SIZE], _level(level)))


def _level(level: int | None) -> int:
    return LEVEL_DEFAULT if level is None else level_in("zstd", level, -131072, 22)


def decompress(data: Buffer, size_bytes_max: int) -> bytearray:
    content_size = _content_size(data)
    if content_size is not None and content_size > size_bytes_max:
        raise too_large("zstd", len(data), size_bytes_max)
    return decompress_bounded("zstd", cramjam.zstd.decompress_into, data, size_bytes_max, content_size)


def _content_size(data: Buffer) -> int | None:
    """How many bytes the first frame says it holds; None where it does not say."""
    if len(data) < 5:
        return None
    descriptor = data[4]
    is_single = descriptor & 0x20
    size = (1 if is_single else 0, 2, 4, 8)[descriptor >> 6]
    start = 5 + (0 if is_single else 1) + (0, 1, 2, 4)[descriptor & 0x03]
    if size == 0 or len(data) < start + size:
        return None
    content = int.from_bytes(data[start : start + size], "little")
    return content + 256 if size == 2 else content
