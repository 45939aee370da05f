"""Recovering one segment after an unclean stop: every batch is checked, everything beside the log file is written anew.

What is cut off: a torn or damaged batch and all that follows it, as recovery cannot know what belongs after a hole. Batches of
the formats before magic 2 are not damage; they are refused, since cutting them off would lose records that are whole.
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
    """How the recovery of a segment went."""

    next_offset: int
    bytes_cut: int
    reason: str
    """Why bytes were cut off; empty if none were."""


def recover_segment(segment: Segment, producers: ProducerState, epochs: LeaderEpochs) -> Recovered:
    """Check every batch, cut damage off, and build indexes, epochs and producers from what is left.

    `producers` are those as of the segment's base offset; afterwards, those as of its end.
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
    """Make the epochs say of a batch what it says itself.

    The checkpoint may still have epochs from before a truncation, or from before a power loss took their records: where it
    contradicts a batch, all it says from there on is dropped. It is no contradiction that it begins later, or lets the
    batch's own epoch begin later: it was cut at a log start that a crash has taken back. Then what follows is kept, since
    no batch may be left to tell of an epoch that compaction has thinned out. What is added for batches before the log's
    start is cut off again once the start is known.
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
    """`CorruptFile` if what lies at `position` is a whole message of magic 0 or 1 rather than damage."""
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
