"""The figures of a run and the rows that compare Ottla's clients with the others. Pure.

Samples with the same index come from the same round, in which every client had its turn. So ratios are computed round by
round, against the best of the others in that round, and their median counts.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.clients.cases import CASES, CEILING, CONSUME, OTHERS, PRODUCE
from bench.side_by_side.figures import Goal, at_least, at_most

Samples = dict[str, dict[str, dict[str, list[float]]]]
"""Case → use → figure (rate, cpu_us, broker_us, peak_mb) → samples."""


@dataclass(slots=True)
class ClientResults:
    """All samples of a run, and the facts of the machine that made them."""

    machine: dict[str, str] = field(default_factory=dict)
    produce: Samples = field(default_factory=dict)
    consume: Samples = field(default_factory=dict)
    latency: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    """Client → figure (p50_ms and p99_ms of delivery, end and waited) → samples."""

    def add(self, kind: str, case: str, use: str, figures: Mapping[str, float]) -> None:
        samples: Samples = getattr(self, kind)
        found = samples.setdefault(case, {}).setdefault(use, {})
        for name, value in figures.items():
            found.setdefault(name, []).append(value)

    def add_latency(self, client: str, figures: Mapping[str, float]) -> None:
        for name, value in figures.items():
            self.latency.setdefault(client, {}).setdefault(name, []).append(value)

    def to_json(self) -> dict[str, Any]:
        return {
            "machine": self.machine,
            "produce": _rounded(self.produce),
            "consume": _rounded(self.consume),
            "latency": _rounded(self.latency),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ClientResults:
        return cls(dict(data["machine"]), dict(data["produce"]), dict(data["consume"]), dict(data["latency"]))


@dataclass(frozen=True, slots=True)
class Comparison:
    """One row: Ottla's samples beside those of the best of the others in each round."""

    key: str
    what: str
    unit: str
    other_name: str
    others: Sequence[float]
    ottla: Sequence[float]
    goal: Goal | None = None
    ceiling: Sequence[float] = ()
    """The rates of the raw protocol, in the same unit; empty where it was not measured."""

    @property
    def ratios(self) -> list[float]:
        return [mine / other for mine, other in zip(self.ottla, self.others, strict=True)]

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)

    @property
    def verdict(self) -> str:
        return "" if self.goal is None else self.goal.verdict(self.ratio)


class _Rule:
    """Which use is compared with which others, and the goal."""

    def __init__(self, use: str, what: str, others: tuple[str, ...], goal: float | None) -> None:
        self.use, self.what, self.others = use, what, others
        self.goal = None if goal is None else at_least(goal)


PRODUCE_RULES = (
    _Rule("Ottla send", "one by one", OTHERS, 1.0),
    _Rule("Ottla send_many", "send_many", OTHERS, 3.0),
    _Rule("Ottla Arrow", "Arrow table", OTHERS, 3.0),
    _Rule("Ottla asyncio", "asyncio, one by one", ("aiokafka",), 1.5),
    _Rule("Ottla send, pure Python", "one by one, without compiled kernels", ("kafka-python",), 1.5),
)
CONSUME_RULES = (
    _Rule("Ottla poll", "poll", OTHERS, 1.0),
    _Rule("Ottla iterate", "iterate", OTHERS, None),
    _Rule("Ottla batches", "batches", OTHERS, 3.0),
    _Rule("Ottla Arrow", "Arrow tables", OTHERS, 3.0),
    _Rule("Ottla asyncio", "asyncio, iterate", ("aiokafka",), 1.5),
    _Rule("Ottla poll, pure Python", "poll, without compiled kernels", ("kafka-python",), 1.5),
)
MEMORY_OF = {"produce": "Ottla send", "consume": "Ottla poll"}
"""Whose peak memory is compared."""
LATENCIES = {
    "delivery_p99_ms": "send to delivery result, p99",
    "end_p99_ms": "send to consumer, p99",
}
WAITED = {
    "waited_p50_ms": "one record at a time, waited for, default settings, p50",
    "waited_p99_ms": "one record at a time, waited for, default settings, p99",
}


def comparisons(results: ClientResults) -> list[Comparison]:
    """All rows, in the order of the table; what was not measured is left out."""
    rows: list[Comparison] = []
    for kind, rules in (("produce", PRODUCE_RULES), ("consume", CONSUME_RULES)):
        samples: Samples = getattr(results, kind)
        for case in CASES:
            found = samples.get(case.label, {})
            for rule in rules:
                key = f"{kind}:{rule.use}:{case.label}"
                what = f"{kind} {case.label}, {rule.what}"
                rows += _row(key, what, "k/s", found, (rule.use, rule.others, "rate"), max, rule.goal, 1000)
            key, what = f"{kind}:memory:{case.label}", f"{kind} {case.label}, peak memory"
            rows += _row(key, what, "MB", found, (MEMORY_OF[kind], OTHERS, "peak_mb"), min, None)
    for name, what in {**LATENCIES, **WAITED}.items():
        goal = at_most(1.0) if name in WAITED else None
        rows += _row(f"latency:{name}", what, "ms", results.latency, ("Ottla", OTHERS, name), min, goal)
        key = f"latency:{name}:asyncio"
        rows += _row(key, f"{what}, asyncio", "ms", results.latency, ("Ottla asyncio", ("aiokafka",), name), min, goal)
    return rows


def _row(
    key: str,
    what: str,
    unit: str,
    found: Mapping[str, Mapping[str, list[float]]],
    names: tuple[str, tuple[str, ...], str],
    best: Callable[[Sequence[float]], float],
    goal: Goal | None,
    divisor: float = 1,
) -> list[Comparison]:
    use, others, figure = names
    mine = found.get(use, {}).get(figure)
    measured = {name: found[name][figure] for name in others if found.get(name, {}).get(figure)}
    if not mine or not measured:
        return []
    rounds = min(len(mine), *map(len, measured.values()))
    best_of = best(list(map(statistics.median, measured.values())))
    name = next(name for name, samples in measured.items() if statistics.median(samples) == best_of)
    theirs = [best([samples[number] for samples in measured.values()]) / divisor for number in range(rounds)]
    ceiling = [value / divisor for value in found.get(CEILING, {}).get(figure, ())] if figure == "rate" else []
    return [Comparison(key, what, unit, name, theirs, [value / divisor for value in mine[:rounds]], goal, ceiling)]


def missing(results: ClientResults) -> list[str]:
    """What a full run measures and this one has not."""
    wanted = [("produce", case.label, use.name) for case in CASES for use in PRODUCE]
    wanted += [("consume", case.label, use.name) for case in CASES for use in CONSUME]
    return [" ".join(each) for each in wanted if each[2] not in getattr(results, each[0]).get(each[1], {})]


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of the values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list) else value
