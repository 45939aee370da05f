"""`ProducerBatch`: the records for one partition that are sent and answered together, from the first `send()` to the result.

Calling threads append to it and read its result; everything else happens on the event loop. `is_done` is set after the result,
so that a thread that sees it True reads the whole result.

A batch that the broker finds too large is split: its parts are sent in its place, it is done when they are, and handles of its
records are answered from the parts.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import partial
from struct import Struct
from typing import TYPE_CHECKING, Any, Protocol

from ottla.client_core.timeouts import seconds
from ottla.errors import InvalidRecordError, KafkaError
from ottla.ids import ZERO_UUID, RecordMetadata
from ottla.records import patch
from ottla.records.batch import BatchView
from ottla.records.compression import Codec, compress
from ottla.records.kernels import NO_HEADERS, BufferMemory, OpenBatch, pack_headers, record_size_max
from ottla.records.layout import (
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    PRODUCER_ID_AT,
    TRANSACTIONAL,
)
from ottla.records.reader import iterate_records

if TYPE_CHECKING:
    pass


# What becomes of a record: its metadata once it is stored, and how callers wait for that.

UNKNOWN_OFFSET = -1
"""The offset of a record whose broker did not tell it: acks=0, or a duplicate that the broker no longer remembers."""


class Waiting(Protocol):
    """How a caller of a producer waits for a batch: the synchronous face blocks its thread, the asyncio face awaits."""

    def wait(self, batch: ProducerBatch, timeout_s: float | None) -> None:
        """Block until `batch` is done; `TimeoutError` when the time is up first."""
        ...

    async def wait_async(self, batch: ProducerBatch) -> None:
        """Await until `batch` is done."""
        ...


__all__ = ["UNKNOWN_OFFSET", "RecordMetadata", "Waiting"]


_PRODUCER = Struct(">qhi")
_SEQUENCE_MASK = 0x7FFFFFFF
_AS_METADATA = partial(tuple.__new__, RecordMetadata)
"""Makes metadata without a named tuple's constructor: half the time."""


def next_sequence(sequence: int, count: int) -> int:
    """The sequence number `count` records after `sequence`. After the largest 32-bit number comes 0."""
    return (sequence + count) & _SEQUENCE_MASK


class ProducerBatch(OpenBatch):
    """One batch. `key` is its (topic, partition)."""

    __slots__ = (
        "append_time_ms",
        "attempts",
        "base_offset",
        "base_sequence",
        "created_ms",
        "error",
        "hurry",
        "is_done",
        "is_reset",
        "is_sealed",
        "is_uncertain",
        "is_wanted",
        "key",
        "leader_epoch",
        "number",
        "parent",
        "parts",
        "payload",
        "producer",
        "record_errors",
        "reserved",
        "retried_error",
        "retry_at_ms",
        "sent_ms",
        "spare",
        "topic_id",
        "waiters",
        "waiting",
    )

    def __init__(
        self, key: tuple[str, int], memory: BufferMemory, capacity: int, size_max: int, created_ms: int, waiting: Waiting | None
    ) -> None:
        super().__init__(memory, capacity, size_max)
        self.key = key
        self.created_ms = created_ms
        self.waiting = waiting
        self.reserved = True
        """Whether `capacity` counts in buffer.memory. The parts of a split batch live in the reservation of the whole."""
        self.number = 0
        """The order in which batches were opened. The parts of a batch have its number."""
        self.attempts = 0
        self.retried_error: KafkaError | None = None
        """Why it was sent again, the last time."""
        self.retry_at_ms = 0
        self.sent_ms = 0
        self.leader_epoch = -1
        """The epoch of the leader that it was last sent to."""
        self.topic_id = ZERO_UUID
        """The topic that it was last sent to: its name may come to mean another one."""
        self.producer: tuple[int, int] = (NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
        self.base_sequence = NO_SEQUENCE
        self.is_reset = False
        """Whether it has got another sequence number since it was last sent: an answer is then to the old one."""
        self.is_uncertain = False
        """Whether an attempt ended without an answer, or with one that may follow an append: the batch may be stored."""
        self.is_sealed = False
        self.payload: bytearray | memoryview = bytearray()
        """What is sent: the whole batch, from its header on."""
        self.spare = bytearray()
        """Its buffer, once nothing can read it any more: the owner may use it for another batch."""
        self.is_done = False
        self.error: KafkaError | None = None
        self.base_offset = UNKNOWN_OFFSET
        self.append_time_ms = -1
        self.record_errors: dict[int, str] = {}
        self.parent: ProducerBatch | None = None
        self.parts: list[tuple[int, ProducerBatch]] = []
        """(index of its first record in this batch, batch) of each part, if this batch was split."""
        self.waiters: list[Callable[[], Any]] = []
        self.is_wanted = False
        """Whether a caller waits for it: it does not linger."""
        self.hurry: Callable[[], Any] | None = None
        """Makes the loop look at the batches; None once it is done."""

    @property
    def topic(self) -> str:
        """The topic's name."""
        return self.key[0]

    @property
    def partition(self) -> int:
        """The partition's number."""
        return self.key[1]

    @property
    def has_sequence(self) -> bool:
        """Whether it has a sequence number: it was sent before."""
        return self.base_sequence != NO_SEQUENCE

    @property
    def last_sequence(self) -> int:
        """The sequence number of its last record."""
        return next_sequence(self.base_sequence, self.count - 1)

    def __repr__(self) -> str:
        return f"ProducerBatch({self.topic}-{self.partition}, {self.count} records, sequence {self.base_sequence})"

    # Bytes

    def seal(self, codec: Codec, level: int | None, is_transactional: bool) -> None:
        """Write the header and compress the records. The CRC comes with `write_producer`."""
        self.close()
        whole = memoryview(self.buffer)[: self.end]
        if codec:
            with whole, whole[HEADER_SIZE:] as records:
                payload = compress(codec, records, level)
            self.payload = bytearray(HEADER_SIZE)
            self.payload += payload
        else:
            self.payload = whole
        attributes = codec | (TRANSACTIONAL if is_transactional else 0)
        place = (0, len(self.payload) - LOG_OVERHEAD, NO_LEADER_EPOCH, MAGIC, 0, attributes, self.count - 1)
        times = (self.base_timestamp, self.max_timestamp)
        HEADER.pack_into(self.payload, 0, *place, *times, *self.producer, self.base_sequence, self.count)
        self.is_sealed = True

    def set_producer(self, producer: tuple[int, int], base_sequence: int) -> None:
        """Set who sends it with which sequence number; `write_producer` puts that into the bytes."""
        self.producer = producer
        self.base_sequence = base_sequence

    def write_producer(self) -> None:
        """Write producer id, epoch and sequence number into the header, then the CRC, which covers them."""
        _PRODUCER.pack_into(self.payload, PRODUCER_ID_AT, *self.producer, self.base_sequence)
        patch.set_crc(self.payload, 0, len(self.payload))

    def split(self, size_max: int) -> list[ProducerBatch]:
        """The records in batches of at most `size_max` bytes, where records are not larger than that by themselves."""
        parts: list[ProducerBatch] = []
        index = 0
        for record in iterate_records(BatchView(self.payload)):
            headers = pack_headers(record.headers) if record.headers else NO_HEADERS
            size = record_size_max(record.key, record.value, headers)
            if not parts or parts[-1].append(record.timestamp, record.key, record.value, headers, None) < 0:
                part = ProducerBatch(self.key, BufferMemory(self.end + size), size, size_max, self.created_ms, self.waiting)
                part.reserved = False
                part.parent = self
                part.append(record.timestamp, record.key, record.value, headers, None)
                self.parts.append((index, part))
                parts.append(part)
            index += 1  # noqa: SIM113
        if self.has_sequence:
            sequence = self.base_sequence
            for part in parts:
                part.set_producer(self.producer, sequence)
                sequence = next_sequence(sequence, part.count)
        for part in parts:
            part.attempts = self.attempts
            part.number = self.number
        self._drop_bytes()
        return parts

    def unfinished(self) -> list[ProducerBatch]:
        """What of it is still to be stored: itself, or the parts of its parts."""
        if not self.parts:
            return [] if self.is_done else [self]
        return [each for _, part in self.parts for each in part.unfinished()]

    # Result

    def complete(self, base_offset: int, append_time_ms: int) -> None:
        """The broker has stored it."""
        self.base_offset = base_offset
        self.append_time_ms = append_time_ms
        if base_offset >= 0:
            if self.attempts == 0:
                self._save_buffer()
            self.stored_offset, self.stored_time = base_offset, append_time_ms
            self.stored = (_AS_METADATA, *self.key)
        self.finish()

    def _save_buffer(self) -> None:
        """Keep the buffer for another batch: the only request with it was answered, so all of it has been sent."""
        try:
            if isinstance(self.payload, memoryview):
                self.payload.release()
            self.spare = self.buffer
        except BufferError:
            pass  # something reads it still

    def _drop_bytes(self) -> None:
        self.buffer = bytearray()
        self.payload = self.buffer

    def fail(self, error: KafkaError) -> None:
        """It will not be stored, or it is not known whether it is."""
        self.error = error
        self.record_errors = dict(error.record_errors)
        self.finish()

    def finish(self) -> None:
        """Release the buffer and wake those who wait. Callbacks are left for the owner to call."""
        self.close()
        self.is_done = True
        self._drop_bytes()
        self.hurry = None
        waiters, self.waiters = self.waiters, []
        for waiter in waiters:
            waiter()

    def metadata_of(self, index: int, timestamp: int) -> RecordMetadata:
        """The metadata of a record, or its error raised. Only once the batch is done."""
        if self.parts:
            first, part = self._part_of(index)
            return part.metadata_of(index - first, timestamp)
        error = self.error_of(index)
        if error is not None:
            raise error.with_traceback(None)
        offset = self.base_offset + index if self.base_offset >= 0 else UNKNOWN_OFFSET
        return RecordMetadata(*self.key, offset, self.append_time_ms if self.append_time_ms >= 0 else timestamp)

    def stored_parts(self, index: int, count: int) -> Iterator[tuple[int, int]]:
        """The offsets of `count` stored records from `index` on, as (first offset, how many)."""
        if not self.parts:
            yield (self.base_offset + index if self.base_offset >= 0 else UNKNOWN_OFFSET), count
            return
        while count > 0:
            first, part = self._part_of(index)
            taken = min(count, part.count - (index - first))
            yield from part.stored_parts(index - first, taken)
            index, count = index + taken, count - taken

    def error_of(self, index: int) -> KafkaError | None:
        """Why a record was not stored; None if it was."""
        if self.parts:
            first, part = self._part_of(index)
            return part.error_of(index - first)
        if self.error is None or not self.record_errors:
            return self.error
        said = self.record_errors.get(index)
        if said is not None:
            return InvalidRecordError(f"the broker refused this record for {self.topic}-{self.partition}: {said}")
        return InvalidRecordError(
            f"this record for {self.topic}-{self.partition} was not stored, because others in its batch are not valid: send it "
            "again"
        )

    def _part_of(self, index: int) -> tuple[int, ProducerBatch]:
        return self.parts[bisect_right(self.parts, index, key=lambda part: part[0]) - 1]

    # What `Delivery` calls

    def want(self) -> None:
        """A caller begins to wait for it: it leaves at once, and so does what goes before it. Called in any thread.

        Records that are added before the loop's next turn go along.
        """
        if self.is_wanted:
            return
        self.is_wanted = True  # before the loop is woken: it reads this in every step
        hurry = self.hurry
        if hurry is not None and not self.is_closed:
            hurry()

    def result(self, index: int, timestamp: int, timeout_s: float | None) -> RecordMetadata:
        """Wait for the batch; returns the record's metadata or raises its error."""
        if not self.is_done:
            self._wait(seconds("result", timeout_s))
        return self.metadata_of(index, timestamp)

    def exception(self, index: int, timeout_s: float | None) -> KafkaError | None:
        """Wait for the batch; returns the record's error."""
        if not self.is_done:
            self._wait(seconds("exception", timeout_s))
        return self.error_of(index)

    def _wait(self, timeout_s: float | None) -> None:
        assert self.waiting is not None
        if timeout_s is None or timeout_s > 0:  # with 0 a caller only looks
            self.want()
        self.waiting.wait(self, timeout_s)

    async def await_result(self, index: int, timestamp: int) -> RecordMetadata:
        """Await the batch; returns the record's metadata or raises its error."""
        if not self.is_done:
            assert self.waiting is not None
            self.want()
            await self.waiting.wait_async(self)
        return self.metadata_of(index, timestamp)

    def describe(self, index: int) -> str:
        """A record's place and state, for `repr`."""
        if not self.is_done:
            return f"{self.topic}-{self.partition}, waiting"
        error = self.error_of(index)
        if error is not None:
            return f"{self.topic}-{self.partition}, failed: {error}"
        return f"{self.topic}-{self.partition}, offset {self.metadata_of(index, -1).offset}"
