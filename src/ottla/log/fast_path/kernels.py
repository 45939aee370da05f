"""Which twins of the log's kernels are in use; see `records/kernels.py`. Everything else imports their names from here."""

from typing import TYPE_CHECKING

from ottla.records.kernels import PURE_ASKED, load_twin

if TYPE_CHECKING or not PURE_ASKED:
    from ottla.log.fast_path.kernel_append import (
        BLOCK_ENTRIES,
        UNKNOWN_TIMESTAMP,
        EpochsTail,
        IndexTail,
        LogTail,
        Prepared,
        SegmentTail,
    )
    from ottla.log.fast_path.kernel_producers import (
        BATCHES_REMEMBERED,
        BatchMetadata,
        ProducersTail,
        ProducerTail,
        RecentBatches,
    )
else:
    _kernel = load_twin("kernel_append", plain=True, room="log.fast_path")
    BLOCK_ENTRIES, UNKNOWN_TIMESTAMP = _kernel.BLOCK_ENTRIES, _kernel.UNKNOWN_TIMESTAMP
    EpochsTail, IndexTail, LogTail = _kernel.EpochsTail, _kernel.IndexTail, _kernel.LogTail
    Prepared, SegmentTail = _kernel.Prepared, _kernel.SegmentTail
    _producers = load_twin("kernel_producers", plain=True, room="log.fast_path")
    BATCHES_REMEMBERED, BatchMetadata = _producers.BATCHES_REMEMBERED, _producers.BatchMetadata
    ProducersTail, ProducerTail = _producers.ProducersTail, _producers.ProducerTail
    RecentBatches = _producers.RecentBatches

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
