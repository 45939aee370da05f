"""gzip: one or more members. Levels -1 (the library's own, 6) and 1 to 9, as `compression.gzip.level`."""

import cramjam

from ottla.records.compression.bounded import Buffer, decompress_bounded

LEVEL_DEFAULT = 6


def compress(data: Buffer, level: int | None) -> bytes:
    return bytes(cramjam.gzip.compress(data, LEVEL_DEFAULT if level is None or level == -1 else level))


def decompress(data: Buffer, size_bytes_max: int) -> bytes:
    return decompress_bounded("gzip", cramjam.gzip.decompress_into, data, size_bytes_max)
