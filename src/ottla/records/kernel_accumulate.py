# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, annotation_typing=False
# cython: overflowcheck=False, cdivision=True
"""Batches under construction: the part of a producer's `send()` that runs once per record, in the calling thread.

As plain Python this file is complete. Compiled with Cython, the types in `kernel_accumulate.pxd` turn it into C; the rules are
those of `kernel.py`.

Threads: callers append while an event loop's thread closes batches. A compiled `TopicBatches.append` runs no Python code
between its first and last change, so that the interpreter lock makes it atomic; the pure variant holds `lock`, which its owner
also holds when it opens or closes batches.

`BufferMemory` counts allocated bytes, not encoded ones: a buffer grows by doubling, and each growth is reserved first. So the
sum of all buffers never exceeds the limit.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NoReturn

from ottla.records import kernel_fields as fields
from ottla.records import layout

if TYPE_CHECKING:
    from ottla.errors import KafkaError
    from ottla.ids import RecordMetadata

_HEADER_SIZE = layout.HEADER_SIZE
_HEADER_NUMBERS_SIZE_MAX = 31
"""The most bytes that a record's own numbers take: length, attributes, timestamp delta, offset delta and two field lengths."""
_MASK31 = 0x7FFFFFFF
_NS_PER_MS = 1_000_000
_SPARE_BYTES_MAX = 8 << 20
"""How many bytes of buffers a producer keeps for later batches."""
NO_HEADERS = b"\x00"
"""A record's headers as bytes: the count 0."""

Headers = Iterable[tuple[str, bytes | None]]
Callback = Callable[..., Any]


def pack_headers(headers: Headers) -> bytes:
    """The header count and the headers as a record ends with them. `TypeError` names the header that is not (str, bytes)."""
    packed = bytearray(NO_HEADERS)
    count = 0
    for header in headers:
        if type(header) is not tuple or len(header) != 2:
            raise TypeError(f"header {count} is {header!r}: give each header as a tuple of a str and bytes or None")
        name, value = header
        if not isinstance(name, str) or not (value is None or isinstance(value, bytes | bytearray | memoryview)):
            raise TypeError(f"header {count} is {header!r}: its key must be a str, and its value bytes or None")
        _pack_field(packed, name.encode("utf-8", "surrogateescape"))
        _pack_field(packed, value)
        count += 1
    if count > 0x3F:
        _pack_count(packed, count)
    else:
        packed[0] = count << 1
    return bytes(packed)


def _pack_field(packed: bytearray, value: Any) -> None:
    """Append the length and bytes of a header's key or value."""
    size = -1 if value is None else len(value)
    start = len(packed)
    packed.extend(bytes(10))
    out = packed
    end = fields.put_varint(out, start, size)
    del packed[end:]
    if size > 0:
        packed.extend(value)


def _pack_count(packed: bytearray, count: int) -> None:
    """Write a count that takes more than the one byte that was left for it."""
    number = bytearray(10)
    out = number
    end = fields.put_varint(out, 0, count)
    packed[0:1] = number[:end]


def record_size_max(key: bytes | None, value: bytes | None, headers: bytes) -> int:
    """An upper bound for the encoded size of a record in a batch of its own, the batch's header included."""
    size = _HEADER_SIZE + _HEADER_NUMBERS_SIZE_MAX + len(headers)
    if key is not None:
        size += len(key)
    if value is not None:
        size += len(value)
    return size


class BufferMemory:
    """How many bytes the buffers of all batches may take and do take: buffer.memory.

    It keeps buffers of `spare_size` bytes that are no longer used, for the next batches: the pages of a new buffer cost more
    than the records that are copied into it. Spare buffers count in the limit and are dropped where others need the memory.
    """

    __slots__ = ("is_contended", "limit", "spare", "spare_size", "used")

    def __init__(self, limit: int, spare_size: int = 0) -> None:
        self.limit = limit
        self.used = 0
        self.spare_size = spare_size
        self.spare: list[bytearray] = []
        self.is_contended = False
        """True while callers wait for memory: buffers do not grow then, so that a release reaches those who wait."""

    def reserve(self, size: int) -> bool:
        """Count `size` bytes as used, if they are left."""
        if size > self.limit - self.used:
            return False
        self.used += size
        while self.spare and self.used + len(self.spare) * self.spare_size > self.limit:
            self.spare.pop()
        return True

    def release(self, size: int) -> None:
        """Give back `size` bytes."""
        self.used -= size

    def take(self, size: int) -> bytearray:
        """A buffer of `size` bytes, which are reserved already. What is in it is not defined."""
        if size == self.spare_size and self.spare:
            return self.spare.pop()
        return bytearray(size)

    def give(self, buffer: bytearray) -> None:
        """Keep a buffer, which is no longer reserved, for `take`, if it fits there and no view of it is left."""
        size = len(buffer)
        kept = len(self.spare) * size
        if size == 0 or size != self.spare_size or kept + size > _SPARE_BYTES_MAX or self.used + kept + size > self.limit:
            return
        try:
            buffer.append(buffer.pop())  # a bytearray with views refuses to be resized
        except BufferError:
            return
        self.spare.append(buffer)


class OpenBatch:
    """A batch under construction. Records go behind the place of its header, which is written when it is sealed.

    The first record is always accepted, so `capacity` must have room for it; the owner has reserved those bytes.
    """

    __slots__ = (
        "base_timestamp",
        "buffer",
        "callbacks",
        "capacity",
        "count",
        "end",
        "is_closed",
        "max_timestamp",
        "memory",
        "place_number",
        "place_owner",
        "record_bytes_max",
        "size_max",
        "stored",
        "stored_offset",
        "stored_time",
    )

    def __init__(self, memory: BufferMemory, capacity: int, size_max: int) -> None:
        self.memory = memory
        self.capacity = capacity
        self.size_max = size_max
        self.buffer = memory.take(capacity)
        self.end = _HEADER_SIZE
        """Where the encoded records end in `buffer`."""
        self.count = 0
        self.record_bytes_max = 0
        """The size of the largest record, encoded."""
        self.base_timestamp = -1
        self.max_timestamp = -1
        self.is_closed = False
        self.callbacks: dict[int, tuple[int, Callback]] | None = None
        """(timestamp, callback) of records that have one, by index."""
        self.place_owner = 0
        """Which call's `Places` (`kernel_many.py`) has counted this batch last, and as which number."""
        self.place_number = 0
        self.stored: tuple[Callable[..., RecordMetadata], str, int] | None = None
        """(what makes metadata of a tuple, topic, partition), once all records are stored; None: `result` has to look."""
        self.stored_offset = -1
        """The offset of the first record, if `stored`; `stored_time` is the time that the broker gave all, or -1."""
        self.stored_time = -1

    def append(self, timestamp: int, key: bytes | None, value: bytes | None, headers: bytes, callback: Callback | None) -> int:
        """Encode one record and return its index; -1 if the batch is closed or has no room for it."""
        return self._append(timestamp, key, value, headers, callback)

    def _append(self, timestamp: int, key: bytes | None, value: bytes | None, headers: bytes, callback: Callback | None) -> int:
        """`append` as `TopicBatches` calls it: in the compiled variant a C function."""
        if callback is not None:
            # Made before anything is read: an allocation can start a garbage collection, which can switch threads.
            called = (timestamp, callback)
            if self.callbacks is None:
                made: dict[int, tuple[int, Callback]] = {}
                if self.callbacks is None:
                    self.callbacks = made
        key_size = value_size = -1
        key_raw = value_raw = headers_raw = headers
        if key is not None:
            key_raw, key_size = key, len(key)
        if value is not None:
            value_raw, value_size = value, len(value)
        index = self._append_raw(timestamp, key_raw, 0, key_size, value_raw, 0, value_size, headers_raw, len(headers))
        if index >= 0 and callback is not None and self.callbacks is not None:
            self.callbacks[index] = called
        return index

    def _append_raw(
        self,
        timestamp: int,
        key: fields.Buffer,
        key_at: int,
        key_size: int,
        value: fields.Buffer,
        value_at: int,
        value_size: int,
        headers: fields.Buffer,
        headers_size: int,
    ) -> int:
        """Like `append`, for fields that lie at a place in a buffer; a size of -1 is a null.

        It allocates nothing that the garbage collector tracks, so that no other thread runs before it returns.
        """
        if self.is_closed:
            return -1
        base = self.base_timestamp
        if self.count == 0:
            base = timestamp
        delta = fields.wrap64(timestamp - base)
        size = 1 + fields.varint_size(delta) + fields.varint_size(self.count) + headers_size
        size += fields.varint_size(key_size) + fields.varint_size(value_size)
        if key_size > 0:
            size += key_size
        if value_size > 0:
            size += value_size
        end = self.end + size + fields.varint_size(size)
        if self.count > 0 and end > self.size_max:
            return -1
        if end > self.capacity and not self._grow(end):
            return -1
        out = self.buffer
        at = fields.put_varint(out, self.end, size)
        out[at] = 0
        at = fields.put_varint(out, at + 1, delta)
        at = fields.put_varint(out, at, self.count)
        at = fields.put_varint(out, at, key_size)
        if key_size > 0:
            at = fields.copy(out, at, key, key_at, key_size)
        at = fields.put_varint(out, at, value_size)
        if value_size > 0:
            at = fields.copy(out, at, value, value_at, value_size)
        fields.copy(out, at, headers, 0, headers_size)
        if self.count == 0:
            self.base_timestamp = timestamp
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        if end - self.end > self.record_bytes_max:
            self.record_bytes_max = end - self.end
        self.end = end
        self.count += 1
        return self.count - 1

    def _grow(self, needed: int) -> bool:
        """Make room for `needed` bytes, if the memory is there."""
        if self.memory.is_contended:
            return False
        wanted = self.capacity * 2
        if wanted > self.size_max:
            wanted = self.size_max
        if wanted < needed:
            wanted = needed
        if not self.memory.reserve(wanted - self.capacity):
            return False
        self.buffer.extend(bytes(wanted - self.capacity))
        self.capacity = wanted
        return True

    def close(self) -> None:
        """Accept no more records."""
        self.is_closed = True


class Delivery:
    """The handle of one record that was given to a producer: its place in a batch, and through that what became of it.

    `result(timeout)` waits and returns the record's metadata or raises its error; with asyncio, await the handle instead.
    """

    __slots__ = ("batch", "index", "timestamp")

    def __init__(self, batch: Any, index: int, timestamp: int) -> None:
        self.batch = batch
        self.index = index
        self.timestamp = timestamp

    def done(self) -> bool:
        """Whether the record is stored or has failed."""
        return bool(self.batch.is_done)

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Wait up to `timeout` seconds; returns the `RecordMetadata`, or raises why the record was not stored."""
        if isinstance(self.batch, OpenBatch):
            batch: OpenBatch = self.batch
            stored = batch.stored
            if stored is not None:
                stamp = self.timestamp if batch.stored_time < 0 else batch.stored_time
                return stored[0]((stored[1], stored[2], batch.stored_offset + self.index, stamp))
        return self.batch.result(self.index, self.timestamp, timeout)  # type: ignore[no-any-return]  # a room above has the class

    def exception(self, timeout: float | None = None) -> KafkaError | None:
        """Wait up to `timeout` seconds; returns why the record was not stored, None if it was."""
        return self.batch.exception(self.index, timeout)  # type: ignore[no-any-return]  # a room above has the class

    @property
    def get(self) -> NoReturn:
        """Not there: for programs that come from kafka-python."""
        raise AttributeError("`get` is `result` here: delivery.result(timeout=10)")

    @property
    def add_callback(self) -> NoReturn:
        """Not there: for programs that come from kafka-python."""
        raise AttributeError("`add_callback` is on_delivery here: producer.send(…, on_delivery=f), with f(metadata, error)")

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        return self.batch.await_result(self.index, self.timestamp).__await__()  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"Delivery({self.batch.describe(self.index)})"


class TopicBatches:
    """The open batches of one topic, by partition, and the choice of a record's partition.

    Records with a key go by its hash. Those without stay on one partition for `sticky_size` bytes, then move on to the next of
    `upcoming`, which the owner has drawn. As in Kafka (KIP-794), a move waits until the partition's batch has that size or is
    gone, so that it leaves no small batch behind, but not for more than twice `sticky_size`.
    """

    __slots__ = ("ignores_keys", "lock", "open", "partition_count", "sticky", "sticky_left", "sticky_size", "upcoming")

    def __init__(
        self, partition_count: int, lock: AbstractContextManager[Any], ignores_keys: bool, sticky_size: int = 16_384
    ) -> None:
        self.partition_count = partition_count
        self.lock = lock
        self.ignores_keys = ignores_keys
        self.open: list[OpenBatch | None] = [None] * partition_count
        self.sticky = -1
        """Where records without a key go; -1: the owner must choose one."""
        self.sticky_left = 0
        """How many more bytes go there before it is another partition's turn; 0 or less: its turn has come."""
        self.sticky_size = sticky_size
        self.upcoming: list[int] = []
        """The partitions that follow `sticky`, the next one last."""

    def partition_of(self, key: bytes | None) -> int:
        """The partition of a record with this key; -1 if it has none and no partition is chosen for such records."""
        if key is None or self.ignores_keys:
            return self.sticky
        raw = key
        return self._hashed(raw, 0, len(key))

    def produced(self, size: int, batch_end: int) -> None:
        """Count `size` bytes of a record without a key, whose batch ends at `batch_end` now."""
        self.sticky_left -= size
        if self.sticky_left <= 0 and (batch_end >= self.sticky_size or self.sticky_left <= -self.sticky_size):
            self.move_on()

    def move_on(self) -> None:
        """Let the next record without a key go to another partition; -1 if the owner has drawn none."""
        self.sticky = -1
        self.sticky_left = self.sticky_size
        if len(self.upcoming) > 0:
            self.sticky = self.upcoming.pop()

    def _hashed(self, key: fields.Buffer, at: int, size: int) -> int:
        return (fields.murmur2(key, at, size) & _MASK31) % self.partition_count

    def append(
        self,
        partition: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: bytes,
        callback: Callback | None,
    ) -> Delivery | None:
        """Add a record to the open batch of its partition (-1: by its key); None if there is none or it is full."""
        if _COMPILED:
            return self._append(partition, timestamp, key, value, headers, callback)
        with self.lock:
            return self._append(partition, timestamp, key, value, headers, callback)

    def send(self, timestamp: int, key: Any, value: Any, callback: Callback | None) -> Delivery | None:
        """Like `append`, of a record without headers for the partition of its key; None also if it is not bytes or None."""
        if key is not None and type(key) is not bytes:
            return None
        if value is not None and type(value) is not bytes:
            return None
        return self.append(-1, timestamp, key, value, NO_HEADERS, callback)

    def _append(
        self,
        partition: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: bytes,
        callback: Callback | None,
    ) -> Delivery | None:
        is_keyless = partition < 0 and (key is None or self.ignores_keys)
        if partition < 0:
            partition = self.partition_of(key)
        if partition < 0 or partition >= self.partition_count:
            return None
        batch = self.open[partition]
        if batch is None:
            return None
        before = batch.end
        index = batch._append(timestamp, key, value, headers, callback)
        if index < 0:
            return None
        if is_keyless:
            self.produced(batch.end - before, batch.end)
        # Without the call of a constructor, which would pack its arguments into a tuple.
        made = Delivery.__new__(Delivery)
        made.batch = batch
        made.index = index
        made.timestamp = timestamp
        # A cycle through its batch ends when the batch is done and drops its callbacks. A million handles held would cost the
        # collector a tenth of the time that it takes to send their records.
        fields.untrack(made)
        return made


class PlainSend:
    """The base class of a synchronous producer: `send` of a record that goes into an open batch as it is.

    Every other record goes on to `_send_other`, which the producer defines. As a method in Python, with the clock's around it,
    `send` took three times as long as adding the record does.
    """

    __slots__ = ("_clock_ns", "_generation", "_lineage", "_plain_topics")

    _clock_ns: Callable[[], int]
    _generation: int
    """The lineage's generation when the producer was made: in a forked child it is another."""
    _lineage: Any
    _plain_topics: dict[str, TopicBatches]
    """The topics whose open batches take records as they are; none once the producer is closed."""

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Any = (),
        on_delivery: Callback | None = None,
    ) -> Delivery:
        """Add a record to its partition's batch, and return a handle of what becomes of it.

        `delivery.result()` waits until the record is stored; with asyncio, await the delivery. What is wrong with the record
        raises at once: its topic's name, its types, its size. `timestamp` is in milliseconds since 1970, now by default.
        `on_delivery(metadata, error)` is called on the producer's thread, with asyncio on the event loop.
        """
        if partition is None and timestamp is None and not headers:
            delivery = self._send_plain(topic, value, key, on_delivery)
            if delivery is not None:
                return delivery
        return self._send_other(topic, value, key, partition, timestamp, headers, on_delivery)

    def _send_plain(self, topic: str, value: Any, key: Any, on_delivery: Any) -> Delivery | None:
        """Add a record to its partition's open batch; None if it needs more than that."""
        batches = self._plain_topics.get(topic)
        if batches is None or self._lineage.generation != self._generation:
            return None
        if on_delivery is not None and not callable(on_delivery):
            return None
        now_ns = self._clock_ns()
        return batches.send(now_ns // _NS_PER_MS, key, value, on_delivery)

    def _send_other(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp: int | None,
        headers: Any,
        on_delivery: Callback | None,
    ) -> Delivery:
        """Send any other record; the producer overrides it."""
        raise NotImplementedError


# A compiled function is no plain function: that is how the variants know which of them they are.
_COMPILED = type(pack_headers).__name__ != "function"
