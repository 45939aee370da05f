# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, annotation_typing=False
# cython: overflowcheck=False, cdivision=True
"""The producers of a partition, as the fast path of appends checks and moves them, in one source for two variants.

`ProducersTail` is the base class of `ProducerState`, `ProducerTail` of `ProducerEntry`. The fast path takes a producer's next
batch, the first batch of a transaction that its coordinator has verified, and the marker that commits one.
Everything else about producers is plain Python, in the files that bear those classes' names, and `append_checks.py` has the
rules in full: what passes here must pass there, with the same outcome.

The rules for both variants are those of `records/kernel.py`. One event loop, plain calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.records import layout

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ottla.log.producers.append_checks import VerificationState
    from ottla.log.producers.producer_entry import ProducerEntry

_TRANSACTIONAL_OR_CONTROL = layout.TRANSACTIONAL | layout.CONTROL
_TRANSACTIONAL = layout.TRANSACTIONAL
_SEQUENCE_MASK = 0x7FFFFFFF
_EPOCH_BUMP_SINCE = 2
_BATCHES_REMEMBERED = 5
_NUMBERS_PER_BATCH = 5
_NO_NUMBERS = (0,) * (_NUMBERS_PER_BATCH * _BATCHES_REMEMBERED)
BATCHES_REMEMBERED = _BATCHES_REMEMBERED
"""As many batches as a producer may have in flight, so that a retry of any of them is recognised."""


class BatchMetadata(NamedTuple):
    """Where one batch of a producer went."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp_ms: int
    """The batch's largest timestamp."""

    @classmethod
    def ending_at(cls, last_sequence: int, last_offset: int, offset_delta: int, timestamp_ms: int) -> BatchMetadata:
        """From the four numbers that a snapshot keeps. Sequences go round from 2^31 - 1 to 0."""
        first_sequence = (last_sequence - offset_delta) & _SEQUENCE_MASK
        return cls(first_sequence, last_sequence, last_offset - offset_delta, last_offset, timestamp_ms)


class RecentBatches:
    """The last batches of a producer, oldest first: numbers in a ring, read as a `BatchMetadata` each."""

    __slots__ = ("_count", "_numbers", "_start")

    def __init__(self, batches: Iterable[BatchMetadata] = ()) -> None:
        self._numbers = list(_NO_NUMBERS)  # in the compiled variant a C array within the object: 240 bytes instead of 750
        self._start = self._count = 0
        self.extend(batches)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> BatchMetadata:
        if index < 0:
            index += self._count
        if index < 0 or index >= self._count:
            raise IndexError(f"there are {self._count} batches")
        numbers, at = self._numbers, self._place(index)
        return BatchMetadata(numbers[at], numbers[at + 1], numbers[at + 2], numbers[at + 3], numbers[at + 4])

    def __iter__(self) -> Iterator[BatchMetadata]:
        return iter([self[index] for index in range(self._count)])

    def append(self, batch: BatchMetadata) -> None:
        """The newest; of too many, the oldest goes."""
        self.add(batch[0], batch[1], batch[2], batch[3], batch[4])

    def appendleft(self, batch: BatchMetadata) -> None:
        """One from before the oldest, which there must be room for."""
        if self._count == _BATCHES_REMEMBERED:
            raise IndexError(f"no more than {_BATCHES_REMEMBERED} batches are remembered")
        self._start = (self._start + _BATCHES_REMEMBERED - 1) % _BATCHES_REMEMBERED
        self._count += 1
        self._put(self._place(0), batch[0], batch[1], batch[2], batch[3], batch[4])

    def extend(self, batches: Iterable[BatchMetadata]) -> None:
        for batch in batches:
            self.append(batch)

    def clear(self) -> None:
        self._count = 0

    def add(self, first_sequence: int, last_sequence: int, first_offset: int, last_offset: int, timestamp_ms: int) -> None:
        """`append`, with numbers."""
        if self._count < _BATCHES_REMEMBERED:
            self._count += 1
        else:
            self._start = (self._start + 1) % _BATCHES_REMEMBERED
        self._put(self._place(self._count - 1), first_sequence, last_sequence, first_offset, last_offset, timestamp_ms)

    def follows(self, sequence: int) -> bool:
        """Whether a batch from `sequence` on is the next one, and is not among those that are remembered either."""
        if self._count == 0 or (self._numbers[self._place(self._count - 1) + 1] + 1) & _SEQUENCE_MASK != sequence:
            return False
        # After a gap (sequences went round, or a follower took them as they came) it may still be one of the last five.
        for index in range(self._count):  # noqa: SIM110 - a generator would be an object in the compiled variant
            if self._numbers[self._place(index)] == sequence:
                return False
        return True

    def _place(self, index: int) -> int:
        return (self._start + index) % _BATCHES_REMEMBERED * _NUMBERS_PER_BATCH

    def _put(
        self, at: int, first_sequence: int, last_sequence: int, first_offset: int, last_offset: int, timestamp_ms: int
    ) -> None:
        numbers = self._numbers
        numbers[at] = first_sequence
        numbers[at + 1] = last_sequence
        numbers[at + 2] = first_offset
        numbers[at + 3] = last_offset
        numbers[at + 4] = timestamp_ms


class ProducerTail:
    """One producer, as the next batch in its line looks at it."""

    __slots__ = ("batches", "coordinator_epoch", "epoch", "last_timestamp_ms", "seen_ms", "transaction_first_offset")

    batches: RecentBatches
    coordinator_epoch: int
    """Of the coordinator that ended the producer's last transaction here; an older one is a zombie."""
    epoch: int
    last_timestamp_ms: int
    """Of its records: what their producer says."""
    seen_ms: int
    """When it last wrote here, by this node's clock; when the log was loaded, if it has not since."""
    transaction_first_offset: int | None
    """Where the transaction under way began, None if there is none."""

    def set_epoch(self, epoch: int) -> None:
        """Another epoch starts with no batches: its sequences begin at 0 again."""
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()


class ProducersTail:
    """The producers of a partition, as far as the fast path is concerned."""

    __slots__ = ("_ongoing", "_producers", "_unreplicated", "_verifications", "first_unstable_offset", "map_end_offset")

    _ongoing: dict[int, int]
    """First offset of a transaction under way → producer id, in the order of offsets."""
    _producers: dict[int, ProducerEntry]
    _verifications: dict[int, VerificationState]
    _unreplicated: dict[int, int]
    """First offset of a transaction → its marker's offset, at or above the high watermark when it came."""
    first_unstable_offset: int | None
    """The least of all that are in these two."""
    map_end_offset: int

    def next_in_line(self, producer_id: int, epoch: int, attributes: int, sequence: int) -> ProducerEntry | None:
        """The producer of a batch that is the next one in the same epoch and transaction: then every check is passed."""
        entry = self._producers.get(producer_id)
        if entry is None or entry.epoch != epoch or (self._verifications and producer_id in self._verifications):
            return None
        in_transaction = 0 if entry.transaction_first_offset is None else _TRANSACTIONAL
        if attributes & _TRANSACTIONAL_OR_CONTROL != in_transaction:
            return None
        return entry if entry.batches.follows(sequence) else None

    def count_in(
        self, entry: ProducerTail, sequence: int, first_offset: int, last_offset_delta: int, timestamp_ms: int
    ) -> None:
        """Note a batch of `entry` that was the next in line, once its bytes are in the log, which now ends with it."""
        last_offset = first_offset + last_offset_delta
        last_sequence = (sequence + last_offset_delta) & _SEQUENCE_MASK
        entry.batches.add(sequence, last_sequence, first_offset, last_offset, timestamp_ms)
        entry.last_timestamp_ms = timestamp_ms
        self.map_end_offset = last_offset + 1

    def first_in_transaction(
        self, producer_id: int, epoch: int, attributes: int, sequence: int, verified_by: VerificationState
    ) -> ProducerEntry | None:
        """The producer of a batch that opens a transaction that its coordinator has verified: then every check is passed."""
        entry = self._producers.get(producer_id)
        if (
            entry is None
            or entry.transaction_first_offset is not None
            or epoch < entry.epoch
            or attributes & _TRANSACTIONAL_OR_CONTROL != _TRANSACTIONAL
            or self._verifications.get(producer_id) is not verified_by
            or sequence > verified_by.lowest_sequence
        ):
            return None
        if epoch > entry.epoch or not len(entry.batches):
            return entry if sequence == 0 else None
        return entry if entry.batches.follows(sequence) else None

    def begin_transaction(self, entry: ProducerTail, producer_id: int, epoch: int, first_offset: int) -> None:
        """Note that the transaction of `first_in_transaction` has begun: its first batch is in the log."""
        entry.set_epoch(epoch)
        entry.transaction_first_offset = first_offset
        self._ongoing[first_offset] = producer_id
        self._verifications.pop(producer_id, None)
        if self.first_unstable_offset is None:
            self.first_unstable_offset = first_offset

    def in_transaction(
        self, producer_id: int, epoch: int, coordinator_epoch: int, transaction_version: int
    ) -> ProducerEntry | None:
        """The producer of a transaction that is under way here and may be ended with a marker in this epoch."""
        entry = self._producers.get(producer_id)
        if (
            entry is None
            or entry.transaction_first_offset is None
            or coordinator_epoch < entry.coordinator_epoch
            or epoch < entry.epoch
            or (epoch == entry.epoch and transaction_version >= _EPOCH_BUMP_SINCE)
            or entry.transaction_first_offset not in self._ongoing
        ):
            return None
        return entry

    def commit_transaction(
        self, entry: ProducerTail, producer_id: int, epoch: int, coordinator_epoch: int, offset: int, timestamp_ms: int
    ) -> None:
        """Note that the transaction of `in_transaction` has its marker, at `offset`, with which the log ends."""
        first_offset: Any = entry.transaction_first_offset
        del self._ongoing[first_offset]
        self._unreplicated[first_offset] = offset  # so the first unstable offset stays where it is
        self._verifications.pop(producer_id, None)
        entry.set_epoch(epoch)
        entry.coordinator_epoch = coordinator_epoch
        entry.last_timestamp_ms = timestamp_ms
        entry.transaction_first_offset = None
        self.map_end_offset = offset + 1

    def on_high_watermark(self, high_watermark: int) -> None:
        """Transactions whose marker is below the high watermark are settled."""
        if self._unreplicated:
            settled = [first for first, last in self._unreplicated.items() if last < high_watermark]
            for first in settled:
                del self._unreplicated[first]
            if settled:
                self.find_first_unstable()

    def find_first_unstable(self) -> None:
        """Find the oldest transaction again: some have begun or ended."""
        first = next(iter(self._ongoing), None)
        if self._unreplicated:
            unreplicated = min(self._unreplicated)
            if first is None or unreplicated < first:
                first = unreplicated
        self.first_unstable_offset = first
