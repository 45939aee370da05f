"""`Deliveries`: what becomes of many records that were sent in one call, without an object per record.

The records' places are runs in batches (`kernel_many.py`). A handle of one record is made when it is asked for.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, NamedTuple, overload

from ottla.client_core.producer.batch import ProducerBatch, RecordMetadata
from ottla.client_core.timeouts import seconds
from ottla.errors import KafkaError
from ottla.records.kernels import Delivery, Places


class StoredRange(NamedTuple):
    """Records of one call that are stored one behind the other. `offset` is the first one's, -1 if the broker did not say."""

    topic: str
    partition: int
    offset: int
    records: int


class Stamps:
    """The timestamps that the records of a call were sent with, from record to record as they were added."""

    __slots__ = ("_sources", "_starts")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._sources: list[int | Callable[[int], int]] = []

    def add(self, start: int, source: int | Callable[[int], int]) -> None:
        """Records from `start` on have this timestamp, or the one that the call returns for their number from `start`."""
        self._starts.append(start)
        self._sources.append(source)

    def get(self, record: int) -> int:
        """A record's timestamp."""
        number = bisect_right(self._starts, record) - 1
        source = self._sources[number]
        return source if isinstance(source, int) else source(record - self._starts[number])


class Deliveries(Sequence[Delivery]):
    """A sequence of `Delivery`, in the order of the records."""

    __slots__ = ("_part", "places", "stamps")

    def __init__(self, places: Places | None = None, stamps: Stamps | None = None, part: range | None = None) -> None:
        self.places = Places() if places is None else places
        self.stamps = Stamps() if stamps is None else stamps
        self._part = part
        """Which of the records; None: all, also those that are added later."""

    @property
    def _rows(self) -> range:
        return range(self.places.count) if self._part is None else self._part

    @overload
    def __getitem__(self, index: int) -> Delivery: ...
    @overload
    def __getitem__(self, index: slice) -> Deliveries: ...
    def __getitem__(self, index: int | slice) -> Delivery | Deliveries:
        found = self._rows[index]
        return Deliveries(self.places, self.stamps, found) if isinstance(found, range) else self._handle(found)

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Delivery]:
        if self._rows.step != 1:
            yield from map(self._handle, self._rows)
            return
        for record, batch, index, count in self._runs():
            for number in range(count):
                yield Delivery(batch, index + number, self.stamps.get(record + number))

    def _handle(self, record: int) -> Delivery:
        start, batch, index, _ = self.places.run(self.places.run_of(record))
        return Delivery(batch, index + record - start, self.stamps.get(record))

    def _runs(self) -> Iterator[tuple[int, ProducerBatch, int, int]]:
        """(first record, batch, its index there, count) of each run, in the order of the records."""
        places, rows = self.places, self._rows
        if rows.step != 1:
            for record in rows:
                start, batch, index, _ = places.run(places.run_of(record))
                yield record, batch, index + record - start, 1
            return
        if not rows:
            return
        for number in range(places.run_of(rows.start), places.run_of(rows[-1]) + 1):
            start, batch, index, count = places.run(number)
            skipped = max(0, rows.start - start)
            yield start + skipped, batch, index + skipped, min(count, rows.stop - start) - skipped

    def batches(self) -> list[ProducerBatch]:
        """The batches that the records are in, each once."""
        if len(self._rows) == self.places.count:
            return list(dict.fromkeys(self.places.batches))
        return list(dict.fromkeys(batch for _, batch, _, _ in self._runs()))

    def done(self) -> bool:
        """Whether every record is stored or has failed."""
        return all(batch.is_done for batch in self.batches())

    def wait(self, timeout: float | None = None) -> int:
        """Wait up to `timeout` seconds for each batch; returns how many records there are, or raises the first error."""
        failure = self.first_failure(timeout)
        if failure is not None:
            raise failure[1].with_traceback(None)
        return len(self._rows)

    def first_failure(self, timeout: float | None = None) -> tuple[int, KafkaError] | None:
        """Wait up to `timeout` seconds for each batch; returns (number, error) of the first record that was not stored."""
        timeout, is_stored = seconds("wait", timeout), True
        for batch in self._wanted(timeout):
            is_stored = batch.exception(0, timeout) is None and not batch.parts and is_stored
        return None if is_stored else self._first_failure()

    def _wanted(self, timeout: float | None) -> list[ProducerBatch]:
        """The batches, all of which leave at once because a caller waits for them; with a timeout of 0 it only looks."""
        found = self.batches()
        if timeout is None or timeout > 0:
            for batch in found:
                batch.want()
        return found

    def _first_failure(self) -> tuple[int, KafkaError] | None:
        passed = 0
        for _, batch, index, count in self._runs():
            if batch.error is not None or batch.parts:
                for number in range(count):
                    error = batch.error_of(index + number)
                    if error is not None:
                        return passed + number, error
            passed += count
        return None

    def ranges(self, timeout: float | None = None) -> list[StoredRange]:
        """Wait, and return where the records are stored as ranges of offsets, or raise the first error."""
        self.wait(timeout)
        found: dict[tuple[str, int, int], StoredRange] = {}  # by topic, partition and the offset after the range
        for _, batch, index, count in self._runs():
            for first, number in batch.stored_parts(index, count):
                key = (*batch.key, first)
                before = found.pop(key, None) if first >= 0 else None
                made = StoredRange(*batch.key, first, number)
                if before is not None:
                    made = before._replace(records=before.records + number)
                found[(*batch.key, -2 - len(found) if first < 0 else first + number)] = made
        return list(found.values())

    def result(self, timeout: float | None = None) -> list[RecordMetadata]:
        """Wait, and return the metadata of every record, or raise the first error."""
        self.wait(timeout)
        return [handle.result(timeout) for handle in self]

    def __await__(self) -> Generator[Any, None, list[RecordMetadata]]:
        return self._await_all().__await__()

    async def _await_all(self) -> list[RecordMetadata]:
        self._wanted(None)
        return [await handle for handle in self]

    def __repr__(self) -> str:
        return f"Deliveries({len(self._rows)} records)"
