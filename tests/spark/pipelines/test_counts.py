"""Counts of bad data, and their sentences."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.spark.pipelines.folders import write_pipeline

from ottla.spark.pipelines import expect_all_or_drop, expect_or_drop, storage
from ottla.spark.pipelines.counts import Check, checks_of
from ottla.spark.pipelines.errors import FlowFailed, PipelineError
from ottla.spark.pipelines.expectations import Expectation, expectations_of
from ottla.spark.pipelines.resolution import prepared
from ottla.spark.pipelines.run import Run
from ottla.spark.pipelines.spec import Schedule
from ottla.testing import Broker


def test_report_of_expectations_describes_itself() -> None:
    report = {"rows": 9, "drop:a": 2, "example:a": "{}", "condition:a": "x > 0", "warn:b": 0, "condition:b": "y"}
    first, second = checks_of({"ottla.expect/view": report, "mine": {"rows": 1}})
    assert first.text() == "view: 2 of 9 rows do not meet the expectation a (x > 0) and were dropped; such as {}"
    assert (second.name, second.action, second.bad) == ("b", "warn", 0)


def test_batch_that_comes_again_replaces_its_counts(tmp_path: Path) -> None:
    spec = write_pipeline(tmp_path, {"a.py": ""})
    check = Check("view", "expect", "a", "drop", 10, 3)
    storage.add_counts(spec, "flow", "q", 0, [check])
    storage.add_counts(spec, "flow", "q", 1, [check])
    storage.add_counts(spec, "flow", "q", 1, [replace(check, bad=4)])
    (total,) = storage.counts_of(spec, "flow")
    assert (total.rows, total.bad) == (20, 7)
    storage.add_counts(spec, "flow", "after a reset", 0, [check])
    assert [each.bad for each in storage.counts_of(spec, "flow")] == [3]


def test_decorators_add_up_in_the_order_of_the_page() -> None:
    @expect_or_drop("a", "x")
    @expect_all_or_drop({"b": "y", "c": "z"})
    def rows() -> None: ...

    assert expectations_of(rows) == (
        Expectation("a", "x", "drop"),
        Expectation("b", "y", "drop"),
        Expectation("c", "z", "drop"),
    )
    with pytest.raises(PipelineError, match="rows has two expectations with the name a"):
        expect_or_drop("a", "x")(rows)
    with pytest.raises(PipelineError, match=r"write it below @dp\.table"):
        expect_or_drop("d", "x")(None)  # type: ignore[arg-type]


def test_checkpoints_that_no_flow_has(tmp_path: Path) -> None:
    spec = write_pipeline(tmp_path, {"a.py": ""})
    for name in ("old", "kept"):
        storage.make_folder(f"{storage.checkpoint(spec, name)}/offsets")
        (Path(storage.checkpoint(spec, name)) / "offsets" / "0").touch()
    assert storage.unowned_checkpoints(spec, ["kept", "new"]) == ["old"]
    storage.forget(spec, "old")
    assert storage.unowned_checkpoints(spec, ["kept", "new"]) == []
    assert storage.unowned_checkpoints(spec, ["kept", "old"]) == []
    assert storage.unowned_checkpoints(spec, ["kept", "new"]) == ["old"]  # it came back: it is asked for again
    with pytest.raises(PipelineError, match="the flow kept has a checkpoint of its own"):
        storage.rename_checkpoint(spec, "old", "kept", "sink")
    assert storage.rename_checkpoint(spec, "old", "new", "sink")
    assert not storage.rename_checkpoint(spec, "old", "new", "sink")
    assert storage.reset_flow(spec, "new")
    assert storage.unowned_checkpoints(spec, ["kept"]) == []


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
