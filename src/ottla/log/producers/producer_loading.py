"""Rebuilds the producer state of a log from a snapshot and the records after it, for loading, recovery and truncation."""

import asyncio
import logging
from collections.abc import Iterator

from ottla.errors import CorruptFile, CorruptRecords, KafkaError
from ottla.log.origin import AppendOrigin
from ottla.log.producers.producer_recall import recall_batches
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
