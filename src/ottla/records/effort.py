"""How much work the check of a produced batch may be, in the place where it is done.

A few kilobytes can decompress to tens of megabytes, and hostile data takes some codecs seconds for each megabyte. So the event
loop does what is cheap for certain, and raises `TooExpensive` for the rest; a worker thread does that, first with `SMALL`, then
with `FULL` effort. The numbers are measured (docs/decisions/0009-every-request-has-a-price.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ottla.records.compression import Codec

UNLIMITED = 1 << 62


class TooExpensive(Exception):
    """The work is more than the place where it was begun allows. Nothing has changed."""


def _always() -> bool:
    return True


class Effort(NamedTuple):
    """Bounds for one check."""

    decompressed_bytes_max: int
    """Beyond it `TooExpensive` is raised, unless the batch may not expand so far anyway."""
    is_on_loop: bool = False
    """Only batches of up to `loop_compressed_bytes` are recompressed."""
    is_wanted: Callable[[], bool] = _always
    """Asked now and then: whether anyone waits for the result."""
    now_s: Callable[[], float] | None = None
    """A clock for `COMPRESSION_S_MAX`; None: there is no limit of time."""


ON_LOOP = Effort(1 << 20, is_on_loop=True)
SMALL_BYTES = 4 << 20
FULL = Effort(UNLIMITED)

COMPRESSION_S_MAX = 2.0
"""After this the records of a batch are compressed with the codec's fastest level, whatever the topic's setting is."""


def loop_compressed_bytes(codec: Codec, level: int | None) -> int:
    """How many bytes are compressed on the loop: not more than a few milliseconds' worth of the data that takes longest."""
    if codec in (Codec.NONE, Codec.SNAPPY) or (codec == Codec.LZ4 and level in (None, 9)):
        return 256 * 1024
    if codec == Codec.ZSTD and (level is None or level <= 3):
        return 128 * 1024
    return 16 * 1024
