"""The lines, cells and JSON of `ottla perf produce`."""

from ottla.cli.perf.send_statistics import HEADINGS, SendStatistics


def filled(is_steady: bool = False) -> SendStatistics:
    statistics = SendStatistics(100.0, is_steady)
    statistics.add(98, 98 * 1024 * 1024, 10)
    statistics.add(2, 2 * 1024 * 1024, 30)
    return statistics


def test_total_is_kafkas_line() -> None:
    assert filled().total_line(102.0) == (
        "100 records sent, 50.000000 records/sec (50.00 MB/sec), 10.40 ms avg latency, 30.00 ms max latency, "
        "10 ms 50th, 10 ms 95th, 30 ms 99th, 30 ms 99.9th."
    )
    assert filled(is_steady=True).total_line(102.0).startswith("100 steady state records sent, 50.000000 records/sec")


def test_window_has_only_what_came_since_the_last_one() -> None:
    statistics = filled()
    assert statistics.take_window(102.0) == [
        "100 records sent, 50.0 records/sec (50.00 MB/sec), 10.4 ms avg latency, 30.0 ms max latency."
    ]
    statistics.add(1, 0, 5)
    assert statistics.take_window(103.0) == [
        "1 records sent, 1.0 records/sec (0.00 MB/sec), 5.0 ms avg latency, 5.0 ms max latency."
    ]
    assert statistics.total.records == 101


def test_first_window_of_the_steady_state_is_announced() -> None:
    statistics = filled(is_steady=True)
    assert statistics.take_window(102.0)[0] == "In steady state."
    statistics.add(1, 0, 5)
    assert len(statistics.take_window(103.0)) == 1


def test_run_without_records_has_javas_numbers() -> None:
    assert "0 records sent, NaN records/sec (NaN MB/sec), NaN ms avg" in SendStatistics(1.0).total_line(1.0)


def test_row_and_json_have_the_same_numbers() -> None:
    assert filled().row(102.0) == ("all", "100", "50", "50.0", "10.4", 30, 10, 10, 30, 30)
    assert len(filled().row(102.0)) == len(HEADINGS)
    assert filled().as_json(102.0) == {
        "records": 100,
        "bytes": 100 * 1024 * 1024,
        "seconds": 2.0,
        "recordsPerSec": 50.0,
        "mbPerSec": 50.0,
        "latencyMs": {"avg": 10.4, "max": 30, "p50": 10, "p95": 10, "p99": 30, "p999": 30},
    }
