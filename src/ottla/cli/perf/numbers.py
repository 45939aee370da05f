"""Numbers as Kafka's perf tools compute and print them: Java's division and formatting, percentiles, metrics."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

MB = 1024 * 1024


def ratio(amount: float, of: float) -> float:
    """`amount / of` with Java's results for a divisor of 0."""
    if of:
        return amount / of
    return math.nan if not amount else math.copysign(math.inf, amount)


def fixed(value: float, digits: int) -> str:
    """Java's `%.<digits>f`."""
    if math.isfinite(value):
        return f"{value:.{digits}f}"
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def percentile(histogram: Mapping[int, int], share: float) -> int:
    """The value at index `share` × count of all sorted values, as Kafka picks it; 0 without values."""
    index = min(int(share * sum(histogram.values())), sum(histogram.values()) - 1)
    seen = 0
    for value in sorted(histogram):
        seen += histogram[value]
        if seen > index:
            return value
    return 0


def metric_lines(metrics: Mapping[str, Mapping[str, float]], client_id: str) -> Iterable[str]:
    """The lines of --print-metrics, from `Producer.metrics()` or `Consumer.metrics()`."""
    named = {}
    for group, values in metrics.items():
        kind, _, tags = group.rstrip("}").partition("{")
        shown = ", ".join([f"client-id={client_id}", *(tags.split(",") if tags else ())])
        for name, value in values.items():
            named[f"{kind}:{name}:{{{shown}}}"] = value
    width = max(map(len, named), default=0)
    yield ""
    yield f"{'Metric Name':<{width}}   Value"
    for name in sorted(named):
        yield f"{name:<{width}} : {fixed(named[name], 3)}"


def finite(value: float, digits: int = 3) -> float | None:
    """A number for JSON, which has no NaN and no infinity."""
    return round(value, digits) if math.isfinite(value) else None


def finite_metrics(metrics: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float | None]]:
    """The metrics for JSON."""
    return {group: {name: finite(value) for name, value in values.items()} for group, values in metrics.items()}
