"""`make bench-cluster`: its options, its table and its document."""

from bench import report as documents
from bench.cluster import report
from bench.cluster.rows import GROUPS, figures, table
from bench.side_by_side.figures import Results
from bench.side_by_side.table import terminal_text


def test_every_row_belongs_to_a_group() -> None:
    assert {key.partition(":")[0] for key in table(10)} == set(GROUPS)


def test_rows_that_were_measured_are_held_to_their_goals() -> None:
    apache = {"start": [10_000.0], "failover": [3000.0, 2000.0, 1000.0], "memory": [1500.0], "produce:1kb-r3": [50.0]}
    ottla = {"start": [1500.0], "failover": [3300.0, 2400.0, 1200.0], "memory": [150.0], "produce:1kb-r3": [60.0]}
    results = Results()
    results.add(figures(table(10_000), apache, ottla))
    assert {key: (round(each.ratio, 2), each.verdict) for key, each in results.figures.items()} == {
        "cluster:start": (0.15, "reached"),
        "cluster:memory": (0.1, "reached"),
        "cluster:produce:1kb-r3": (1.2, "reached"),
        "cluster:failover": (1.2, "missed by 20%"),
    }
    assert "≤ 0.2 ×" in terminal_text(results)


def test_the_document_has_the_kept_results() -> None:
    assert report.detail_block(report.load()) in documents.DETAIL.read_text()
    assert report.detail_block(None) == report.NOT_MEASURED
