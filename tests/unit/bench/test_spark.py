"""`make bench-spark`: options, tables, and the documents that show the kept run."""

from __future__ import annotations

from bench import readme
from bench import report as servers
from bench.side_by_side.figures import Results, at_least
from bench.spark import report
from bench.spark.run import Run

FACTS = {"pyspark": "4.3.0", "pyarrow": "24", "python": "3.11", "system": "Linux", "cpu": "a CPU", "memory": "8 GB"}


class TwoSides(Run):
    """A run without Spark: the samples of a side are given."""

    def __init__(self, rounds: int) -> None:
        super().__init__(None, None, Results(FACTS), rounds, 1.0)  # type: ignore[arg-type]


def test_both_sides_are_measured_in_turn_after_a_warm_up() -> None:
    run, asked = TwoSides(rounds=2), []

    def sample(name: str) -> float:
        asked.append(name)
        return len(asked)

    run.compare("source:100", "read", "s", sample, at_least(1.0))
    assert asked == ["kafka", "ottla"] * 3
    figure = run.results.figures["source:100"]
    assert (figure.other, figure.ottla, figure.verdict) == ([3.0, 5.0], [4.0, 6.0], "reached")


def test_documents_and_plot_show_the_kept_run() -> None:
    kept = report.load()
    shown = servers.DETAIL.read_text(encoding="utf-8")
    assert readme.with_block(servers.DETAIL, report.detail_block(kept), report.BEGIN, report.END) == shown, (
        "python -m bench.spark.report writes it"
    )
    if kept is not None:
        assert report.PLOT.read_text(encoding="utf-8") == report.plot_text(kept), "python -m bench.spark.report writes it"
