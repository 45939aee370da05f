"""The four codecs of Kafka's record batches, each in the framing that Kafka's clients write and read.

`decompress` is bounded: it never gives more than `size_bytes_max` bytes and never allocates much more than it gives, even
if the compressed bytes promise more. Bytes that cannot be decompressed are `CorruptRecords`, nothing else. The compression
library is imported with the first use, not at start-up.
"""

from collections.abc import Iterator
from enum import IntEnum
from functools import cache
from importlib import import_module
from typing import Protocol, cast

from ottla.errors import CorruptRecords

Buffer = bytes | bytearray | memoryview


class Codec(IntEnum):
    """The number in the lowest three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @property
    def title(self) -> str:
        """The name in `compression.type`."""
        return self.name.lower()


class ExpandsTooFar(CorruptRecords):
    """The compressed bytes unpack to more than the caller allows."""


class _Implementation(Protocol):
    LEVEL_FASTEST: int | None

    def compress(self, data: Buffer, level: int | None) -> Buffer: ...
    def compress_in_pieces(self, data: Buffer, level: int | None) -> Iterator[Buffer]: ...
    def decompress(self, data: Buffer, size_bytes_max: int) -> bytes | bytearray: ...


@cache
def _implementation(codec: Codec) -> _Implementation:
    return cast(_Implementation, import_module(f"ottla.records.compression.{codec.title}"))


def compress(codec: Codec, data: Buffer, level: int | None = None) -> Buffer:
    """`data` compressed; `level` None means Kafka's default for the codec, and is ignored by codecs without levels."""
    if codec == Codec.NONE:
        return data
    return _implementation(codec).compress(data, level)


def compress_in_pieces(codec: Codec, data: Buffer, level: int | None = None) -> Iterator[Buffer]:
    """Like `compress`, but in pieces that together are a valid stream, so that a caller can stop in between.

    The work for one piece is bounded: hostile data takes some codecs seconds for each megabyte.
    """
    if codec == Codec.NONE:
        return iter((data,))
    return _implementation(codec).compress_in_pieces(data, level)


def fastest_level(codec: Codec) -> int | None:
    """The level of `codec` that never takes long; None if it has no levels."""
    return None if codec == Codec.NONE else _implementation(codec).LEVEL_FASTEST


def decompress(codec: Codec, data: Buffer, size_bytes_max: int) -> bytes:
    """`data` decompressed, if that yields at most `size_bytes_max` bytes; else `ExpandsTooFar`, which is a `CorruptRecords`."""
    if codec == Codec.NONE:
        if len(data) > size_bytes_max:
            raise ExpandsTooFar(f"{len(data)} bytes of records are more than the {size_bytes_max} allowed here")
        return bytes(data)
    plain = _implementation(codec).decompress(data, size_bytes_max)
    return plain if isinstance(plain, bytes) else bytes(plain)


def decompress_large(codec: Codec, data: Buffer, size_bytes_max: int) -> bytes | bytearray:
    """Like `decompress`, without a last copy of the result: that would double the memory, and hold the interpreter lock."""
    return _implementation(codec).decompress(data, size_bytes_max)
