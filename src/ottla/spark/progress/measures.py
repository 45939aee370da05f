"""What one progress report of a query says: offsets, lag, rates, batch time. Pure.

Reports of classic and Connect sessions are read by attribute: under Connect some keys of the dict are None. A source is one of
topics if its offsets have the form `{"orders": {"0": 23}}`: ours, and Spark's own Kafka source.

Spark's Kafka connector reports min, max and avgOffsetsBehindLatest in `sources[].metrics`. Spark asks only sources in Java for
metrics and leaves the field empty for Python data sources, so `offsets_behind_latest` computes the same from what is reported.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ottla import TopicPartition
from ottla.metrics_text import MetricsText

Offsets = dict[TopicPartition, int]


@dataclass(frozen=True)
class SourceMeasures:
    """One source of topics in a query."""

    ends: Offsets
    """Where the batch ended: the next offset to read."""
    latest: Offsets
    """The ends of the partitions when the batch was planned."""

    @property
    def lag_by_partition(self) -> Offsets:
        """Records that were there and are not read yet."""
        return behind(self.ends, self.latest)


@dataclass(frozen=True)
class Measures:
    """One progress report."""

    query_id: str
    run_id: str
    name: str
    """The query's name, or its id."""
    batch_id: int
    rows: int
    rows_per_second: float
    batch_ms: int
    sources: tuple[SourceMeasures, ...]

    @property
    def offsets(self) -> Offsets:
        """What the query has read. Where two of its sources read the same partition, the smaller offset counts."""
        found: Offsets = {}
        for source in self.sources:
            merge_smallest(found, source.ends)
        return found

    @property
    def lag_by_partition(self) -> Offsets:
        """The lag of each partition; the larger one where two sources read the same."""
        found: Offsets = {}
        for source in self.sources:
            for each, lag in source.lag_by_partition.items():
                found[each] = max(lag, found.get(each, 0))
        return dict(sorted(found.items()))

    @property
    def lag(self) -> int:
        """Records that were there and are not read yet, in all partitions."""
        return sum(self.lag_by_partition.values())

    @property
    def behind_latest(self) -> BehindLatest | None:
        """Over the partitions of all sources; None without a source of topics."""
        return behind_latest(self.lag_by_partition.values())


@dataclass(frozen=True)
class BehindLatest:
    """How many offsets the partitions are behind the latest ones."""

    min: int
    max: int
    avg: float


def behind_latest(lags: Collection[int]) -> BehindLatest | None:
    """The smallest, largest and average lag; None if there is no partition."""
    return BehindLatest(min(lags), max(lags), sum(lags) / len(lags)) if lags else None


def behind(ends: Offsets, latest: Offsets) -> Offsets:
    """The lag of each partition. One that the query does not know yet counts from its beginning."""
    return {each: max(0, end - ends.get(each, 0)) for each, end in latest.items()}


def offsets_behind_latest(progress: Any) -> list[dict[str, str]]:
    """For each source of a progress report, what Spark's Kafka connector has in `sources[].metrics`; empty for other sources.

    `progress` is `query.lastProgress`, or the `progress` of a listener's event. The values are text, as Spark's are.
    """
    found: list[dict[str, str]] = []
    for source in [] if progress is None else progress.sources:
        ends, latest = parse_offsets(source.endOffset), parse_offsets(source.latestOffset)
        numbers = behind_latest(behind(ends, latest).values()) if ends else None
        if numbers is None:
            found.append({})
            continue
        named = {"min": numbers.min, "max": numbers.max, "avg": numbers.avg}
        found.append({f"{name}OffsetsBehindLatest": str(number) for name, number in named.items()})
    return found


def merge_smallest(into: Offsets, offsets: Offsets) -> None:
    """Add offsets; where a partition is there already, the smaller one stays."""
    for each, offset in offsets.items():
        into[each] = min(offset, into.get(each, offset))


def measures_of(progress: Any) -> Measures:
    """A `StreamingQueryProgress` as measures."""
    sources = []
    for each in progress.sources:
        ends = parse_offsets(each.endOffset)
        if ends:
            # Without a report of the newest offsets there is no lag to show, rather than a wrong one.
            sources.append(SourceMeasures(ends, parse_offsets(each.latestOffset) or dict(ends)))
    identity = str(progress.id)
    return Measures(
        query_id=identity,
        run_id=str(progress.runId),
        name=progress.name or identity,
        batch_id=int(progress.batchId),
        rows=int(progress.numInputRows or 0),
        rows_per_second=_finite(progress.processedRowsPerSecond),
        batch_ms=int(progress.batchDuration or 0),
        sources=tuple(sources),
    )


def parse_offsets(text: Any) -> Offsets:
    """The offsets of a source of topics; empty for what has another form."""
    try:
        found: Any = json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return {}
    if not isinstance(found, dict):
        return {}
    made: Offsets = {}
    for topic, parts in found.items():
        if not isinstance(parts, dict):
            return {}
        for partition, offset in parts.items():
            if not str(partition).isdecimal() or not isinstance(offset, int) or isinstance(offset, bool) or offset < 0:
                return {}
            made[TopicPartition(topic, int(partition))] = offset
    return made


def _finite(number: float | None) -> float:
    return float(number) if number is not None and math.isfinite(number) else 0.0


FAMILIES: tuple[tuple[str, str, str, Callable[[Measures], float]], ...] = (
    ("ottla_query_batch_id", "gauge", "Number of the last batch that ended.", lambda each: each.batch_id),
    ("ottla_query_batch_rows", "gauge", "Rows that the last batch read.", lambda each: each.rows),
    ("ottla_query_batch_seconds", "gauge", "How long the last batch took.", lambda each: each.batch_ms / 1000),
    ("ottla_query_rows_per_second", "gauge", "Rows processed per second in the last batch.", lambda each: each.rows_per_second),
)

BEHIND_WORDS = {
    "min": "Records that the partition with the smallest lag is behind.",
    "max": "Records that the partition with the largest lag is behind.",
    "avg": "Records that partitions are behind on average.",
}


def metrics_dict(newest: Iterable[Measures], rows_by_query: Mapping[str, int], failures: int) -> dict[str, Any]:
    """Measures by the query's name, and `commit_failures`."""
    queries = {
        each.name: {
            "query_id": each.query_id,
            "batch_id": each.batch_id,
            "batch_rows": each.rows,
            "batch_seconds": each.batch_ms / 1000,
            "rows_per_second": each.rows_per_second,
            "rows_total": rows_by_query.get(each.query_id, 0),
            "lag": each.lag,
            "offsets_behind_latest": None if each.behind_latest is None else asdict(each.behind_latest),
            "lag_by_partition": {str(partition): lag for partition, lag in each.lag_by_partition.items()},
        }
        for each in newest
    }
    return {"queries": queries, "commit_failures": failures}


def metrics_text(newest: Iterable[Measures], rows_by_query: Mapping[str, int], failures: int) -> bytes:
    """The page that Prometheus reads."""
    page, found = MetricsText(), list(newest)
    for name, kind, words, take in FAMILIES:
        family = page.family(name, kind, words)
        for each in found:
            family.sample(take(each), [("query", each.name)])
    family = page.family("ottla_query_rows_total", "counter", "Rows read since the listener was attached.")
    for each in found:
        family.sample(rows_by_query.get(each.query_id, 0), [("query", each.name)])
    family = page.family("ottla_query_lag_records", "gauge", "Records in a partition that the query has not read yet.")
    for each in found:
        for (topic, partition), lag in each.lag_by_partition.items():
            family.sample(lag, [("query", each.name), ("topic", topic), ("partition", partition)])
    for which in ("min", "max", "avg"):
        family = page.family(f"ottla_query_offsets_behind_latest_{which}", "gauge", BEHIND_WORDS[which])
        for each in found:
            if (numbers := each.behind_latest) is not None:
                family.sample(getattr(numbers, which), [("query", each.name)])
    page.counter("ottla_query_commit_failures_total", "Attempts to commit offsets to the group that failed.", failures)
    return page.encode()
