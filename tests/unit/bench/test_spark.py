"""`make bench-spark`: options, tables, and the documents that show the kept run."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench import readme
from bench import report as servers
from bench.side_by_side.figures import Figure, Results, at_least
from bench.spark import report
from bench.spark.__main__ import KINDS, read_options
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


def test_documents_have_the_kept_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RESULTS", "PLOT"):
        monkeypatch.setattr(report, name, tmp_path / name)
    monkeypatch.setattr(servers, "DETAIL", tmp_path / "DETAIL")
    monkeypatch.setattr(readme, "README", tmp_path / "README")
    monkeypatch.setattr(readme, "RESULTS", {name: tmp_path / name for name in readme.RESULTS} | {"spark": report.RESULTS})
    for document, module in ((readme.README, readme), (servers.DETAIL, report)):
        document.write_text(f"before\n{module.BEGIN}\nold\n{module.END}\nafter\n")
    report.write()
    assert "Not measured yet" in servers.DETAIL.read_text()
    report.keep(Results(FACTS, {"source:100": Figure("source:100", "read 100 B", "M rows/s", [0.5], [2.0], at_least(3))}))
    report.keep(Results(FACTS, {"source:x": Figure("source:x", "read x", "M rows/s", [0.5], [0.5], at_least(3))}))
    assert "| read 100 B, M rows/s | 0.50 | 2.00 | 4.00 | ≥ 3 × | reached |" in servers.DETAIL.read_text()
    assert "| read 100 B, M rows/s | 0.50 Spark's connector | 2.00 | 4.00 |" in readme.README.read_text()
    assert "read x" not in readme.README.read_text()
    assert "| what | Spark's connector | Ottla |" in servers.DETAIL.read_text()
    assert "**missed by 67%**" in servers.DETAIL.read_text()
    assert "Ottla beside Spark&#x27;s connector" in report.PLOT.read_text()


def test_documents_and_plot_show_the_kept_run() -> None:
    kept = report.load()
    shown = servers.DETAIL.read_text(encoding="utf-8")
    assert readme.with_block(servers.DETAIL, report.detail_block(kept), report.BEGIN, report.END) == shown, (
        "python -m bench.spark.report writes it"
    )
    if kept is not None:
        assert report.PLOT.read_text(encoding="utf-8") == report.plot_text(kept), "python -m bench.spark.report writes it"


def test_only_full_runs_are_kept() -> None:
    assert read_options([]).save
    assert not read_options(["--quick"]).save
    assert not read_options(["--kinds", "source"]).save
    quick = read_options(["--quick", "--kinds", next(iter(KINDS))])
    assert (quick.rounds, quick.scale) == (1, 0.1)
    with pytest.raises(SystemExit):
        read_options(["--kinds", "sources"])
