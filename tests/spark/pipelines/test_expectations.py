"""Expectations on real rows, in SQL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.spark.pipelines.folders import write_pipeline

from ottla.spark.pipelines.errors import FlowFailed
from ottla.spark.pipelines.resolution import prepared
from ottla.spark.pipelines.run import Run
from ottla.spark.pipelines.spec import Schedule
from ottla.testing import Broker

OTTLA = "sources: {{orders: {{subscribe: {topic}, startingOffsets: earliest}}}}\n"
SQL = """
CREATE STREAMING TABLE kept (
  CONSTRAINT small EXPECT (n < 3),
  CONSTRAINT positive EXPECT (n > 0) ON VIOLATION DROP ROW,
  CONSTRAINT known EXPECT (n IS NOT NULL) ON VIOLATION {violation}
) AS SELECT TRY_CAST(CAST(value AS STRING) AS INT) AS n FROM STREAM orders;
CREATE MATERIALIZED VIEW total (CONSTRAINT some EXPECT (n > 100)) AS SELECT sum(n) AS n FROM kept;
"""


def test_rows_are_counted_dropped_sent_or_refused(tmp_path: Path, spark: Any, topic: str, shared_broker: Broker) -> None:
    dead, servers = f"{topic}-dead", shared_broker.bootstrap_servers
    shared_broker.create_topic(dead)
    for value in ("1", "0", "5", "x"):
        shared_broker.produce(topic, value)
    text = SQL.format(violation=f"DEAD LETTER TO '{dead}'")
    spec = write_pipeline(tmp_path / "a", {"a.sql": text}, OTTLA.format(topic=topic), servers)
    with prepared(spec, spark) as resolved:
        assert list(resolved.graph.dead_letter_topics()) == [dead]
        totals = Run(resolved, spark, Schedule()).run()
        assert sorted(row.n for row in spark.table("kept").collect()) == [1, 5]
    found = {name: (each.rows, each.bad, each.action) for (_, _, name), each in totals.checks["kept"].items()}
    assert found == {"small": (4, 2, "warn"), "positive": (4, 2, "drop"), "known": (4, 1, "dead letter")}
    assert [(each.bad, each.rows) for each in totals.checks["total"].values()] == [(1, 1)]
    (letter,) = shared_broker.records(dead)
    assert (letter.value, dict(letter.headers)) == (b"{}", {"ottla.error.reason": b"known (n IS NOT NULL) is not met"})
    refused = SQL.format(violation="FAIL UPDATE")
    spec = write_pipeline(tmp_path / "b", {"a.sql": refused}, OTTLA.format(topic=topic), servers)
    sentence = r"a row does not meet the expectation known \(n IS NOT NULL\): \{\}"
    with prepared(spec, spark) as resolved, pytest.raises(FlowFailed, match=sentence):
        Run(resolved, spark, Schedule()).run()
