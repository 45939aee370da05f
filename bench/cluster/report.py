"""Writes the figures of `bench.cluster`: its results.json, docs/benchmarks.md, and the lines of the README.

python -m bench.cluster.report        rewrite the documents from the results, without measuring
"""

from __future__ import annotations

from bench import readme, report
from bench.readme import with_block
from bench.side_by_side.figures import Results
from bench.side_by_side.table import markdown_lines

SOURCES = report.ROOT / "src" / "ottla"
RESULTS = report.ROOT / "bench" / "cluster" / "results.json"
BEGIN, END = "<!-- cluster:begin -->", "<!-- cluster:end -->"
NOT_MEASURED = "Not measured yet: `make bench-cluster`.\n"
HOW = (
    "Three nodes of each side run in turn on the same machine, every node a broker and a controller in one process. Both sides",
    "have the same settings: Kafka's defaults, but broker sessions of 3 s with heartbeats every 0.3 s, and files of deleted",
    "topics are removed at once. Throughput is that of Kafka's ProducerPerformance, which runs on the same cores; CPU is that",
    "of the three nodes, per 10^9 bytes of values. Figures are medians, with the smallest and the largest of the rounds in",
    "brackets; a ratio is Ottla's figure divided by Apache Kafka's of the same round.",
)


def detail_block(results: Results | None) -> str:
    """The lines of docs/benchmarks.md between its markers."""
    if results is None:
        return NOT_MEASURED
    return "\n".join([report.machine_line(results), "", *HOW, "", *markdown_lines(results)]) + "\n"


def load() -> Results | None:
    """The results of the last kept run; None if there was none."""
    return report.kept_at(RESULTS)


def keep(measured: Results) -> None:
    """Merge new figures into the known ones, and write results and documents."""
    report.merge_at(RESULTS, measured)
    write()


def write() -> None:
    """Write the documents."""
    report.DETAIL.write_text(with_block(report.DETAIL, detail_block(load()), BEGIN, END), encoding="utf-8")
    readme.write()


if __name__ == "__main__":
    write()
