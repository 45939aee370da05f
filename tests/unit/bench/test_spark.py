"""The tables of `bench.spark`."""

from __future__ import annotations

from bench.spark.__main__ import KINDS, read_options
from bench.spark.results import Row, SparkResults, markdown, table


def results() -> SparkResults:
    made = SparkResults({"cpu": "x"})
    made.row("source-100", "read 100 B", 3.0).ours += [2e6, 3e6, 2.5e6]
    made.row("source-100", "read 100 B", 3.0).theirs += [1e6, 1e6, 0.5e6]
    made.row("sink-100", "write 100 B", 2.0).ours.append(1e6)
    return made


def test_ratios_are_of_the_same_round() -> None:
    row = results().rows["source-100"]
    assert (row.ratio, row.verdict) == (3.0, "reached")
    assert Row("x", 4.0, [1.0], [2.0]).verdict == "missed"
    assert (Row("x", None, [1.0], [2.0]).verdict, Row("x", 2.0).ratio) == ("", None)


def test_tables_have_a_line_for_each_row() -> None:
    lines = table(results()).splitlines()
    assert len(lines) == 3
    assert lines[1].split("  ")[0] == "read 100 B"
    assert "1.00 M/s (0.50–1.00)" in lines[1]
    assert "3.00 ×" in lines[1]
    missed = SparkResults({}, {"a": Row("x", 4.0, [1.0], [2.0])})
    assert markdown(missed)[-1].endswith("| **missed** |")


def test_results_survive_json() -> None:
    assert SparkResults.from_json(results().to_json()) == results()


def test_only_full_runs_are_kept() -> None:
    assert read_options([]).save
    assert not read_options(["--quick"]).save
    assert not read_options(["--ours-only"]).save
    quick = read_options(["--quick", "--kinds", next(iter(KINDS))])
    assert (quick.rounds, quick.scale) == (1, 0.1)
