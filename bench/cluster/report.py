"""Writes the figures of `bench.cluster`: its results.json, and the tables of README and docs/benchmarks.md.

python -m bench.cluster.report        rewrite the documents from the results, without measuring
"""

from __future__ import annotations

from bench import report
from bench.side_by_side.figures import Results
from bench.side_by_side.table import markdown_lines

SOURCES = report.ROOT / "src" / "ottla"
RESULTS = report.ROOT / "bench" / "cluster" / "results.json"
BEGIN, END = "<!-- cluster:begin -->", "<!-- cluster:end -->"
NOT_MEASURED = "Not measured yet: `make bench-cluster`.\n"
IN_README = (
    "start",
    "memory",
    "produce:1kb-r1",
    "produce:1kb-r3",
    "produce:1kb-r3-cpu",
    "produce:100b-r1",
    "produce:100b-r3",
    "latency:p99",
    "leader",
    "failover",
    "many:r3-idle",
    "many:r3-memory",
    "many:r3-leaders",
)
"""The rows of the README, also where a goal is missed."""
HOW = (
    "Three nodes of each side run in turn on the same machine, every node a broker and a controller in one process. Both sides",
    "have the same settings: Kafka's defaults, but broker sessions of 3 s with heartbeats every 0.3 s, and files of deleted",
    "topics are removed at once. Throughput is that of Kafka's ProducerPerformance, which runs on the same cores; CPU is that",
    "of the three nodes, per 10^9 bytes of values. Figures are medians, with the smallest and the largest of the rounds in",
    "brackets; a ratio is Ottla's figure divided by Apache Kafka's of the same round.",
)


def readme_block(results: Results | None) -> str:
    """The README's lines between its markers."""
    if results is None:
        return NOT_MEASURED
    keys = [f"cluster:{key}" for key in IN_README]
    rows = Results(results.machine, {key: results.figures[key] for key in keys if key in results.figures})
    return "\n".join([report.machine_line(results), "", *markdown_lines(rows)]) + "\n"


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
    """Write the blocks of the documents."""
    results = load()
    for document, measured in ((report.README, readme_block(results)), (report.DETAIL, detail_block(results))):
        document.write_text(report.with_block(document, measured, BEGIN, END), encoding="utf-8")


if __name__ == "__main__":
    write()
