"""Finds the last five batches of every producer again, after a start.

A snapshot has one batch per producer, but a producer may retry any of its last five. Apache answers such a retry after a
restart with OUT_OF_ORDER_SEQUENCE_NUMBER. Here the older batches are read from the log: backwards from the offset of the
snapshot, until every producer has five, or its epoch's first batch was found, or `batches_max` headers were read. The bound
keeps the start fast when a producer has not written for long; that producer keeps fewer batches.
"""

from collections.abc import Iterable
from typing import NamedTuple

from ottla.log.producers.producer_entry import BATCHES_REMEMBERED, BatchMetadata, ProducerEntry
from ottla.log.producers.producer_state import ProducerState
from ottla.records.batch import BatchView

RECALL_BATCHES_MAX = 50_000


class Recalled(NamedTuple):
    """The result of a recall."""

    batches_scanned: int
    batches_found: int
    producers_incomplete: int
    """Producers that may have an older batch that was not read."""


def recall_batches(
    state: ProducerState, batches_newest_first: Iterable[BatchView], batches_max: int = RECALL_BATCHES_MAX
) -> Recalled:
    """Add to the producers of `state` the batches before their oldest known one.

    `batches_newest_first` are the headers of the log from the snapshot's offset down to the log start. It is consumed only as
    far as needed, so pass an iterator that reads lazily.
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
