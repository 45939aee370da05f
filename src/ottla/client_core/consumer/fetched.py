"""`Fetched`: the records of one partition from one Fetch response, taken out batch after batch.

The records stay where they are, in the frame of the response, until they are taken. Under read_committed, batches of aborted
transactions are passed over: the response names each such transaction by its producer and first offset, and the producer's
abort marker ends it. Control batches are never handed out.

Thread rule: made on the loop, taken out by the thread that reads. That thread writes the partition's `position` first and its
`consumed_bytes` last, so a partition with nothing buffered is the loop's again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from ottla.client_core.consumer.subscription import PartitionState, Position
from ottla.client_core.deserializers import undeserializable
from ottla.errors import CorruptBatchError, CorruptRecords, DeserializationError
from ottla.records.batch import BatchView
from ottla.records.compression import Codec, decompress
from ottla.records.control import ControlType, parse_control_type
from ottla.records.kernels import ConsumerRecord, Deserializer, RecordDecoder
from ottla.records.layout import HEADER_FRONT, HEADER_SIZE, LOG_OVERHEAD, MAGIC
from ottla.records.reader import DECOMPRESSED_BYTES_MAX, iterate_records

Aborted = Iterable[tuple[int, int]]
"""(first offset, producer id) of each aborted transaction."""


def end_of_batches(data: memoryview) -> tuple[int, int, int]:
    """The whole batches in `data`: (their bytes, the offset after the last one, its leader epoch); (0, -1, -1) for none.

    The length of a damaged batch may be anything: what follows such a batch is not looked at, and reading it tells the damage.
    """
    size = len(data)
    position, next_offset, epoch = 0, -1, -1
    while size - position >= HEADER_SIZE:
        base_offset, length, leader_epoch, magic, _, _, last_delta = HEADER_FRONT.unpack_from(data, position)
        if magic != MAGIC or length < HEADER_SIZE - LOG_OVERHEAD:
            return size, base_offset, epoch
        if length > size - position - LOG_OVERHEAD:
            break
        position += LOG_OVERHEAD + length
        next_offset, epoch = base_offset + last_delta + 1, leader_epoch
    return position, next_offset, epoch


class Fetched:
    """Records of one partition that were fetched and not taken yet."""

    __slots__ = (
        "_aborted",
        "_aborted_producers",
        "_at",
        "_counted",
        "_data",
        "_decoder",
        "_end",
        "_epoch",
        "_is_checked",
        "_is_committed_only",
        "_next_offset",
        "_plain",
        "generation",
        "is_last",
        "state",
    )

    def __init__(
        self,
        state: PartitionState,
        data: memoryview,
        end: int,
        from_offset: int,
        aborted: Aborted | None,
        *,
        check_crcs: bool = True,
    ) -> None:
        self.state = state
        self.generation = state.generation
        self._data = data
        self._end = end
        self._at = 0
        self._counted = 0
        self._next_offset = from_offset
        self._is_committed_only = aborted is not None
        self._aborted = deque(sorted(aborted or ()))
        self._aborted_producers: set[int] = set()
        self._is_checked = check_crcs
        self._epoch = -1
        self._decoder: RecordDecoder | None = None
        """What reads the batch that is open; None between batches."""
        self._plain = RecordDecoder(data, *state.topic_partition, from_offset)
        self.is_last = False
        """Whether it is the last partition of its answer: when it is done, the loop may fetch more."""

    @property
    def is_stale(self) -> bool:
        """Whether the position has jumped since this was fetched: what is left must not be handed out."""
        return self.generation != self.state.generation

    @property
    def is_done(self) -> bool:
        """Whether everything was taken."""
        return self._decoder is None and self._at >= self._end

    def take(
        self,
        records: list[ConsumerRecord],
        limit: int,
        key_deserializer: Deserializer | None = None,
        value_deserializer: Deserializer | None = None,
    ) -> int:
        """Append up to `limit` records to `records` and move the partition's position behind them; returns how many.

        A damaged batch raises `CorruptBatchError`, a record that a deserializer refuses `DeserializationError`, both with the
        position: again with every call, until a seek steps past it. What comes before it is handed out first.
        """
        taken = 0
        try:
            while taken < limit:
                if self._decoder is None or self._decoder is self._plain:
                    taken += self._take_plain(records, limit - taken, key_deserializer, value_deserializer)
                    if taken >= limit or self._decoder is not None or not self._open_next():
                        break
                taken += self._take_of_batch(records, limit - taken, key_deserializer, value_deserializer)
        except (CorruptBatchError, DeserializationError):
            if not taken:
                raise
        finally:
            self._moved()
        return taken

    def take_views(self) -> tuple[int, list[BatchView]]:
        """The batches that are left, without decoding, and the offset at which they begin for the caller.

        Batches are whole: the first one may begin before that offset.
        """
        views: list[BatchView] = []
        first = self._next_offset
        try:
            while self._at < self._end:
                batch = self._read_header()
                if batch.next_offset > self._next_offset and not self._is_passed_over(batch):
                    views.append(batch)
                self._close(batch.size, batch.next_offset, batch.leader_epoch)
        except CorruptBatchError:
            if not views:
                raise
        finally:
            self._moved()
        return first, views

    def _take_plain(
        self, records: list[ConsumerRecord], limit: int, key: Deserializer | None, value: Deserializer | None
    ) -> int:
        """The fast path: batch after batch in the kernel, as long as they need nothing but decoding."""
        plain = self._plain
        try:
            return plain.take_plain(records, limit, key, value, self._is_checked, self._is_committed_only)
        except CorruptRecords as damage:
            self._next_offset = plain.next_offset
            raise self._corrupt(BatchView(self._data, plain.at), damage) from None
        except Exception as error:
            if plain.failed is None:
                raise
            raise poisoned(plain.failed, plain.is_key_failed, error) from error
        finally:
            if plain.at != self._at or plain.left:  # else it read nothing, and the epoch is that of the batch before
                self._epoch = plain.leader_epoch
            self._at, self._next_offset = plain.at, plain.next_offset
            self._decoder = plain if plain.left else None

    def _take_of_batch(
        self, records: list[ConsumerRecord], limit: int, key: Deserializer | None, value: Deserializer | None
    ) -> int:
        decoder = self._decoder
        assert decoder is not None
        try:
            taken = decoder.take(records, limit, key, value)
        except CorruptRecords as damage:
            raise self._corrupt(BatchView(self._data, self._at), damage) from None
        except Exception as error:
            if decoder.failed is None:
                raise
            raise poisoned(decoder.failed, decoder.is_key_failed, error) from error
        finally:
            self._next_offset = decoder.next_offset
        if decoder.left == 0:
            self._close(decoder.batch_size, decoder.batch_next_offset, decoder.leader_epoch)
        return taken

    # Batches

    def _open_next(self) -> bool:
        """The general path: go to the next batch that has records for the caller; False if there is none left."""
        while self._at < self._end:
            batch = self._read_header()
            if batch.next_offset > self._next_offset and not self._is_passed_over(batch):
                self._decoder = self._decode(batch)
                return True
            self._close(batch.size, batch.next_offset, batch.leader_epoch)
        return False

    def _close(self, size: int, next_offset: int, epoch: int) -> None:
        if next_offset > self._next_offset:
            self._next_offset = next_offset
        self._epoch = epoch
        self._at += size
        self._decoder = None
        self._plain.go_on(self._at, self._next_offset)

    def _read_header(self) -> BatchView:
        batch = BatchView(self._data, self._at)
        try:
            if self._is_checked:
                batch.check()
            else:
                batch.check_size()
        except CorruptRecords as damage:
            raise self._corrupt(batch, damage) from None
        return batch

    def _is_passed_over(self, batch: BatchView) -> bool:
        if not self._is_committed_only:
            return batch.is_control
        producer_id = batch.producer_id
        # Before markers too: of a transaction that began before this answer, only the marker may be in it.
        while self._aborted and self._aborted[0][0] <= batch.last_offset:
            self._aborted_producers.add(self._aborted.popleft()[1])
        if batch.is_control:
            if producer_id in self._aborted_producers and self._is_abort(batch):
                self._aborted_producers.discard(producer_id)
            return True
        return batch.is_transactional and producer_id in self._aborted_producers

    def _is_abort(self, batch: BatchView) -> bool:
        try:
            first = next(iterate_records(batch), None)
            return first is not None and parse_control_type(first.key) == ControlType.ABORT
        except CorruptRecords as damage:
            raise self._corrupt(batch, damage) from None

    def _decode(self, batch: BatchView) -> RecordDecoder:
        try:
            codec, data = batch.codec, batch.payload
            if codec != Codec.NONE and batch.count:
                data = memoryview(decompress(codec, data, DECOMPRESSED_BYTES_MAX))
            decoder = RecordDecoder(data, *self.state.topic_partition, self._next_offset)
            timestamp = batch.max_timestamp if batch.is_append_time else batch.base_timestamp
            decoder.open_records(batch.count, batch.base_offset, timestamp, batch.is_append_time, batch.leader_epoch)
            decoder.batch_is(batch.size, batch.next_offset)
        except CorruptRecords as damage:
            raise self._corrupt(batch, damage) from None
        return decoder

    # Position

    def _moved(self) -> None:
        if self.is_stale:
            return
        state = self.state
        old = state.position
        if old is None or old.offset != self._next_offset:
            epoch = self._epoch if self._decoder is None else self._decoder.leader_epoch
            state.position = Position(self._next_offset, epoch)
        state.consumed_bytes += self._at - self._counted
        self._counted = self._at

    def _corrupt(self, batch: BatchView, damage: CorruptRecords) -> CorruptBatchError:
        offset = max(self._next_offset, batch.base_offset)
        after = max(batch.next_offset, offset + 1)
        topic, partition = self.state.topic_partition
        return CorruptBatchError(
            f"{topic}-{partition} is damaged at offset {offset}: {damage}. Seek to {offset} to fetch it again, or to {after} "
            "to step past the batch",
            topic=topic,
            partition=partition,
            offset=offset,
            next_offset=after,
        )


def poisoned(record: ConsumerRecord, is_key: bool, problem: Exception) -> DeserializationError:
    """The error for a record, still with its raw key and value, that a deserializer does not read."""
    return undeserializable(
        problem,
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        is_key=is_key,
        raw_key=record.key,
        raw_value=record.value,
        raw_headers=record.headers,
        timestamp=record.timestamp,
    )
