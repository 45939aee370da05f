"""Writes the figures of `bench.spark`: its results.json, the plot, docs/benchmarks.md, and the lines of the README.

python -m bench.spark.report        rewrite plot and documents from the results, without measuring
"""

from __future__ import annotations

from bench import readme, report
from bench.readme import with_block
from bench.side_by_side.figures import Results
from bench.side_by_side.plot import svg_text
from bench.side_by_side.table import markdown_lines, terminal_text

RESULTS = report.ROOT / "bench" / "spark" / "results.json"
PLOT = report.ROOT / "docs" / "bench-spark.svg"
BEGIN, END = "<!-- spark:begin -->", "<!-- spark:end -->"
OTHER = readme.SPARK
RATIO_MAX = 4.0
NOT_MEASURED = "Not measured yet: `make bench-spark`.\n"
HOW = (
    "One Ottla broker in its own process serves Spark's own Kafka connector and Ottla's source and sink in turn, round by",
    "round, in one session with two cores and the settings that Ottla's own sessions have (Arrow batches of 4 MB), after one",
    "round to warm up. Figures are medians, with the smallest and the largest of the rounds in brackets; a ratio is Ottla's",
    "figure divided by the connector's of the same round. Every write has a topic of its own. The connector has no",
    "exactly-once sink: beside those rows stands its at-least-once sink. A burst is drained by a query that runs already.",
    "Latency is that of 200 records a second through a query from topic to topic, with the shortest micro-batches of Spark.",
)


def machine_line(results: Results) -> str:
    facts = results.machine
    system = f"{facts['system']}, {facts['cpu']}, {facts['memory']}"
    return f"PySpark {facts['pyspark']}, pyarrow {facts['pyarrow']}, Python {facts['python']}, {system}."


def terminal(results: Results) -> str:
    return terminal_text(results, OTHER)


def detail_block(results: Results | None) -> str:
    """The lines of docs/benchmarks.md between its markers: the plot and all rows."""
    if results is None:
        return NOT_MEASURED
    plot = f"![Ratios to Spark's connector]({PLOT.name})"
    return "\n".join([machine_line(results), "", plot, "", *HOW, "", *markdown_lines(results, OTHER)]) + "\n"


def load() -> Results | None:
    """The results of the last kept run; None if there was none."""
    return report.kept_at(RESULTS)


def keep(measured: Results) -> None:
    """Merge new figures into the known ones, and write results, plot and documents."""
    report.merge_at(RESULTS, measured)
    write()


def write() -> None:
    """Write the plot and the documents."""
    results = load()
    if results is not None:
        PLOT.write_text(plot_text(results), encoding="utf-8")
    report.DETAIL.write_text(with_block(report.DETAIL, detail_block(results), BEGIN, END), encoding="utf-8")
    readme.write()


def plot_text(results: Results) -> str:
    return svg_text(results, OTHER, RATIO_MAX)


if __name__ == "__main__":
    write()
