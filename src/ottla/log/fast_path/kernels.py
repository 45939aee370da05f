"""Chooses the variant of the log's kernels; see `records/kernels.py`. Everything else imports their names from here."""

from typing import TYPE_CHECKING

from ottla.records.kernels import PURE_ASKED, load_variant

if TYPE_CHECKING or not PURE_ASKED:
    from ottla.log.fast_path.kernel_append import (
        BLOCK_ENTRIES,
        UNKNOWN_TIMESTAMP,
        EpochsTail,
        FastAppend,
        IndexTail,
        LogTail,
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
    _kernel = load_variant("kernel_append", pure=True, room="log.fast_path")
    BLOCK_ENTRIES, UNKNOWN_TIMESTAMP = _kernel.BLOCK_ENTRIES, _kernel.UNKNOWN_TIMESTAMP
    EpochsTail, IndexTail, LogTail = _kernel.EpochsTail, _kernel.IndexTail, _kernel.LogTail
    FastAppend, SegmentTail = _kernel.FastAppend, _kernel.SegmentTail
    _producers = load_variant("kernel_producers", pure=True, room="log.fast_path")
    BATCHES_REMEMBERED, BatchMetadata = _producers.BATCHES_REMEMBERED, _producers.BatchMetadata
    ProducersTail, ProducerTail = _producers.ProducersTail, _producers.ProducerTail
    RecentBatches = _producers.RecentBatches

__all__ = [
    "BATCHES_REMEMBERED",
    "BLOCK_ENTRIES",
    "UNKNOWN_TIMESTAMP",
    "BatchMetadata",
    "EpochsTail",
    "FastAppend",
    "IndexTail",
    "LogTail",
    "ProducerTail",
    "ProducersTail",
    "RecentBatches",
    "SegmentTail",
]
