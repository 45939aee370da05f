"""What came out of the demo's pipeline, beside what had to come out: a comparison, a table, and two charts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools.demo.shop import CLOSING, Shop

BAR_WIDTH = 46


@dataclass
class Found:
    """The results that a read_committed reader sees, each with how often it is there."""

    paid: Counter[tuple[str, int]] = field(default_factory=Counter)
    """(order id, cents)."""
    revenue: Counter[tuple[str, int]] = field(default_factory=Counter)
    """(start of a window, cents)."""

    def add_paid(self, record: Mapping[str, Any]) -> None:
        """A record of the topic paid_orders."""
        if record["order_id"] != CLOSING:
            self.paid[record["order_id"], record["cents"]] += 1

    def add_revenue(self, record: Mapping[str, Any]) -> None:
        """A record of the topic revenue."""
        if record["cents"]:
            self.revenue[record["window"], record["cents"]] += 1


def differences(shop: Shop, found: Found) -> list[str]:
    """What is missing, doubled or wrong, in words; nothing if all is as it must be."""
    said = []
    for name, expected, seen in (
        ("paid orders", Counter(shop.paid.items()), found.paid),
        ("windows of revenue", Counter(shop.revenue.items()), found.revenue),
    ):
        missing, extra = expected - seen, seen - expected
        if missing:
            said.append(f"{missing.total()} {name} are missing, for example {_example(missing)}")
        if extra:
            said.append(f"{extra.total()} {name} are there that should not be, or twice, for example {_example(extra)}")
    return said


def _example(items: Counter[tuple[str, int]]) -> str:
    name, cents = min(items)
    return f"{name} with {cents / 100:.2f}"


def bars(revenue: Mapping[str, int], width: int = BAR_WIDTH) -> list[str]:
    """A bar chart for a terminal, one line for each window."""
    most = max(revenue.values(), default=1)
    return [
        f"{window}  {'█' * max(1, round(cents / most * width))} {cents / 100:,.2f}" for window, cents in sorted(revenue.items())
    ]


def draw_png(
    path: Path, revenue: Mapping[str, int], progress: Sequence[tuple[float, int, int]], kills_s: Sequence[float]
) -> None:
    """Revenue per window, and records in and results out over the seconds of the demo with its kills."""
    import matplotlib

    matplotlib.use("Agg")  # draws to files, needs no display
    from matplotlib import pyplot

    figure, (above, below) = pyplot.subplots(2, 1, figsize=(9, 7), constrained_layout=True)
    windows = sorted(revenue)
    above.bar(windows, [revenue[window] / 100 for window in windows], color="#4c78a8")
    above.set_title("Revenue of paid orders by the time they were placed, in windows of five minutes")
    above.set_ylabel("euros")
    seconds = [each[0] for each in progress]
    below.plot(seconds, [each[1] for each in progress], label="orders sent", color="#999999")
    below.plot(seconds, [each[2] for each in progress], label="paid orders, committed", color="#4c78a8")
    for number, at_s in enumerate(kills_s):
        below.axvline(at_s, color="#e45756", linestyle="--", label="kill -9" if not number else None)
    below.set_title("Nothing is lost or doubled through the kills")
    below.set_xlabel("seconds")
    below.set_ylabel("records")
    below.legend(loc="upper left")
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
