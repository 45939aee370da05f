"""Writes the figures of `bench.spark`: its results.json, the plot, and the tables of README and docs/benchmarks.md.

python -m bench.spark.report        rewrite plot and documents from the results, without measuring
"""

from __future__ import annotations

from bench import report
from bench.side_by_side.figures import Results
from bench.side_by_side.plot import svg_text
from bench.side_by_side.table import markdown_lines, terminal_text

RESULTS = report.ROOT / "bench" / "spark" / "results.json"
PLOT = report.ROOT / "docs" / "bench-spark.svg"
BEGIN, END = "<!-- spark:begin -->", "<!-- spark:end -->"
OTHER = "Spark's connector"
RATIO_MAX = 4.0
NOT_MEASURED = "Not measured yet: `make bench-spark`.\n"
IN_README = ("source:100", "source:1000", "sink:100", "sink:1000", "sink:100-exactly", "burst", "latency:p50", "partitions:64")
"""The rows of the README, also where a goal is missed."""
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


def readme_block(results: Results | None) -> str:
    """The README's lines between its markers."""
    if results is None:
        return NOT_MEASURED
    rows = Results(results.machine, {key: results.figures[key] for key in IN_README if key in results.figures})
    return "\n".join([machine_line(results), "", *markdown_lines(rows, OTHER)]) + "\n"


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
    """Write the plot and the blocks of the documents."""
    results = load()
    if results is not None:
        PLOT.write_text(plot_text(results), encoding="utf-8")
    for document, measured in ((report.README, readme_block(results)), (report.DETAIL, detail_block(results))):
        document.write_text(report.with_block(document, measured, BEGIN, END), encoding="utf-8")


def plot_text(results: Results) -> str:
    return svg_text(results, OTHER, RATIO_MAX)


if __name__ == "__main__":
    write()
