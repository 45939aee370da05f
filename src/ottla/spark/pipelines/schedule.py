"""When a pipeline runs: `once`, `every 30s` or `continuous`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ottla.spark.pipelines.errors import PipelineError

ONCE, EVERY, CONTINUOUS = "once", "every", "continuous"
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_UNITS = {
    "s": "s", "sec": "s", "second": "s", "seconds": "s",
    "m": "m", "min": "m", "minute": "m", "minutes": "m",
    "h": "h", "hour": "h", "hours": "h",
}  # fmt: skip
_EVERY = re.compile(r"every\s+(\d+(?:\.\d+)?)\s*([a-z]+)")


@dataclass(frozen=True)
class Schedule:
    """How often the flows of a pipeline look for new records."""

    kind: str = ONCE
    interval_s: float = 0.0
    """The time from the begin of one batch to the begin of the next, for `every`."""

    def __str__(self) -> str:
        return f"every {self.interval_s:g}s" if self.kind == EVERY else self.kind

    def trigger(self) -> dict[str, object]:
        """The arguments of `DataStreamWriter.trigger`."""
        if self.kind == ONCE:
            return {"availableNow": True}
        return {"processingTime": f"{round(self.interval_s * 1000)} milliseconds"}


def parse_schedule(text: object) -> Schedule:
    """A schedule, or a `PipelineError` that says how one is written."""
    words = str(text).strip().lower()
    if words in (ONCE, CONTINUOUS):
        return Schedule(words)
    found = _EVERY.fullmatch(words)
    unit = _UNITS.get(found[2]) if found else None
    if found is None or unit is None or float(found[1]) <= 0:
        raise PipelineError(f"schedule is {text!r}: it must be once, continuous, or every with a time, such as every 30s")
    return Schedule(EVERY, float(found[1]) * _SECONDS[unit])
