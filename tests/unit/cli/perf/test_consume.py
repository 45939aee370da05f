"""`ottla perf consume` against a broker: lines, timeouts, limits."""

import json
import re

import pytest
from ottla.cli.perf.read_statistics import DETAILED_HEADER, HEADER
from tests.unit.cli.real_broker import RunOttla

TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}"
NUMBERS = r"\d+\.\d{4}, (?:\d+\.\d{4}|Infinity), (\d+), (?:\d+\.\d{4}|Infinity), \d+, \d+, (?:\d+\.\d{4}|Infinity|NaN), .*"


@pytest.fixture
def filled(ottla: RunOttla, topic: str) -> str:
    assert ottla("perf", "produce", topic, "--num-records", 3000, "--record-size", 10).rc == 0
    return topic


def test_exactly_the_records_are_read(ottla: RunOttla, filled: str) -> None:
    said = ottla("perf", "consume", filled, "--num-records", 2500)
    assert (said.rc, said.err, said.lines[0]) == (0, "", HEADER)
    match = re.fullmatch(f"{TIME}, {TIME}, {NUMBERS}", said.lines[1])
    assert match, said.out
    assert match[1] == "2500"


def test_detailed_lines_come_at_intervals_and_no_total(ottla: RunOttla, filled: str) -> None:
    flags = ("--messages", 3000, "--show-detailed-stats", "--reporting-interval", 1)
    said = ottla("consumer-perf-test", "--topic", filled, *flags, "--command-property", "max.poll.records=10")
    assert said.lines[0] == DETAILED_HEADER
    assert len(said.lines) > 1
    assert all(re.fullmatch(f"{TIME}, 0, {NUMBERS}", line) for line in said.lines[1:]), said.out


def test_timeout_ends_it_with_a_warning_and_0(ottla: RunOttla, filled: str) -> None:
    said = ottla("perf", "consume", filled, "--num-records", 3001, "--timeout", 2000, "--hide-header", "--print-metrics")
    assert said.rc == 0
    assert said.lines[0] == (
        "WARNING: Exiting before consuming the expected number of records: timeout (2000 ms) exceeded. "
        "You can use the --timeout option to increase the timeout."
    )
    assert ", 3000, " in said.lines[1]
    assert "consumer-fetch-manager-metrics:records-consumed-total:{client-id=perf-consumer-client}" in said.out


def test_group_goes_on_where_it_was(ottla: RunOttla, filled: str) -> None:
    for count in (1000, 2000):
        found = json.loads(ottla("perf", "consume", filled, "--group", "steps", "--num-records", count, "--json").out)
        assert found["records"] == count
        assert found["bytes"] == count * 10
    assert json.loads(ottla("groups", "lag", "steps", "--json").out)[0]["lag"] == 0


def test_include_and_table(ottla: RunOttla, filled: str) -> None:
    said = ottla("perf", "consume", "--include", f"{filled[:-1]}[{filled[-1]}]", "--num-records", 3000, columns=120)
    assert said.rc == 0, said.err
    assert said.lines[1].split()[0] == "3,000"


def test_from_latest_skips_what_is_there(ottla: RunOttla, filled: str) -> None:
    found = json.loads(ottla("perf", "consume", filled, "--from-latest", "--timeout", 200, "--json").out)
    assert found["records"] == 0


@pytest.mark.parametrize(
    ("flags", "fault"),
    [
        (("x", "--include", "y"), "--include and a topic: give one of them"),
        (("--include", "("), "is not a regular expression"),
        (("x", "--date-format", "RRR"), "R is not one of the letters"),
        (("x", "--threads", "2"), "--threads is gone; one consumer is one thread"),
        (("x", "--command-property", "session.timeout.ms=1"), "session.timeout.ms"),
    ],
)
def test_flags_that_make_no_sense_are_refused(ottla: RunOttla, flags: tuple[str, ...], fault: str) -> None:
    said = ottla("perf", "consume", *flags)
    assert (said.rc, said.out) == (2, "")
    assert fault in said.err
