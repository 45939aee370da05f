"""zstd: one or more frames. Levels -131072 to 22, as `compression.zstd.level`; the default is 3."""

import cramjam

from ottla.records.compression.bounded import Buffer, decompress_bounded

LEVEL_DEFAULT = 3


def compress(data: Buffer, level: int | None) -> bytes:
    return bytes(cramjam.zstd.compress(data, LEVEL_DEFAULT if level is None else level))


def decompress(data: Buffer, size_bytes_max: int) -> bytes:
    return decompress_bounded("zstd", cramjam.zstd.decompress_into, data, size_bytes_max)
