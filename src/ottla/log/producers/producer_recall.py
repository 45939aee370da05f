"""Knowing five batches of every producer again, after a start.

A snapshot keeps one batch per producer, but a producer may retry any of its last five. Apache answers such a retry after a
restart with OUT_OF_ORDER_SEQUENCE_NUMBER; we look the older batches up in the log: from the offset of the snapshot backwards,
until every producer has five, or its epoch's first batch has been seen, or `batches_max` headers have been looked at. That
bound is what keeps the start quick when some producer fell silent long ago: it then simply stays with fewer.
"""

from collections.abc import Iterable
from typing import NamedTuple

from ottla.log.producers.producer_entry import BATCHES_REMEMBERED, BatchMetadata, ProducerEntry
from ottla.log.producers.producer_state import ProducerState
from ottla.records.batch import BatchView

RECALL_BATCHES_MAX = 50_000


class Recalled(NamedTuple):
    """How a recall went."""

    batches_scanned: int
    batches_found: int
    producers_incomplete: int
    """Producers of which an older batch may exist that was not looked at."""


def recall_batches(
    state: ProducerState, batches_newest_first: Iterable[BatchView], batches_max: int = RECALL_BATCHES_MAX
) -> Recalled:
    """Give the producers of `state` the batches before the ones they know.

    `batches_newest_first` are the headers of the log from the snapshot's offset down to the log's start; it is consumed only
    as far as needed, so let it read the log lazily.
    """
    wanted = {entry.producer_id: entry for entry in state.producers.values() if _may_have_more(entry)}
    scanned = found = 0
    if wanted:
        for batch in batches_newest_first:
            if scanned == batches_max:
                return Recalled(scanned, found, len(wanted))
            scanned += 1
            entry = wanted.get(batch.producer_id)
            if entry is None or batch.is_control or batch.last_offset >= entry.batches[0].first_offset:
                continue
            if batch.producer_epoch == entry.epoch:
                entry.batches.appendleft(_metadata(batch))
                found += 1
            if batch.producer_epoch != entry.epoch or not _may_have_more(entry):
                del wanted[batch.producer_id]
                if not wanted:
                    break
    return Recalled(scanned, found, 0)


def _may_have_more(entry: ProducerEntry) -> bool:
    return 0 < len(entry.batches) < BATCHES_REMEMBERED and entry.batches[0].first_sequence != 0


def _metadata(batch: BatchView) -> BatchMetadata:
    return BatchMetadata(batch.base_sequence, batch.last_sequence, batch.base_offset, batch.last_offset, batch.max_timestamp)
