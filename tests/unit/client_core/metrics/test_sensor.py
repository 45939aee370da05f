"""A sensor's statistics: totals, and Kafka's samples of 30 seconds."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client_core.metrics.sensor import Sensor, Statistic


def test_totals_and_statistics_of_one_sample() -> None:
    sensor = Sensor()
    for value in (10, 30, 20):
        sensor.record(value, 1_000)
    read = {statistic: sensor.read(statistic, 11_000) for statistic in Statistic if statistic is not Statistic.GAUGE}
    assert read[Statistic.TOTAL] == 60
    assert read[Statistic.COUNT] == 3
    assert read[Statistic.AVG] == 20
    assert read[Statistic.MAX] == 30
    assert read[Statistic.MIN] == 10
    assert read[Statistic.LAST] == 20
    assert read[Statistic.SECONDS_AGO] == 10
    # 10 s into the first sample: Kafka divides by those and one whole sample of 30 s.
    assert read[Statistic.RATE] == 60 / 40
    assert read[Statistic.COUNT_RATE] == 3 / 40
    assert read[Statistic.COUNT_RATE_PER_HOUR] == 3 * 3600 / 40
    assert read[Statistic.TIME_RATIO] == pytest.approx(60e-9 / 40)


def test_without_events_rates_are_0_and_averages_nan() -> None:
    sensor = Sensor()
    assert sensor.read(Statistic.RATE, 5) == 0
    assert sensor.read(Statistic.SECONDS_AGO, 5) == -1
    assert all(math.isnan(sensor.read(each, 5)) for each in (Statistic.AVG, Statistic.MAX, Statistic.MIN, Statistic.LAST))


def test_a_gauge_is_not_read_from_a_sensor() -> None:
    with pytest.raises(ValueError, match="GAUGE"):
        Sensor().read(Statistic.GAUGE, 0)


def test_samples_expire_a_minute_after_their_last_event() -> None:
    sensor = Sensor()
    sensor.record(7, 0)
    sensor.record(9, 29_000)
    assert sensor.read(Statistic.MAX, 88_999) == 9
    assert sensor.read(Statistic.RATE, 88_999) == pytest.approx(16 / 88.999)
    assert math.isnan(sensor.read(Statistic.MAX, 89_000))
    assert sensor.read(Statistic.RATE, 89_000) == 0
    assert sensor.read(Statistic.TOTAL, 89_000) == 16


def test_a_steady_rate_is_measured_as_it_is() -> None:
    sensor = Sensor()
    for second in range(300):
        sensor.record(5, second * 1000)
    assert sensor.read(Statistic.RATE, 300_000) == pytest.approx(5, rel=0.05)


@given(
    st.lists(st.tuples(st.integers(0, 20_000), st.integers(0, 1_000)), max_size=60),
    st.integers(0, 100_000),
    st.integers(1, 4),
)
def test_windows_hold_the_recent_events_and_reading_changes_nothing(
    events: list[tuple[int, int]], later_ms: int, sample_count: int
) -> None:
    """Everything of the counted time is in; what is older than one sample more is out."""
    sensor = Sensor(10_000, sample_count)
    now_ms, recorded = 0, []
    for gap_ms, value in events:
        now_ms += gap_ms
        sensor.record(value, now_ms)
        recorded.append((now_ms, value))
    now_ms += later_ms
    first = [sensor.read(each, now_ms) for each in Statistic if each is not Statistic.GAUGE]
    again = [sensor.read(each, now_ms) for each in Statistic if each is not Statistic.GAUGE]
    assert repr(first) == repr(again)
    window_ms = 10_000 * sample_count
    surely = [value for at_ms, value in recorded if now_ms - at_ms < window_ms]
    at_most = [value for at_ms, value in recorded if now_ms - at_ms < window_ms + 10_000]
    count_rate, rate = sensor.read(Statistic.COUNT_RATE, now_ms), sensor.read(Statistic.RATE, now_ms)
    assert 0 <= count_rate <= len(at_most) * 1000 / (10_000 * max(sample_count - 1, 0) or 1)
    assert rate >= sum(surely) * 1000 / (window_ms + 10_000 * 2)
    if surely:
        assert max(surely) <= sensor.read(Statistic.MAX, now_ms) <= max(at_most)
        assert min(at_most) <= sensor.read(Statistic.MIN, now_ms) <= min(surely)
    if not at_most:
        assert rate == 0
        assert math.isnan(sensor.read(Statistic.AVG, now_ms))
    assert sensor.total == sum(value for _, value in recorded)
