"""Which twin of the log's kernel is in use; see `records/kernels.py`. Everything else imports its names from here."""

from typing import TYPE_CHECKING

from ottla.records.kernels import PURE_ASKED, load_twin

if TYPE_CHECKING or not PURE_ASKED:
    from ottla.log.kernel import (
        BATCHES_REMEMBERED,
        BLOCK_ENTRIES,
        UNKNOWN_TIMESTAMP,
        BatchMetadata,
        EpochsTail,
        IndexTail,
        LogTail,
        Prepared,
        ProducersTail,
        ProducerTail,
        RecentBatches,
        SegmentTail,
    )
else:
    _kernel = load_twin("kernel", plain=True, room="log")
    BLOCK_ENTRIES, UNKNOWN_TIMESTAMP = _kernel.BLOCK_ENTRIES, _kernel.UNKNOWN_TIMESTAMP
    BATCHES_REMEMBERED, BatchMetadata, RecentBatches = _kernel.BATCHES_REMEMBERED, _kernel.BatchMetadata, _kernel.RecentBatches
    EpochsTail, IndexTail, LogTail, ProducerTail = _kernel.EpochsTail, _kernel.IndexTail, _kernel.LogTail, _kernel.ProducerTail
    Prepared, ProducersTail, SegmentTail = _kernel.Prepared, _kernel.ProducersTail, _kernel.SegmentTail

__all__ = [
    "BATCHES_REMEMBERED",
    "BLOCK_ENTRIES",
    "UNKNOWN_TIMESTAMP",
    "BatchMetadata",
    "EpochsTail",
    "IndexTail",
    "LogTail",
    "Prepared",
    "ProducerTail",
    "ProducersTail",
    "RecentBatches",
    "SegmentTail",
]
