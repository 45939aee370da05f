"""Counts of bad data, and their sentences."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.spark.pipelines.folders import write_pipeline

from ottla.spark.pipelines import expect_all_or_drop, expect_or_drop, storage
from ottla.spark.pipelines.counts import Check, checks_of
from ottla.spark.pipelines.errors import PipelineError
from ottla.spark.pipelines.expectations import Expectation, expectations_of


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
