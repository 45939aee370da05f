"""What the README and the plot show of a run."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from bench import report
from bench.side_by_side.figures import Figure, Results, at_least, at_most
from bench.side_by_side.plot import svg_text
from bench.side_by_side.table import markdown_lines, terminal_text

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


def test_the_table_says_what_was_reached_and_by_how_much_it_was_missed(results: Results) -> None:
    lines = markdown_lines(results)
    assert lines[2] == "| produce <a>, MB/s | 105 (100–110) | 158 (150–165) | 1.50 (1.50–1.50) | ≥ 1.15 × | reached |"
    assert lines[3] == "| raw, MB/s (the limit: 1,000) | 200 | 300 | 0.30 of the limit | ≥ 0.6 × | **missed by 50%** |"
    assert lines[4] == "| many, ms | 2.00 | 9.00 | 4.50 |  |  |"


def test_the_terminal_gets_every_row(results: Results) -> None:
    text = terminal_text(results)
    assert len(text.splitlines()) == 1 + len(results.figures)
    assert "missed by 50%" in text


def test_the_plot_is_a_picture_with_a_bar_and_a_mark_per_goal(results: Results) -> None:
    root = ElementTree.fromstring(svg_text(results))
    fills = [element.get("fill") for element in root.iter("{http://www.w3.org/2000/svg}rect")]
    assert fills.count("#000000") == 3, "one mark for each goal"
    assert (fills.count("#2a9d6f"), fills.count("#d1495b"), fills.count("#8d99ae")) == (2, 1, 1)


def test_only_the_block_changes_in_the_readme() -> None:
    readme = f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n"
    assert report.with_block(readme, "new\n") == f"before\n{report.BEGIN}\nnew\n{report.END}\nafter\n"
    with pytest.raises(SystemExit):
        report.with_block("no markers", "new\n")


def test_figures_of_a_partial_run_go_over_those_that_are_known(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("README", "RESULTS", "PLOT"):
        monkeypatch.setattr(report, name, tmp_path / name)
    monkeypatch.setattr(report, "ROOT", tmp_path)
    report.README.write_text(f"{report.BEGIN}\n{report.END}\n")
    report.keep(results)
    again = Results(FACTS)
    again.add([Figure("cpu:a", "CPU", "s", [4.0], [2.0], at_most(0.55)), Figure("start", "start", "ms", [2000.0], [100.0])])
    report.keep(again)
    assert list(report.load().figures) == ["produce:a", "cpu:a", "start", "raw:in", "many:p99"]
    assert report.load().figures["start"].ottla == [100.0]
    assert "| start, ms | 2,000 | 100 | 0.05 |" in report.README.read_text()


@pytest.mark.skipif(not report.RESULTS.exists(), reason="no run has been kept yet: make bench")
def test_readme_and_plot_show_the_kept_run() -> None:
    kept = report.load()
    readme = report.README.read_text(encoding="utf-8")
    assert report.with_block(readme, report.block(kept)) == readme, "python -m bench.report writes it anew"
    assert report.PLOT.read_text(encoding="utf-8") == svg_text(kept), "python -m bench.report writes it anew"
