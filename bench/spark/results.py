"""The figures of a run: rows per second of ours beside those of Spark's own connector, as a table and as JSON. Pure.

Samples with the same index come from the same round, so ratios are computed round by round, and their median counts.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import Any

HEADING = ("what", "Spark's connector", "Ottla", "ratio", "goal", "")


@dataclass
class Row:
    """One comparison. Samples are rows per second, one for each round."""

    what: str
    goal: float | None = None
    """The ratio to reach; None: the row has no goal."""
    theirs: list[float] = field(default_factory=list)
    """Empty where Spark's connector has nothing of the kind."""
    ours: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float | None:
        """How many times as fast ours is."""
        pairs = list(zip(self.ours, self.theirs, strict=False))
        return statistics.median(our / their for our, their in pairs) if pairs else None

    @property
    def verdict(self) -> str:
        if self.goal is None or self.ratio is None:
            return ""
        return "reached" if self.ratio >= self.goal else "missed"


@dataclass
class SparkResults:
    """All rows of a run, by key, and the facts of the machine that made them."""

    machine: dict[str, str] = field(default_factory=dict)
    rows: dict[str, Row] = field(default_factory=dict)

    def row(self, key: str, what: str, goal: float | None = None) -> Row:
        """The row of `key`, made when it is first asked for."""
        return self.rows.setdefault(key, Row(what, goal))

    def to_json(self) -> dict[str, Any]:
        rows = {
            key: {
                "what": row.what,
                "goal": row.goal,
                "theirs": [round(each) for each in row.theirs],
                "ours": [round(each) for each in row.ours],
            }
            for key, row in self.rows.items()
        }
        return {"machine": self.machine, "rows": rows}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> SparkResults:
        return cls(dict(data["machine"]), {key: Row(**row) for key, row in data["rows"].items()})


def cells(row: Row) -> tuple[str, ...]:
    """One row; figures are medians, with the smallest and the largest in brackets."""
    ratio = "" if row.ratio is None else f"{row.ratio:.2f} ×"
    return row.what, _text(row.theirs), _text(row.ours), ratio, "" if row.goal is None else f"≥ {row.goal:g} ×", row.verdict


def table(results: SparkResults) -> str:
    """The table for a terminal."""
    rows = [HEADING, *(cells(row) for row in results.rows.values())]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADING))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)


def markdown(results: SparkResults) -> list[str]:
    """The table in Markdown, with missed goals in bold."""
    lines = ["| " + " | ".join(HEADING) + " |", "|---" + "|---:" * (len(HEADING) - 2) + "|---|"]
    for row in results.rows.values():
        found = list(cells(row))
        found[-1] = f"**{found[-1]}**" if found[-1] == "missed" else found[-1]
        lines.append("| " + " | ".join(found) + " |")
    return lines


def _text(samples: list[float]) -> str:
    if not samples:
        return ""
    middle = f"{statistics.median(samples) / 1e6:.2f} M/s"
    return middle if len(samples) == 1 else f"{middle} ({min(samples) / 1e6:.2f}–{max(samples) / 1e6:.2f})"
