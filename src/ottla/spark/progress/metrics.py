"""Measures of queries as a dict and as Prometheus's text. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any

from ottla.metrics_text import MetricsText
from ottla.spark.progress.measures import Measures

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
