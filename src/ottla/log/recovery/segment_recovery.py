"""Recovering one segment after an unclean shutdown: checks every batch and rebuilds the indexes.

A torn or damaged batch is cut off, with everything after it, since recovery cannot know which records belong after a gap.
Batches of the formats before magic 2 are not damage: they raise an error, since cutting them off would lose whole records.
"""

import zlib
from typing import NamedTuple

from ottla.errors import CorruptFile, CorruptRecords, KafkaError
from ottla.log.leader_epochs import LeaderEpochs
from ottla.log.producers.producer_loading import replay_batch
from ottla.log.producers.producer_state import ProducerState
from ottla.log.segments.scan import checked_batches
from ottla.log.segments.segment import Segment
from ottla.log.segments.txn_index import AbortedTxn
from ottla.records.batch import BatchView

OLD_MESSAGE_OVERHEAD = 12
OLD_MESSAGE_SIZE_MIN = 14


class Recovered(NamedTuple):
    """The result of the recovery of a segment."""

    next_offset: int
    bytes_cut: int
    reason: str
    """Why bytes were cut off; empty if none were."""


def recover_segment(segment: Segment, producers: ProducerState, epochs: LeaderEpochs) -> Recovered:
    """Check every batch, cut damage off, and rebuild indexes, epochs and producers from what is left.

    `producers` must be the state at the segment's base offset; afterwards it is the state at its end.
    """
    file = segment.file
    segment.begin_rebuild()
    segment.txn_index.reset()
    valid, next_offset, reason = 0, segment.base_offset, ""
    try:
        for position, view in checked_batches(file, 0, file.size):
            _check_offsets(view, next_offset, position)
            for ended in replay_batch(producers, view):
                if ended.aborted:
                    segment.txn_index.append(
                        AbortedTxn(ended.producer_id, ended.first_offset, ended.last_offset, ended.last_stable_offset)
                    )
            segment.index_batch(position, view)
            note_epoch(epochs, view)
            valid, next_offset = position + view.size, view.next_offset
    except (CorruptRecords, KafkaError) as error:
        _refuse_old_format(segment, valid)
        reason = str(error)
    cut = file.size - valid
    if cut:
        file.truncate(valid)
    segment.finish()
    return Recovered(next_offset, cut, reason)


def note_epoch(epochs: LeaderEpochs, view: BatchView) -> None:
    """Make `epochs` agree with the epoch of a batch.

    The checkpoint may have entries of records that a truncation or a power loss removed. Where it contradicts a batch, its
    entries from there on are dropped. It is no contradiction if its first entry, or the entry of the batch's own epoch, begins
    after the batch: the checkpoint was cut at a log start that a crash then undid. In that case later entries are kept, since
    compaction may have left no batch of those epochs. Entries added here for batches before the log start are removed once the
    start is known.
    """
    epoch, offset = view.leader_epoch, view.base_offset
    known = epochs.epoch_for(offset)
    if epoch < 0 or known == epoch:
        return
    later = [entry for entry in epochs.entries if entry[1] > offset and entry[0] >= epoch]
    if known is not None and (not later or later[0][0] != epoch):
        later = []
    epochs.truncate_from_end(offset)
    epochs.assign(epoch, offset)
    for later_epoch, start_offset in later:
        epochs.assign(later_epoch, start_offset)


def _check_offsets(view: BatchView, next_offset: int, position: int) -> None:
    if view.base_offset < next_offset or view.last_offset_delta < 0:
        raise CorruptRecords(f"the batch begins at offset {view.base_offset}, where {next_offset} or more was due", position)


def _refuse_old_format(segment: Segment, position: int) -> None:
    """`CorruptFile` if there is a whole message of magic 0 or 1 at `position`, rather than damage."""
    head = segment.file.read(position, OLD_MESSAGE_OVERHEAD + 5)
    if len(head) < OLD_MESSAGE_OVERHEAD + 5 or head[16] > 1:
        return
    size = int.from_bytes(head[8:12], "big", signed=True)
    if not OLD_MESSAGE_SIZE_MIN <= size <= segment.size - position - OLD_MESSAGE_OVERHEAD:
        return
    body = segment.file.read(position + OLD_MESSAGE_OVERHEAD, size)
    if zlib.crc32(body[4:]) == int.from_bytes(body[:4], "big"):
        raise CorruptFile(
            segment.file.path,
            position,
            f"a message of the old format (magic {head[16]}) begins here, which Kafka 4 no longer writes",
            "Copy the topic with a Kafka 3 broker, which converts it, or move the folder away",
        )
