"""One measured row: samples of both sides, their ratio with its spread, and the goal it is held to.

Pure. Samples with the same index were taken right after each other (the other side first). So ratios are computed pair by pair,
and the median of the pairs counts: a machine that slows down slows both halves of a pair.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

APACHE, OTTLA = "Apache Kafka", "Ottla"


@dataclass(frozen=True, slots=True)
class Goal:
    """The minimum or maximum of a ratio."""

    ratio: float
    at_least: bool

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.ratio:g} ×"

    def verdict(self, ratio: float) -> str:
        """`reached`, or by how much the goal is missed, in percent of the goal."""
        if self.reached(ratio):
            return "reached"
        return f"missed by {abs(ratio - self.ratio) / self.ratio:.0%}"

    def reached(self, ratio: float) -> bool:
        # Compared as they are shown: a ratio shown as 1.15 reaches a goal of 1.15.
        shown = round(ratio, 2)
        return shown >= self.ratio if self.at_least else shown <= self.ratio


def at_least(ratio: float) -> Goal:
    return Goal(ratio, at_least=True)


def at_most(ratio: float) -> Goal:
    return Goal(ratio, at_least=False)


@dataclass(frozen=True, slots=True)
class Figure:
    """A row of the table. `reference`, if set, replaces the other side as the divisor of the ratio: a limit, a quiet node."""

    key: str
    what: str
    unit: str
    other: Sequence[float]
    ottla: Sequence[float]
    goal: Goal | None = None
    reference: Sequence[float] = field(default_factory=list)
    reference_name: str = ""

    @property
    def ratios(self) -> list[float]:
        """Ottla's sample divided by that of the other side or of the reference, round by round."""
        below = self.reference or self.other
        return [mine / other for mine, other in zip(self.ottla, below, strict=True)]

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)

    @property
    def verdict(self) -> str:
        return self.goal.verdict(self.ratio) if self.goal else ""


@dataclass(slots=True)
class Results:
    """The figures of a run, by key, and the facts of the machine that made them."""

    machine: dict[str, str] = field(default_factory=dict)
    figures: dict[str, Figure] = field(default_factory=dict)
    micro: dict[str, Any] = field(default_factory=dict)

    def add(self, figures: Sequence[Figure]) -> None:
        self.figures |= {figure.key: figure for figure in figures}

    def to_json(self) -> dict[str, Any]:
        return {
            "machine": self.machine,
            "figures": [_rounded(asdict(figure)) for figure in self.figures.values()],
            "micro": _rounded(self.micro),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Results":
        figures = {}
        for row in data["figures"]:
            goal = Goal(**row["goal"]) if row["goal"] else None
            figures[row["key"]] = Figure(**{**row, "goal": goal})
        return cls(dict(data["machine"]), figures, dict(data["micro"]))


def _rounded(value: Any) -> Any:
    """Rounded to five digits: more than the measurements are worth, and a readable file."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(each) for each in value]
    return value


def amount(value: float) -> str:
    """A number with three significant digits."""
    if value >= 100:
        return f"{value:,.0f}"
    if value >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}"


def samples_text(samples: Sequence[float]) -> str:
    """The median, and the smallest and largest where there is more than one sample."""
    if not samples:
        return "–"
    middle = amount(statistics.median(samples))
    if len(samples) == 1:
        return middle
    return f"{middle} ({amount(min(samples))}–{amount(max(samples))})"


def ratio_text(figure: Figure) -> str:
    """The median ratio and its spread, and the name of the reference if there is one."""
    ratios = figure.ratios
    text = f"{figure.ratio:.2f}"
    if len(ratios) > 1:
        text += f" ({min(ratios):.2f}–{max(ratios):.2f})"
    return f"{text} of {figure.reference_name}" if figure.reference else text
