"""README, docs/benchmarks.md and the plot after a run."""

from pathlib import Path

import pytest
from bench import readme, report
from bench.side_by_side.figures import Figure, Results, at_least, at_most
from bench.side_by_side.plot import svg_text
from bench.side_by_side.table import markdown_lines

FACTS = {"kafka": "4.3.0", "python": "3.11", "system": "Linux", "cpu": "a CPU", "memory": "8 GB"}


@pytest.fixture
def results() -> Results:
    results = Results(FACTS)
    results.add(
        [
            Figure("produce:a", "produce <a>", "MB/s", [100.0, 110.0], [150.0, 165.0], at_least(1.15)),
            Figure("raw:in", "raw", "MB/s", [200.0], [300.0], at_least(0.6), [1000.0], "the limit"),
            Figure("many:p99", "many", "ms", [2.0], [9.0]),
            Figure("start", "start", "ms", [2000.0], [200.0], at_most(0.15)),
        ]
    )
    return results


def test_table_shows_reached_and_missed_goals(results: Results) -> None:
    lines = markdown_lines(results)
    assert lines[2] == "| produce <a>, MB/s | 105 (100–110) | 158 (150–165) | 1.50 (1.50–1.50) | ≥ 1.15 × | reached |"
    assert lines[3] == "| raw, MB/s (the limit: 1,000) | 200 | 300 | 0.30 of the limit | ≥ 0.6 × | **missed by 50%** |"
    assert lines[4] == "| many, ms | 2.00 | 9.00 | 4.50 |  |  |"


@pytest.fixture
def documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The documents, results and plot of a run in a temporary folder."""
    for name in ("DETAIL", "RESULTS", "PLOT"):
        monkeypatch.setattr(report, name, tmp_path / name)
    monkeypatch.setattr(readme, "README", tmp_path / "README")
    monkeypatch.setattr(readme, "RESULTS", {name: tmp_path / name for name in readme.RESULTS} | {"servers": report.RESULTS})
    for document, module in ((readme.README, readme), (report.DETAIL, report)):
        document.write_text(f"before\n{module.BEGIN}\nold\n{module.END}\nafter\n")


@pytest.mark.usefixtures("documents")
def test_partial_run_replaces_only_its_own_figures(results: Results) -> None:
    report.keep(results)
    again = Results(FACTS)
    again.add([Figure("cpu:a", "CPU", "s", [4.0], [2.0], at_most(0.55)), Figure("start", "start", "ms", [2000.0], [100.0])])
    report.keep(again)
    assert list(report.load().figures) == ["produce:a", "cpu:a", "start", "raw:in", "many:p99"]
    assert report.load().figures["start"].ottla == [100.0]
    assert "| start, ms | 2,000 Apache Kafka | 100 | 0.05 |" in readme.README.read_text()


@pytest.mark.usefixtures("documents")
def test_row_of_ottla_alone_is_held_to_its_limit(results: Results) -> None:
    results.add([Figure("secure:cached", "decision", "µs", [], [0.2], at_most(1.0), [5.0], "the limit")])
    report.keep(results)
    shown = "| decision, µs (the limit: 5.00) | – | 0.20 | 0.04 of the limit | ≤ 1 × | reached |"
    assert shown in report.DETAIL.read_text(encoding="utf-8")


@pytest.mark.skipif(not report.RESULTS.exists(), reason="no run has been kept yet: make bench")
def test_documents_and_plot_show_the_kept_run() -> None:
    kept = report.load()
    shown = report.DETAIL.read_text(encoding="utf-8")
    assert readme.with_block(report.DETAIL, report.detail_block(kept), report.BEGIN, report.END) == shown, (
        "python -m bench.report rewrites it"
    )
    assert report.PLOT.read_text(encoding="utf-8") == svg_text(kept), "python -m bench.report rewrites it"


def test_readme_shows_the_kept_runs() -> None:
    shown = readme.README.read_text(encoding="utf-8")
    assert readme.with_block(readme.README, readme.block()) == shown, "python -m bench.readme rewrites it"
    kept = {name: readme.rows_of(name) for name in readme.RESULTS}
    assert [row for row in readme.ROWS if row[1] not in kept[row[0]]] == [], "rows that no run measures"
