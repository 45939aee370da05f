"""The lines, cells and JSON of `ottla perf consume`."""

from datetime import datetime

from ottla.cli.perf.date_format import KAFKAS, DateFormat
from ottla.cli.perf.read_statistics import DETAILED_HEADER, HEADER, HEADINGS, ReadStatistics

START_MS = int(datetime(2026, 1, 2, 3, 4, 5).timestamp() * 1000)
FORMAT = DateFormat(KAFKAS)
MB = 1024 * 1024


def filled() -> ReadStatistics:
    statistics = ReadStatistics(START_MS)
    statistics.rebalance_ended(START_MS + 500)
    statistics.add(1000, 10 * MB)
    return statistics


def test_total_is_kafkas_line() -> None:
    line = filled().total_line(START_MS + 1000, FORMAT)
    times = "2026-01-02 03:04:05:000, 2026-01-02 03:04:06:000"
    assert line == f"{times}, 10.0000, 10.0000, 1000, 1000.0000, 500, 500, 20.0000, 2000.0000"
    assert len(line.split(", ")) == len(HEADER.split(", ")) == len(DETAILED_HEADER.split(", "))


def test_window_has_the_sum_so_far_and_the_rates_since_the_last_one() -> None:
    statistics = filled()
    first = "2026-01-02 03:04:06:000, 0, 10.0000, 10.0000, 1000, 1000.0000, 500, 500, 20.0000, 2000.0000"
    assert statistics.take_window(START_MS + 1000, FORMAT) == first
    statistics.add(10, MB)
    second = "2026-01-02 03:04:08:000, 0, 11.0000, 0.5000, 1010, 5.0000, 0, 2000, 0.5000, 5.0000"
    assert statistics.take_window(START_MS + 3000, FORMAT) == second


def test_later_rebalance_counts_from_the_revocation() -> None:
    statistics = filled()
    statistics.rebalance_began(START_MS + 2000)
    statistics.rebalance_ended(START_MS + 2300)
    assert statistics.join_ms == 800


def test_run_without_time_has_javas_numbers() -> None:
    assert ReadStatistics(START_MS).total_line(START_MS, FORMAT).endswith("0.0000, NaN, 0, NaN, 0, 0, NaN, NaN")
    assert ReadStatistics(START_MS).as_json(START_MS)["recordsPerSec"] is None


def test_row_and_json_have_the_same_numbers() -> None:
    assert filled().row(START_MS + 1000) == ("1,000", "1,000", "10.0", "10.0", "500", "500", "2,000", "20.0")
    assert len(filled().row(START_MS + 1000)) == len(HEADINGS)
    found = filled().as_json(START_MS + 1000)
    assert (found["records"], found["fetchTimeMs"], found["fetchMbPerSec"]) == (1000, 500, 20.0)
