"""A flow's progress in numbers: rows, rows per second, batch time and lag, from the JSON of Spark's progress reports."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class FlowProgress:
    """What a flow has done up to its last batch."""

    flow: str
    batch: int
    rows: int
    """Rows of the last batch."""
    rows_per_s: float
    batch_ms: int
    lag: int | None
    """Records that the source has and the flow has not read; None if the source does not say."""

    def as_json(self) -> dict[str, Any]:
        """For --json."""
        return asdict(self)


def flow_progress(flow: str, report: Any) -> FlowProgress | None:
    """The numbers of a report of `StreamingQuery.lastProgress`; None before the first batch."""
    if report is None:
        return None
    found: Mapping[str, Any] = json.loads(report.json) if hasattr(report, "json") else report
    sources = found.get("sources") or []
    # The total is not in the reports of Spark Connect.
    rows = int(found.get("numInputRows") or sum(each.get("numInputRows") or 0 for each in sources))
    batch_ms = int(found.get("batchDuration") or 0)
    rate = 1000 * rows / batch_ms if batch_ms else 0.0
    return FlowProgress(flow, int(found["batchId"]), rows, rate, batch_ms, lag_of(sources))


def lag_of(sources: list[Mapping[str, Any]]) -> int | None:
    """The records between `endOffset` and `latestOffset` of all sources that count their offsets by partition."""
    total, is_known = 0, False
    for source in sources:
        end, latest = _offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))
        if end is None or latest is None:
            continue
        is_known = True
        total += sum(max(0, last - end.get(key, 0)) for key, last in latest.items())
    return total if is_known else None


def _offsets(found: Any) -> dict[tuple[str, str], int] | None:
    """Offsets by topic and partition; None for other kinds of offset, such as those of files."""
    if isinstance(found, str):
        try:
            found = json.loads(found)
        except ValueError:
            return None
    if not isinstance(found, dict) or not all(isinstance(parts, dict) for parts in found.values()):
        return None
    return {(topic, part): int(each) for topic, parts in found.items() for part, each in parts.items()}
