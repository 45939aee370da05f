"""Compresses the records of a batch for a topic that wants another codec than the producer's, within bounds.

The work is done in pieces. It ends when the result is too large or nobody waits for it any more, and goes over to the codec's
fastest level when it has taken `COMPRESSION_S_MAX`: a level is a wish, and two letters in the right order take gzip level 9
three seconds for each megabyte.
"""

from __future__ import annotations

from ottla.records.compression import Codec, compress_in_pieces, fastest_level
from ottla.records.effort import COMPRESSION_S_MAX, Effort, TooExpensive, loop_compressed_bytes

Buffer = bytes | bytearray | memoryview


def recompress(batch: bytearray, plain: Buffer, codec: Codec, level: int | None, size_bytes_max: int, effort: Effort) -> None:
    """Append `plain`, compressed, to `batch`; stops early once that is larger than `size_bytes_max`."""
    if effort.is_on_loop and len(plain) > loop_compressed_bytes(codec, level):
        raise TooExpensive
    begin = len(batch)
    if _compress(batch, plain, codec, level, size_bytes_max, effort, COMPRESSION_S_MAX):
        return
    del batch[begin:]
    _compress(batch, plain, codec, fastest_level(codec), size_bytes_max, effort, None)


def _compress(
    batch: bytearray,
    plain: Buffer,
    codec: Codec,
    level: int | None,
    size_bytes_max: int,
    effort: Effort,
    seconds_max: float | None,
) -> bool:
    """False: it has taken longer than `seconds_max`."""
    until_s = None if seconds_max is None or effort.now_s is None else effort.now_s() + seconds_max
    for piece in compress_in_pieces(codec, plain, level):
        batch += piece
        if len(batch) > size_bytes_max:
            return True
        if not effort.is_wanted():
            raise TooExpensive
        if until_s is not None and effort.now_s is not None and effort.now_s() >= until_s:
            return False
    return True
