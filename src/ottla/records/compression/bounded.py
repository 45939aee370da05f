"""Decompression into buffers that grow with what comes out, up to a cap; and what else the codecs share.

cramjam's one-shot functions allocate all that the stream expands to, so they are never called. `decompress_into` a buffer that
is too small fails with a message of its own; the buffer is then made four times larger and the work done again, which costs
at most a third more than knowing the size beforehand.
"""

from collections.abc import Callable

import cramjam

from ottla.errors import CorruptRecords
from ottla.records.compression import ExpandsTooFar
from ottla.records.kernels import new_buffers

Buffer = bytes | bytearray | memoryview

_TOO_SMALL = "failed to write whole buffer"
_GUESS_MIN = 4096
_GROWTH = 4
_HINT_MIN = 256 * 1024
_HINT_FACTOR = 16
"""A hint is believed as far as costs little if it lies: this much, or so many times the compressed size."""


def decompress_bounded(
    name: str, into: Callable[[Buffer, bytearray], int], data: Buffer, size_bytes_max: int, size_bytes_hint: int | None = None
) -> bytearray:
    """What `into` makes of `data`. `size_bytes_hint` is what the stream says of itself: enough room for it, if that is true."""
    compressed_size = len(data)
    capacity = max(_GUESS_MIN, compressed_size * _GROWTH)
    if size_bytes_hint is not None:
        capacity = min(size_bytes_hint, max(_HINT_MIN, compressed_size * _HINT_FACTOR))
    capacity = max(1, min(capacity, size_bytes_max))
    while True:
        (out,) = new_buffers([capacity])  # not zeroed where kernels are compiled: that takes memory, and the interpreter lock
        try:
            size = into(data, out)
        except cramjam.DecompressionError as problem:
            if _TOO_SMALL not in str(problem):
                raise CorruptRecords(f"{compressed_size} bytes said to be {name} cannot be decompressed: {problem}") from None
        else:
            if size > size_bytes_max:
                raise too_large(name, compressed_size, size_bytes_max)
            del out[size:]
            return out
        if capacity >= size_bytes_max:
            raise too_large(name, compressed_size, size_bytes_max)
        capacity = min(size_bytes_max, capacity * _GROWTH)


def level_in(name: str, level: int, lowest: int, highest: int) -> int:
    """`level`, if Kafka's configuration allows it for this codec."""
    if not lowest <= level <= highest:
        raise ValueError(f"{name} has no compression level {level}: use {lowest} to {highest}, or none for the default")
    return level


def too_large(name: str, compressed_size: int, size_bytes_max: int) -> ExpandsTooFar:
    """The error for a stream that expands beyond the cap."""
    return ExpandsTooFar(
        f"{compressed_size} bytes of {name} decompress to more than the {size_bytes_max} bytes allowed here: the batch is "
        "damaged or a decompression bomb"
    )
