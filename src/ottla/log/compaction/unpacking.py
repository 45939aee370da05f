"""The records of a batch, for a pass of compaction, within bounds on time and memory.

A batch with a right CRC can still be unreadable: not every compressed batch is unpacked before it is appended. Such a batch
stays in the log as it is. Its keys are not known, so it supersedes nothing.
"""

from ottla.errors import CorruptRecords, OttlaError
from ottla.records.batch import BatchView
from ottla.records.compression import ExpandsTooFar
from ottla.records.kernels import plain_bytes_max
from ottla.records.layout import CODEC_MASK, HEADER_SIZE
from ottla.records.reader import DECOMPRESSED_BYTES_MAX, read_records
from ottla.records.record import Record

RECORDS_MAX = 1_000_000
"""A batch with more is left as it is: the list of its records would take more than 150 MB."""


class NeedsHelper(OttlaError):
    """A batch is too large to be unpacked on the event loop."""


def unpacked(batch: BatchView, size_bytes_max: int = DECOMPRESSED_BYTES_MAX) -> list[Record] | str:
    """The records of `batch`, or why they cannot be read.

    `NeedsHelper` if they are larger than `size_bytes_max`, but perhaps not larger than a helper may unpack.
    """
    if batch.count > RECORDS_MAX:
        return f"it has {batch.count:,} records, and compaction reads at most {RECORDS_MAX:,} of a batch"
    try:
        return read_records(batch, decompressed_bytes_max=size_bytes_max)
    except ExpandsTooFar as problem:
        if size_bytes_max < DECOMPRESSED_BYTES_MAX:
            raise NeedsHelper(str(problem)) from None
        return str(problem)
    except CorruptRecords as problem:
        return str(problem)


def work_bytes(batch: BatchView) -> int:
    """How many bytes have to be looked at, at most, to read the records of `batch`."""
    codec = batch.attributes & CODEC_MASK
    if not codec:
        return batch.size
    plain = plain_bytes_max(codec, batch.buffer, batch.position + HEADER_SIZE, batch.position + batch.size)
    return max(batch.size, min(plain, DECOMPRESSED_BYTES_MAX))
