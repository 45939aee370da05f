"""zstd: one or more frames. Levels -131072 to 22, as in `compression.zstd.level`; the default is 3."""

import cramjam

from ottla.records.compression.bounded import Buffer, decompress_bounded, level_in

LEVEL_DEFAULT = 3


def compress(data: Buffer, level: int | None) -> bytes:
    chosen = LEVEL_DEFAULT if level is None else level_in("zstd", level, -131072, 22)
    return bytes(cramjam.zstd.compress(data, chosen))


def decompress(data: Buffer, size_bytes_max: int) -> bytes:
    return decompress_bounded("zstd", cramjam.zstd.decompress_into, data, size_bytes_max)
