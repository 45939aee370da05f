"""Rebuilds the producer state of a log from a snapshot and the records after it, for loading, recovery and truncation."""

import asyncio
import logging
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ottla.errors import CorruptFile, CorruptRecords, KafkaError
from ottla.log.producers.append_checks import AppendOrigin
from ottla.log.producers.producer_entry import BATCHES_REMEMBERED, BatchMetadata, ProducerEntry
from ottla.log.producers.producer_snapshot import ProducerSnapshots
from ottla.log.producers.producer_state import EndedTransaction, ProducerState
from ottla.log.segments.scan import REMEDY, headers, whole_batch
from ottla.log.segments.segment import Segment
from ottla.log.segments.segment_list import Segments
from ottla.records.batch import BatchView

logger = logging.getLogger("ottla.log")

RECALL_WINDOW_ENTRIES = 64
"""Offset index entries per step when the log is walked backwards."""
_BATCHES_PER_TURN = 500
"""How many batches are replayed before other tasks run: about 10 ms."""


def replay_batch(state: ProducerState, batch: BatchView) -> list[EndedTransaction]:
    """Replay a batch of the log. A control batch must be whole; for others the header is enough."""
    if batch.producer_id < 0:
        state.advance(batch.next_offset)
        return []
    append = state.begin(AppendOrigin.REPLICATION)
    append.add(batch, batch.base_offset)
    return state.apply(append, batch.next_offset)


async def rebuild_producers(
    segments: Segments,
    snapshots: ProducerSnapshots,
    *,
    partition: str,
    log_start_offset: int,
    end_offset: int,
    now_ms: int,
    expiration_ms: int,
) -> ProducerState:
    """The producer state at `end_offset`, from the newest good snapshot at or before it and the records after that.

    Writes a snapshot at `end_offset`, so that the next start has less to read, and removes snapshots past it.
    """
    state = ProducerState(partition, log_start_offset)
    for damage in await snapshots.load(state, log_start_offset, end_offset, now_ms, expiration_ms):
        logger.warning("%s", damage)
    snapshot_offset = state.map_end_offset
    recall_batches(state, batches_backwards(segments, snapshot_offset))
    for segment in segments.between(snapshot_offset, end_offset):
        start_offset = max(segment.base_offset, state.map_end_offset)
        if start_offset == segment.base_offset and segment is segments.active:
            state.advance(start_offset)
            snapshots.write(state)
        await replay_segment(state, segment, start_offset, end_offset)
    state.advance(end_offset)
    snapshots.write(state)
    for entry in state.producers.values():
        entry.seen_ms = now_ms  # not known: they may have written just before the stop
    return state


async def replay_segment(state: ProducerState, segment: Segment, start_offset: int, end_offset: int) -> None:
    """Replay the batches of a segment from `start_offset` up to `end_offset`.

    Lets other tasks run meanwhile: a follower that cuts off one record of a large segment replays all of it.
    """
    place = segment.find(start_offset)
    if place is None:
        return
    for count, (position, view) in enumerate(headers(segment.file, place.position, segment.size), start=1):
        if view.base_offset >= end_offset:
            break
        if count % _BATCHES_PER_TURN == 0:
            await asyncio.sleep(0)
        try:
            replay_batch(state, whole_batch(segment.file, position, view.size) if view.is_control else view)
        except (CorruptRecords, KafkaError) as error:
            raise CorruptFile(segment.file.path, position, f"the producer of a batch cannot be: {error}", REMEDY) from error


def batches_backwards(segments: Segments, end_offset: int) -> Iterator[BatchView]:
    """The headers of all batches below `end_offset`, newest first, read lazily."""
    for segment in reversed(segments.between(0, end_offset)):
        end = segment.size
        try:
            place = segment.find(end_offset)
            if place is not None:
                end = place.position
            index = segment.offset_index
            starts = [index.entry(number)[1] for number in range(0, index.count, RECALL_WINDOW_ENTRIES)]
            for start in [*reversed(starts), 0]:
                if start < end:
                    yield from reversed([view for _, view in headers(segment.file, start, end)])
                    end = start
        except CorruptFile as error:
            logger.warning("older batches of producers are not read: %s", error)
            return


# Finds the last five batches of every producer again, after a start.
#
# A snapshot has one batch per producer, but a producer may retry any of its last five. Apache answers such a retry after a
# restart with OUT_OF_ORDER_SEQUENCE_NUMBER. Here the older batches are read from the log: backwards from the offset of the
# snapshot, until every producer has five, or its epoch's first batch was found, or `batches_max` headers were read. The bound
# keeps the start fast when a producer has not written for long; that producer keeps fewer batches.

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
