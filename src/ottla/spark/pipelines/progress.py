"""A flow's progress in numbers: rows, rows per second, batch time and lag, from the JSON of Spark's progress reports."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ottla.spark.progress.measures import Offsets, behind, behind_latest, parse_offsets


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
    lag_by_partition: Offsets = field(default_factory=dict, compare=False)

    def as_json(self) -> dict[str, Any]:
        """For --json, with the numbers that Spark's Kafka connector reports."""
        found = {key: value for key, value in asdict(self).items() if key != "lag_by_partition"}
        numbers = behind_latest(self.lag_by_partition.values())
        return found if numbers is None else found | {"offsets_behind_latest": asdict(numbers)}


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
    lags = lag_of(sources)
    lag = None if lags is None else sum(lags.values())
    return FlowProgress(flow, int(found["batchId"]), rows, rate, batch_ms, lag, lags or {})


def lag_of(sources: list[Mapping[str, Any]]) -> Offsets | None:
    """The records between `endOffset` and `latestOffset` by partition; None if no source counts offsets by partition.

    Where two sources read the same partition, both lags count.
    """
    found: Offsets = {}
    is_known = False
    for source in sources:
        ends, latest = parse_offsets(source.get("endOffset")), parse_offsets(source.get("latestOffset"))
        if ends and latest:
            is_known = True
            for each, lag in behind(ends, latest).items():
                found[each] = found.get(each, 0) + lag
    return dict(sorted(found.items())) if is_known else None
