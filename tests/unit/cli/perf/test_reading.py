"""The loop of `ottla perf consume`: columns first, then single records, and never more than asked for."""

from types import SimpleNamespace
from typing import Any

from ottla.cli.perf.date_format import KAFKAS, DateFormat
from ottla.cli.perf.reading import TAIL_RECORDS, Reading, ReadPlan


class FakeConsumer:
    """Has `each` records of a key of 1 and a value of 2 bytes ready at every poll."""

    def __init__(self, each: int) -> None:
        self._each = each
        self.columns = self.singles = 0

    def subscribe(self, topics: object, on_assigned: Any, on_revoked: Any) -> None:
        on_assigned(set())

    def consume_columns(self, timeout: float) -> dict[str, Any]:
        self.columns += self._each
        column = SimpleNamespace(data=bytes(self._each))
        return {"t-0": SimpleNamespace(rows=self._each, keys=column, values=SimpleNamespace(data=bytes(2 * self._each)))}

    def batches(self, timeout: float, max_records: int) -> dict[str, Any]:
        count = min(self._each, max_records)
        self.singles += count
        return {"t-0": [SimpleNamespace(key=b"k", value=b"vv")] * count} if count else {}


def read(consumer: FakeConsumer, plan: ReadPlan) -> tuple[bool, Reading]:
    reading = Reading(consumer, plan, DateFormat(KAFKAS), lambda _: None, lambda *_: None)  # type: ignore[arg-type]
    return reading.run(), reading


def test_columns_are_taken_until_the_tail() -> None:
    consumer = FakeConsumer(TAIL_RECORDS)
    is_complete, reading = read(consumer, ReadPlan(["t"], 10 * TAIL_RECORDS))
    assert is_complete
    assert reading.statistics.records == 10 * TAIL_RECORDS
    assert reading.statistics.size_bytes == 30 * TAIL_RECORDS
    assert consumer.columns > consumer.singles > 0


def test_few_records_are_taken_one_by_one() -> None:
    consumer = FakeConsumer(TAIL_RECORDS)
    assert read(consumer, ReadPlan(["t"], 7))[1].statistics.records == 7
    assert (consumer.columns, consumer.singles) == (0, 7)


def test_silence_for_longer_than_the_timeout_ends_it() -> None:
    is_complete, reading = read(FakeConsumer(0), ReadPlan(["t"], 1, timeout_ms=10))
    assert not is_complete
    assert reading.statistics.records == 0
