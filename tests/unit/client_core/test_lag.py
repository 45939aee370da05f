"""The status of groups by Burrow's rules, rates, the history of an hour, and the first timestamp of a batch."""

import json
from pathlib import Path

import pytest
from tests import support
from tests.support.cases.lag_histories import ENDS, FAR, HISTORIES, NOW_MS, SAME, UP, History, commits

from ottla.client_core import lag
from ottla.client_core.lag import SENSIBLE, Limits, Rates, Sample, Status, Steady, Window, evaluate, first_time_ms, worst
from ottla.records.batch import BatchView
from ottla.records.builder import build_batch
from ottla.records.compression import Codec
from ottla.records.control import build_end_marker
from ottla.records.kernels import Record

BURROW = json.loads((Path(support.__file__).parent / "recorded/burrow_statuses.json").read_text())["statuses"]


@pytest.mark.parametrize("case", HISTORIES, ids=lambda case: case.name)
def test_status_is_burrows(case: History) -> None:
    assert evaluate(case.commits, case.ends, case.lag, NOW_MS, case.limits).name == BURROW[case.name]


def test_seconds_behind_may_be_allowed() -> None:
    behind = commits(UP, FAR)
    assert evaluate(behind, ENDS, 500, NOW_MS, SENSIBLE, 9.0) == Status.OK
    assert evaluate(behind, ENDS, 500, NOW_MS, SENSIBLE, 11.0) == Status.WARN
    assert evaluate(behind, ENDS, 500, NOW_MS, SENSIBLE, None) == Status.WARN, "unknown seconds excuse nothing"


def test_group_has_the_worst_status_of_its_partitions() -> None:
    assert worst([]) == Status.OK
    assert worst([Status.OK, Status.WARN]) == Status.WARN
    assert [worst([Status.OK, each]) for each in (Status.STOP, Status.STALL, Status.REWIND)] == [Status.ERR] * 3


def test_status_changes_when_seen_twice() -> None:
    steady = Steady()
    seen = [steady.see(each) for each in (Status.WARN, Status.OK, Status.WARN, Status.WARN, Status.OK, Status.OK)]
    assert [each.name for each in seen] == ["OK", "OK", "OK", "WARN", "WARN", "OK"]


def test_window_keeps_ten_commits_and_merges_quick_ones() -> None:
    window = Window()
    assert (window.commits, window.offset) == ([], None)
    for number in range(30):
        window.committed(number, 100, number * 1000)
    assert [each.offset for each in window.commits] == list(range(20, 30))
    window.committed(40, 100, 29_500, distance_ms=1000)
    assert window.commits[-1] == (40, 29_000, 60)
    assert (len(window.commits), window.offset) == (10, 40)


def test_history_has_a_sample_a_minute_and_the_newest() -> None:
    history = lag.History()
    assert (history.samples, history.rates()) == ([], Rates(None, None))
    for second in range(0, 7200, 10):
        history.add(Sample(second, 7200 - second, None if second < 5000 else 1.5, second, 2 * second))
    samples = history.samples
    assert len(samples) <= lag.SAMPLES + 1
    assert samples[-1] == Sample(7190, 10, 1.5, 7190, 14380)
    assert samples[0].at_s >= 7190 - lag.HISTORY_S
    assert samples[0].lag_s is None
    rates = history.rates()
    assert rates == (2.0, 1.0)
    assert (rates.catch_up_s(10), rates.catch_up_s(0), Rates(1.0, 3.0).catch_up_s(10)) == (None, 0.0, 5.0)


RECORDS = [Record(10, 1000, None, b"a"), Record(12, 900, None, b"b"), Record(13, 3000, None, b"c")]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_first_time_is_that_of_the_first_record_from_the_offset_on(codec: Codec) -> None:
    view = BatchView(bytes(build_batch(RECORDS, base_offset=10, codec=codec)))
    assert [first_time_ms(view, offset) for offset in (9, 10, 11, 12, 13, 14)] == [1000, 1000, 900, 900, 3000, None]
    assert first_time_ms(view, 13, unpacks=False) == (1000 if codec else 3000)


def test_batches_that_hold_nothing_for_a_consumer_have_no_first_time() -> None:
    marker = build_end_marker(
        is_commit=True, producer_id=5, producer_epoch=0, coordinator_epoch=0, timestamp_ms=1, base_offset=7
    )
    assert first_time_ms(BatchView(bytes(marker)), 7) is None
    sent = build_batch(RECORDS, base_offset=10, producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
    view = BatchView(bytes(sent))
    assert first_time_ms(view, 10, {5: 8}) is None, "aborted"
    assert first_time_ms(view, 10, {5: 14, 6: 1}) == 1000
    stamped = BatchView(bytes(build_batch(RECORDS, base_offset=10, append_time_ms=77)))
    assert first_time_ms(stamped, 12) == 77


def test_limits_of_records_hold_for_past_commits_too() -> None:
    case = commits(SAME, [500, 500, 40, *FAR[:7]])
    assert evaluate(case, ENDS, 500, NOW_MS) == Status.STALL
    assert evaluate(case, ENDS, 500, NOW_MS, Limits(lag=50)) == Status.OK
