"""lz4: the frame format with independent blocks. Levels 1 to 17, as `compression.lz4.level`; the default is 9."""

import cramjam

from ottla.errors import CorruptRecords
from ottla.records.compression.bounded import Buffer, decompress_bounded

LEVEL_DEFAULT = 9
_INDEPENDENT_BLOCKS = 0x20


def compress(data: Buffer, level: int | None) -> bytes:
    compressor = cramjam.lz4.Compressor(level=LEVEL_DEFAULT if level is None else level, block_linked=False)
    compressor.compress(bytes(data))  # of all of cramjam, this call alone takes nothing but bytes
    return bytes(compressor.finish())


def decompress(data: Buffer, size_bytes_max: int) -> bytes:
    if len(data) > 4 and not data[4] & _INDEPENDENT_BLOCKS:
        raise CorruptRecords("an lz4 frame with linked blocks: Kafka reads only frames with independent blocks")
    return decompress_bounded("lz4", cramjam.lz4.decompress_into, data, size_bytes_max)
