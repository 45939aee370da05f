"""`ottla perf consume` against a broker: lines, timeouts, limits."""

import json
import re
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.cli.real_broker import RunOttla

from ottla.cli.perf.consume import HEADINGS, TAIL_RECORDS, Reading, ReadPlan, ReadStatistics


@pytest.fixture
def filled(ottla: RunOttla, topic: str) -> str:
    assert ottla("perf", "produce", topic, "--num-records", 3000, "--record-size", 10).rc == 0
    return topic


def test_table_has_all_columns_in_a_pipe_and_progress_goes_to_standard_error(ottla: RunOttla, filled: str) -> None:
    flags = ("--messages", 2500, "--reporting-interval", 1, "--print-metrics")
    said = ottla("consumer-perf-test", "--topic", filled, *flags, "--command-property", "max.poll.records=10")
    assert said.rc == 0
    assert said.lines[0].split()[:2] == ["Records", "Records/s"]
    assert said.lines[0].endswith("Fetched MB/s")
    assert said.lines[1].split()[0] == "2,500"
    assert " of 2,500  " in said.err
    assert re.search(r"^consumer-fetch-manager-metrics records-consumed-total \d+\.\d{3}$", said.out, re.MULTILINE)


def test_timeout_ends_it_with_a_warning_and_0(ottla: RunOttla, filled: str) -> None:
    flags = ("--include", f"{filled[:-1]}[{filled[-1]}]", "--num-records", 3001, "--timeout", 2000)
    said = ottla("perf", "consume", *flags, columns=120)
    assert said.rc == 0
    assert said.lines[1].split()[0] == "3,000"
    assert "none came for 2000 ms" in said.err


def test_group_goes_on_where_it_was(ottla: RunOttla, filled: str) -> None:
    for count in (1000, 2000):
        found = json.loads(ottla("perf", "consume", filled, "--group", "steps", "--num-records", count, "--json").out)
        assert found["records"] == count
        assert found["bytes"] == count * 10
    assert json.loads(ottla("groups", "lag", "steps", "--json").out)[0]["lag"] == 0


def test_from_latest_skips_what_is_there(ottla: RunOttla, filled: str) -> None:
    found = json.loads(ottla("perf", "consume", filled, "--from-latest", "--timeout", 200, "--json").out)
    assert found["records"] == 0


@pytest.mark.parametrize(
    ("flags", "fault"),
    [
        (("x", "--include", "y"), "--include and a topic: give one of them"),
        (("--include", "("), "is not a regular expression"),
        (("x", "--date-format", "HH:mm"), "--json prints the figures"),
        (("x", "--show-detailed-stats"), "the result to --json"),
        (("x", "--command-property", "session.timeout.ms=1"), "session.timeout.ms"),
    ],
)
def test_flags_that_make_no_sense_are_refused(ottla: RunOttla, flags: tuple[str, ...], fault: str) -> None:
    said = ottla("perf", "consume", *flags)
    assert (said.rc, said.out) == (2, "")
    assert fault in said.err


START_MS = int(datetime(2026, 1, 2, 3, 4, 5).timestamp() * 1000)
MB = 1024 * 1024


def counted() -> ReadStatistics:
    statistics = ReadStatistics(START_MS)
    statistics.rebalance_ended(START_MS + 500)
    statistics.add(1000, 10 * MB)
    return statistics


def test_later_rebalance_counts_from_the_revocation() -> None:
    statistics = counted()
    statistics.rebalance_began(START_MS + 2000)
    statistics.rebalance_ended(START_MS + 2300)
    assert statistics.join_ms == 800


def test_rates_without_time_are_null_in_json() -> None:
    assert ReadStatistics(START_MS).as_json(START_MS)["recordsPerSec"] is None


def test_row_and_json_have_the_same_numbers() -> None:
    assert counted().row(START_MS + 1000) == ("1,000", "1,000", "10.0", "10.0", "500", "500", "2,000", "20.0")
    assert len(counted().row(START_MS + 1000)) == len(HEADINGS)
    found = counted().as_json(START_MS + 1000)
    assert (found["records"], found["fetchTimeMs"], found["fetchMbPerSec"]) == (1000, 500, 20.0)


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
    reading = Reading(consumer, plan, lambda *_: None)  # type: ignore[arg-type]
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
