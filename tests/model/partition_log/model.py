"""The model of a partition log, as plain lists, that the real log is compared with.

`LogModel` knows batches, not bytes: no segments, no indexes, no files. It has two lists. `batches` is what is in the log now;
compaction and deletion make it shorter. `history` is every batch as it was first appended, apart from those that were
truncated: what producers did, which stays true when their records are gone.

Producer states come from replaying; `producers` is kept up to date and can be computed again from any offset, as the real log
does from its snapshots. Nothing here imports the log.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from ottla.errors.codes import ErrorCode
from ottla.records.batch import BatchView
from ottla.records.control import parse_end_marker
from ottla.records.reader import read_records
from ottla.records.record import Record

SEQUENCES = 1 << 31
REMEMBERED = 5


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch of the log. `commits` is None unless it is the marker that ends a transaction."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    records: tuple[Record, ...]
    max_timestamp: int
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    transactional: bool = False
    is_control: bool = False
    commits: bool | None = None
    coordinator_epoch: int = -1
    append_time: bool = False
    delete_horizon_ms: int | None = None

    @property
    def next_offset(self) -> int:
        return self.last_offset + 1

    @property
    def last_sequence(self) -> int:
        return (self.base_sequence + self.last_offset - self.base_offset) % SEQUENCES


def parse_batch(data: bytes) -> Batch:
    """The batch that `data` holds, which must be whole and undamaged."""
    view = BatchView(data)
    view.check()
    assert view.size == len(data)
    records = tuple(read_records(view))
    marker = parse_end_marker(records[0]) if view.is_control and records else None
    return Batch(
        view.base_offset,
        view.last_offset,
        view.leader_epoch,
        records,
        view.max_timestamp,
        view.producer_id,
        view.producer_epoch,
        view.base_sequence,
        view.is_transactional,
        view.is_control,
        None if marker is None else marker.is_commit,
        -1 if marker is None else marker.coordinator_epoch,
        view.is_append_time,
        view.delete_horizon_ms,
    )


@dataclass(frozen=True, slots=True)
class Sent:
    """A data batch that a producer may send again."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int

    def __repr__(self) -> str:
        return f"{self.first_sequence}..{self.last_sequence}@{self.first_offset}..{self.last_offset}"


@dataclass(slots=True)
class Producer:
    """The state of a producer."""

    epoch: int = -1
    coordinator_epoch: int = -1
    last_timestamp: int = -1
    transaction_first: int | None = None
    sent: list[Sent] = field(default_factory=list)
    """The last five, oldest first."""

    def copy(self) -> Producer:
        return replace(self, sent=list(self.sent))

    def take(self, batch: Batch) -> None:
        """Apply a batch."""
        if batch.producer_epoch != self.epoch:
            self.epoch, self.sent = batch.producer_epoch, []
        if batch.is_control:
            self.coordinator_epoch, self.transaction_first = batch.coordinator_epoch, None
            self.last_timestamp = batch.records[0].timestamp
            return
        if batch.transactional and self.transaction_first is None:
            self.transaction_first = batch.base_offset
        self.sent = [
            *self.sent,
            Sent(batch.base_sequence, batch.last_sequence, batch.base_offset, batch.last_offset),
        ][-REMEMBERED:]
        self.last_timestamp = batch.max_timestamp


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transaction that has ended, with its marker at `last_offset`."""

    producer_id: int
    first_offset: int
    last_offset: int
    aborted: bool
    stable_offset: int
    """The highest possible last stable offset once the marker is replicated."""


Producers = dict[int, Producer]


def replay(producers: Producers, batches: Iterable[Batch]) -> None:
    """Apply `batches` to `producers`."""
    for batch in batches:
        if batch.producer_id < 0 or (batch.is_control and batch.commits is None):
            continue  # without a producer, or a marker that compaction has emptied
        producers.setdefault(batch.producer_id, Producer()).take(batch)


class LogModel:
    """A partition log as plain lists."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.history: list[Batch] = []
        self.log_start = 0
        self.log_end = 0
        self.high_watermark = 0
        self.epochs: list[tuple[int, int]] = []
        self.producers: Producers = {}
        self.transactions: list[Transaction] = []
        self.cleaned_up_to = 0
        """Compaction may have changed batches below this offset."""
        self.cleaned_from = 0
        """The log start offset when the log was compacted. Below it, tombstones may have been removed before the values."""
        self.known_states: dict[int, Producers] = {}
        """Offset → the producers at that offset, replacing what replay of earlier batches would give."""

    # -- what a producer may do

    def verdict(self, batch: Batch) -> ErrorCode | Sent | None:
        """The expected answer to a client's batch: an error, the offset of the batch it repeats, or None if it is appended."""
        known = self.producers.get(batch.producer_id)
        if batch.producer_id < 0 or known is None:
            return None
        if batch.producer_epoch == known.epoch:
            for sent in known.sent:
                if (sent.first_sequence, sent.last_sequence) == (batch.base_sequence, batch.last_sequence):
                    return sent
        if batch.producer_epoch < known.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        last = known.sent[-1].last_sequence if known.sent and batch.producer_epoch == known.epoch else -1
        if batch.base_sequence != (last + 1) % SEQUENCES:
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        if known.transaction_first is not None and not batch.transactional:
            return ErrorCode.INVALID_TXN_STATE
        return None

    def marker_verdict(self, batch: Batch, transaction_version: int) -> ErrorCode | None:
        """The expected answer to an end marker from a transaction coordinator."""
        known = self.producers.get(batch.producer_id)
        if known is None:
            return None
        is_open = known.transaction_first is not None
        too_old = batch.producer_epoch < known.epoch
        if too_old or (transaction_version >= 2 and batch.producer_epoch == known.epoch and is_open):
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if batch.coordinator_epoch < known.coordinator_epoch:
            return ErrorCode.TRANSACTION_COORDINATOR_FENCED
        return None

    # -- changes

    def append(self, batch: Batch) -> None:
        assert batch.base_offset >= self.log_end
        self.batches.append(batch)
        self.history.append(batch)
        replay(self.producers, [batch])
        self.transactions += self._ended_by(batch)
        self.log_end = batch.next_offset
        if batch.leader_epoch >= 0:
            self.assign_epoch(batch.leader_epoch, batch.base_offset)

    def _ended_by(self, marker: Batch) -> list[Transaction]:
        """The transaction that `marker`, the newest batch, ends.

        Read from the history, because `producers` are adopted from the log after a truncation or a start. The log may forget
        the beginning of a transaction only if it never shows those records again.
        """
        if marker.commits is None:
            return []
        first = None
        for batch in reversed(self.history[:-1]):
            if batch.producer_id == marker.producer_id:
                if batch.commits is not None:
                    break
                if batch.transactional and not batch.is_control:
                    first = batch.base_offset
        if first is None:
            return []
        firsts = [p.transaction_first for p in self.producers.values() if p.transaction_first is not None]
        stable_offset = min(firsts, default=marker.next_offset)
        return [Transaction(marker.producer_id, first, marker.base_offset, not marker.commits, stable_offset)]

    def assign_epoch(self, epoch: int, start: int) -> None:
        self.epochs = [entry for entry in self.epochs if entry[0] <= epoch and entry[1] < start]
        if not self.epochs or self.epochs[-1][0] < epoch:
            self.epochs.append((epoch, start))

    def cut(self, end: int) -> None:
        """The log now ends at `end`, which lies in no batch that is left."""
        self.batches = [batch for batch in self.batches if batch.last_offset < end]
        self.history = [batch for batch in self.history if batch.last_offset < end]
        self.log_end = end
        self.log_start = min(self.log_start, end)
        self.high_watermark = min(self.high_watermark, end)
        self.epochs = [entry for entry in self.epochs if entry[1] < end]
        self.transactions = [txn for txn in self.transactions if txn.last_offset < end]
        self.cleaned_up_to = min(self.cleaned_up_to, end)
        self.known_states = {offset: state for offset, state in self.known_states.items() if offset <= end}

    def start_at(self, offset: int) -> None:
        """Records before `offset` are no longer read."""
        self.log_start = offset
        self.high_watermark = max(self.high_watermark, offset)
        before = [entry for entry in self.epochs if entry[1] <= offset]
        if before:
            self.epochs = [(before[-1][0], offset)] + [entry for entry in self.epochs if entry[1] > offset]

    def forget_below(self, first_segment: int) -> None:
        """The files before `first_segment` are gone."""
        self.batches = [batch for batch in self.batches if batch.base_offset >= first_segment]

    def restart_at(self, offset: int, log_start: int) -> None:
        self.batches, self.history, self.epochs, self.producers, self.transactions = [], [], [], {}, []
        self.known_states, self.cleaned_from = {}, 0
        self.log_start, self.log_end, self.high_watermark, self.cleaned_up_to = log_start, offset, offset, offset

    # -- what readers see

    def visible(self) -> list[Batch]:
        return [batch for batch in self.batches if batch.last_offset >= self.log_start]

    def records(self) -> list[Record]:
        return [record for batch in self.visible() for record in batch.records if record.offset >= self.log_start]

    def is_aborted(self, batch: Batch) -> bool:
        if not batch.transactional or batch.is_control:
            return False
        return any(
            txn.aborted and txn.producer_id == batch.producer_id and txn.first_offset <= batch.base_offset <= txn.last_offset
            for txn in self.transactions
        )

    def committed(self, bound: int) -> list[Record]:
        """What a consumer of committed records gets, up to `bound`."""
        return [
            record
            for batch in self.visible()
            if not batch.is_control and batch.last_offset < bound and not self.is_aborted(batch)
            for record in batch.records
            if record.offset >= self.log_start
        ]

    def first_by_time(self, timestamp: int) -> Record | None:
        return next((record for record in self.records() if record.timestamp >= timestamp), None)

    def epoch_for(self, offset: int) -> int | None:
        return next((epoch for epoch, start in reversed(self.epochs) if start <= offset), None)

    def last_stable_bounds(self) -> tuple[int, int]:
        """The lowest and the highest possible last stable offset.

        They differ only by transactions that have ended at or above the high watermark: once the high watermark has been
        above their marker they are complete, also when it moves back.
        """
        open_firsts = [p.transaction_first for p in self.producers.values() if p.transaction_first is not None]
        unsettled = [txn.first_offset for txn in self.transactions if txn.last_offset >= self.high_watermark]
        high = min(self.high_watermark, max(min(open_firsts, default=self.high_watermark), self.log_start))
        low = min(high, max(min(unsettled, default=high), self.log_start))
        return low, high

    # -- producers after a start or a truncation

    def adopt(self, producers: Producers) -> None:
        """Use these producers from now on: a start or a truncation has found them in the log."""
        self.producers = {producer_id: producer.copy() for producer_id, producer in producers.items()}
        self.known_states = {offset: state for offset, state in self.known_states.items() if offset <= self.log_end}
        self.known_states[self.log_end] = {key: producer.copy() for key, producer in producers.items()}

    def producers_at(self, offset: int) -> Producers:
        """The producers as they were when the log ended at `offset`."""
        known = max((at for at in self.known_states if at <= offset), default=None)
        producers = {} if known is None else {key: value.copy() for key, value in self.known_states[known].items()}
        start = 0 if known is None else known
        replay(producers, (batch for batch in self.history if start <= batch.base_offset and batch.last_offset < offset))
        return producers

    def sent_by(self, producer_id: int, epoch: int) -> list[Sent]:
        """All that a producer has sent in an epoch, in the order of offsets."""
        sent = {
            Sent(batch.base_sequence, batch.last_sequence, batch.base_offset, batch.last_offset)
            for batch in self.history
            if batch.producer_id == producer_id and batch.producer_epoch == epoch and not batch.is_control
        }
        return sorted(sent, key=lambda each: each.first_offset)

    def producers_from(self, snapshot_offset: int, now_ms: int, expiration_ms: int, end: int | None = None) -> Producers:
        """The producers at `end` (default: the log end offset) as a start with a snapshot finds them.

        `sent` has only the batches that a start must find: that of the snapshot, and those in the log from its start on.
        """
        producers: Producers = {}
        for producer_id, producer in self.producers_at(snapshot_offset).items():
            if producer.transaction_first is not None or now_ms - producer.last_timestamp < expiration_ms:
                producers[producer_id] = producer
                last = producer.sent[-1:]
                producer.sent = self._found_before(producer_id, producer.epoch, last) + last
        end = self.log_end if end is None else end
        replay(producers, (batch for batch in self.batches if snapshot_offset <= batch.last_offset < end))
        return producers

    def producers_in_log(self, start: int, end: int) -> Producers:
        """The producers as a start without a snapshot finds them, from the log between `start` and `end`."""
        producers: Producers = {}
        replay(producers, (batch for batch in self.batches if batch.last_offset >= start and batch.last_offset < end))
        return producers

    def _found_before(self, producer_id: int, epoch: int, last: list[Sent]) -> list[Sent]:
        """The batches before the last one that are in the log, as far back as a start looks."""
        found: list[Sent] = []
        if not last or last[0].first_sequence == 0:
            return found
        for batch in reversed(self.visible()):
            if batch.producer_id != producer_id or batch.is_control or batch.last_offset >= last[0].first_offset:
                continue
            if batch.producer_epoch != epoch or len(found) == REMEMBERED - 1 or (found and found[0].first_sequence == 0):
                break
            found.insert(0, Sent(batch.base_sequence, batch.last_sequence, batch.base_offset, batch.last_offset))
        return found
