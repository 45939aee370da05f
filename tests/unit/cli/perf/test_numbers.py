"""Numbers as Java prints them, percentiles, and the lines of metrics."""

import math

from hypothesis import given
from hypothesis import strategies as st
from ottla.cli.perf.numbers import finite_metrics, fixed, metric_lines, percentile, ratio


def test_division_by_zero_is_javas() -> None:
    assert [fixed(ratio(amount, 0), 2) for amount in (1, -1, 0)] == ["Infinity", "-Infinity", "NaN"]
    assert fixed(ratio(1, 8), 2) == "0.12"


@given(st.lists(st.integers(0, 50), min_size=1), st.sampled_from([0.5, 0.95, 0.99, 0.999]))
def test_percentile_is_the_element_that_kafkas_tool_picks(values: list[int], share: float) -> None:
    histogram = {value: values.count(value) for value in values}
    assert percentile(histogram, share) == sorted(values)[int(share * len(values))]


def test_percentile_of_nothing_is_0() -> None:
    assert percentile({}, 0.5) == 0


def test_metrics_are_sorted_and_aligned() -> None:
    metrics = {"producer-topic-metrics{topic=t}": {"byte-rate": math.nan}, "producer-metrics": {"batch-size-avg": 1.5}}
    assert list(metric_lines(metrics, "me")) == [
        "",
        f"{'Metric Name':<56}   Value",
        "producer-metrics:batch-size-avg:{client-id=me}           : 1.500",
        "producer-topic-metrics:byte-rate:{client-id=me, topic=t} : NaN",
    ]
    assert finite_metrics(metrics)["producer-topic-metrics{topic=t}"] == {"byte-rate": None}
