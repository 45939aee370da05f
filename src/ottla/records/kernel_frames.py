# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, annotation_typing=False
# cython: overflowcheck=False, cdivision=True
"""How many bytes compressed records can unpack to, from the sizes in their frames alone, in one source for two variants.

Nothing is decompressed: a batch of 1 MB has at most a few dozen block sizes to look at. Random bytes do not have the frame of
lz4, snappy or zstd, and a cut frame has no end. gzip has no sizes inside: only its first bytes are looked at.

    gzip    1f 8b 08 | flags, the highest three 0 | ...        deflate makes at most 1,032 bytes of one
    snappy  xerial's stream header, then (size int32 | block)..., or one raw block; a block begins with its plain size
    lz4     magic | flags | block size | ... | (size uint32 | block)... | size 0
    zstd    magic | descriptor | ... | (last, kind, size in 3 bytes | block)... | [checksum]; blocks hold 128 KiB at most

`compression/` has the formats in full and decides: a frame that does not pass here is decompressed there. The rules for both
variants are those of `kernel.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.records import kernel_fields as fields
from ottla.records import kernel_views as views

if TYPE_CHECKING:
    from ottla.records.kernel_fields import Buffer

_GZIP = 1
_SNAPPY = 2
_LZ4 = 3
_ZSTD = 4

_GZIP_BYTES_MIN = 20
_GZIP_EXPANSION_MAX = 1032
_SNAPPY_HEADER_BYTES = 16
_SNAPPY_EXPANSION_MAX = 22
_LZ4_HEADER_BYTES = 7
_LZ4_EXPANSION_MAX = 255
_ZSTD_BLOCK_BYTES_MAX = 128 * 1024


def plain_bytes_max(codec: int, data: Buffer, start: int, end: int) -> int:
    """The most that `data` from `start` to `end` can unpack to with `codec`; -1 if it does not look like that codec's."""
    if start < 0 or end > len(data) or start >= end:
        return -1
    raw = views.raw_of(data)
    if codec == _GZIP:
        return _gzip(raw, start, end)
    if codec == _SNAPPY:
        return _snappy(raw, start, end)
    if codec == _LZ4:
        return _lz4(raw, start, end)
    if codec == _ZSTD:
        return _zstd(raw, start, end)
    return -1


def _gzip(raw: Buffer, start: int, end: int) -> int:
    if end - start < _GZIP_BYTES_MIN or raw[start] != 0x1F or raw[start + 1] != 0x8B or raw[start + 2] != 8:
        return -1
    return -1 if raw[start + 3] & 0xE0 else (end - start) * _GZIP_EXPANSION_MAX


def _is_snappy_stream(raw: Buffer, at: int, end: int) -> bool:
    """Whether xerial's header is at `at`: 82 "SNAPPY" 00, version, lowest compatible version."""
    return (
        end - at >= _SNAPPY_HEADER_BYTES
        and raw[at] == 0x82
        and raw[at + 1] == 0x53
        and raw[at + 2] == 0x4E
        and raw[at + 3] == 0x41
        and raw[at + 4] == 0x50
        and raw[at + 5] == 0x50
        and raw[at + 6] == 0x59
        and raw[at + 7] == 0
        and fields.number(raw, at + 8, 4) >= 1
    )


def _snappy(raw: Buffer, start: int, end: int) -> int:
    if not _is_snappy_stream(raw, start, end):
        return _snappy_block(raw, start, end)
    plain = 0
    position = start
    while position < end:
        if _is_snappy_stream(raw, position, end):
            position += _SNAPPY_HEADER_BYTES
            continue
        if end - position < 4:
            return -1
        size = fields.number(raw, position, 4)
        position += 4
        if size <= 0 or size > end - position:
            return -1
        block = _snappy_block(raw, position, position + size)
        if block < 0:
            return -1
        plain += block
        position += size
    return plain


def _snappy_block(raw: Buffer, start: int, end: int) -> int:
    plain, position = fields.uvarint(raw, start, end)
    if position > end or plain > (end - start) * _SNAPPY_EXPANSION_MAX:
        return -1
    return plain


def _lz4(raw: Buffer, start: int, end: int) -> int:
    if (
        end - start < _LZ4_HEADER_BYTES
        or raw[start] != 0x04
        or raw[start + 1] != 0x22
        or raw[start + 2] != 0x4D
        or raw[start + 3] != 0x18
    ):
        return -1
    flags = raw[start + 4]
    block_bytes_max = 1 << (8 + 2 * (raw[start + 5] >> 4 & 7))
    checksum_bytes = 4 if flags & 0x10 else 0
    position = start + _LZ4_HEADER_BYTES + (8 if flags & 0x08 else 0)
    plain = 0
    while position + 4 <= end:
        size = _little(raw, position, 4) & 0x7FFFFFFF
        position += 4
        if size == 0:
            position += 4 if flags & 0x04 else 0
            return plain if position <= end else -1
        if size > block_bytes_max or size > end - position:
            return -1
        plain += min(block_bytes_max, size * _LZ4_EXPANSION_MAX)
        position += size + checksum_bytes
    return -1


def _zstd(raw: Buffer, start: int, end: int) -> int:
    plain = 0
    position = start
    while position < end:
        if end - position < 8 or raw[position + 1] != (0xB5 if raw[position] == 0x28 else 0x2A):
            return -1
        if raw[position] != 0x28:  # a skippable frame: 5x 2a 4d 18, size
            if raw[position] & 0xF0 != 0x50 or raw[position + 2] != 0x4D or raw[position + 3] != 0x18:
                return -1
            position += 8 + _little(raw, position + 4, 4)
            if position > end:
                return -1
            continue
        if raw[position + 2] != 0x2F or raw[position + 3] != 0xFD:
            return -1
        descriptor = raw[position + 4]
        is_single = descriptor & 0x20
        content = descriptor >> 6
        position += 5 + (0 if is_single else 1)
        position += 4 if descriptor & 3 == 3 else descriptor & 3
        content_bytes = (1 if is_single else 0) if content == 0 else 1 << content
        if end - position < content_bytes:
            return -1
        claimed = _little(raw, position, content_bytes) + (256 if content_bytes == 2 else 0)
        position += content_bytes
        blocks = 0
        is_last = 0
        while not is_last:
            if end - position < 3:
                return -1
            header = _little(raw, position, 3)
            is_last = header & 1
            kind = header >> 1 & 3
            size = header >> 3
            position += 3
            if kind == 3 or size > _ZSTD_BLOCK_BYTES_MAX:
                return -1
            blocks += size if kind < 2 else _ZSTD_BLOCK_BYTES_MAX
            position += 1 if kind == 1 else size
        position += 4 if descriptor & 4 else 0
        if position > end or claimed < 0 or claimed > blocks:
            return -1
        plain += claimed if content_bytes else blocks
    return plain


def _little(raw: Buffer, at: int, size: int) -> int:
    """The number without a sign that the `size` bytes at `at` are, the lowest first."""
    value = 0
    for index in range(size):
        wide = raw[at + index]
        value |= wide << (8 * index)
    return value
