"""Writes the results of `make bench-servers`: bench/results.json, the plot, docs/benchmarks.md and the lines of the README.

    python -m bench.report        rewrite plot and documents from bench/results.json, without measuring

Every figure in these documents comes from bench/results.json, and every figure there from a run of `make bench-servers`
(bench/side_by_side). The micro-benchmarks are one of its rows. Only the text between the markers of a document is replaced.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench import readme
from bench.readme import ROOT, with_block
from bench.side_by_side.errors import BenchFailed
from bench.side_by_side.figures import Results
from bench.side_by_side.plot import svg_text
from bench.side_by_side.table import markdown_lines

DETAIL = ROOT / "docs" / "benchmarks.md"
RESULTS = ROOT / "bench" / "results.json"
PLOT = ROOT / "docs" / "bench.svg"
BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"
ORDER = (
    "produce",
    "cpu",
    "consume",
    "latency",
    "groups",
    "offsets",
    "transactions",
    "start",
    "memory",
    "raw",
    "many",
    "compaction",
    "secure",
)
"""The order of the table; a figure's key begins with one of these."""

HOW = (
    "Both servers run with the same settings: Kafka's defaults, except that files of deleted topics are removed at once,",
    "compaction looks for work every 0.1 s, group members send a heartbeat every 0.1 s, and groups have no initial delay. They",
    "are loaded in turn, round by round. Produce, consume and mean latency come from Kafka's own ProducerPerformance,",
    "ConsumerPerformance and EndToEndLatency, the other rows down to transactions from Kafka's Java clients. Figures are",
    "medians, with the smallest and the largest of the rounds in brackets. A ratio is Ottla's figure divided by Apache Kafka's",
    "of the same round, unless it names another reference.",
)


def run(module: str) -> Any:
    """Run a benchmark and return its figures. Its exit code is ignored: it says whether a goal was met, as the figures do."""
    print(f"{module} …", file=sys.stderr, flush=True)
    done = subprocess.run([sys.executable, "-m", module, "--json"], cwd=ROOT, capture_output=True, text=True, check=False)
    try:
        return json.loads(done.stdout)
    except ValueError:
        raise BenchFailed(f"{module} gave no figures:\n{done.stderr}") from None


def table(heading: list[str], rows: list[list[str]]) -> list[str]:
    return [
        "| " + " | ".join(heading) + " |",
        "|---" + "|---:" * (len(heading) - 1) + "|",
        *("| " + " | ".join(row) + " |" for row in rows),
        "",
    ]


def wire_lines(rows: list[dict[str, Any]]) -> list[str]:
    return [
        "Messages, microseconds each, and how many times as fast as kafka-python's compiled codecs (`bench/wire_bench.py`):",
        "",
        *table(
            ["", "decode", "× kafka-python", "encode", "× kafka-python"],
            [
                [
                    row["case"],
                    f"{row['decode_us']:.1f}",
                    f"{row['decode_ratio']:.1f}",
                    f"{row['encode_us']:.1f}",
                    f"{row['encode_ratio']:.1f}",
                ]
                for row in rows
            ],
        ),
    ]


def records_lines(result: dict[str, Any]) -> list[str]:
    contenders = list(result["rows"][0]["ns_per_record"])
    thousands = {
        f"{row['what']}: {row['records']}": [
            f"{1e6 / ns:,.0f}" if (ns := row["ns_per_record"].get(name)) else "–" for name in contenders
        ]
        for row in result["rows"]
    }
    ratio = f"{result['ottla_to_aiokafka']:.2f} × aiokafka's compiled codec"
    return [
        f"Records, thousands per second; without compression, encode and decode together {ratio} (`bench/records_bench.py`):",
        "",
        *table(["", *contenders], [[name, *cells] for name, cells in thousands.items()]),
    ]


def log_lines(result: dict[str, Any]) -> list[str]:
    rows = [[name, f"{value / 1e6:,.0f}"] for name, value in result["rows"].items() if not name.endswith("(reads/s)")]
    ratios = [[name, f"{value:.2f}"] for name, value in result["ratios"].items()]
    size = f"{result['batch_bytes'] // 1024} KB"
    return [
        f"Partition log, batches of {size}, compared with bare writes and reads of the page cache (`bench/log_bench.py`):",
        "",
        *table(["", "MB/s"], rows),
        *table(["", "ratio"], ratios),
    ]


def measure_micro() -> dict[str, Any]:
    """Run the micro-benchmarks one after the other. Each takes turns with its peers itself."""
    return {name: run(f"bench.{name}_bench") for name in ("wire", "records", "log")}


def machine_line(results: Results) -> str:
    facts = results.machine
    return f"Apache Kafka {facts['kafka']}, Python {facts['python']}, {facts['system']}, {facts['cpu']}, {facts['memory']}."


def detail_block(results: Results) -> str:
    """The lines of docs/benchmarks.md between its markers: the plot and all rows."""
    lines = [machine_line(results), ""]
    if results.figures:
        lines += ["![Ratios to Apache Kafka](bench.svg)", "", *HOW, "", *markdown_lines(results), ""]
    if results.micro:
        lines += wire_lines(results.micro["wire"]) + records_lines(results.micro["records"]) + log_lines(results.micro["log"])
    return _text(lines)


def _text(lines: list[str]) -> str:
    return "\n".join(lines).rstrip() + "\n"


def kept_at(path: Path) -> Results | None:
    """The results of the last kept run; None if there was none."""
    return Results.from_json(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None


def write_results(path: Path, results: Results) -> None:
    path.write_text(json.dumps(results.to_json(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def merge_at(path: Path, measured: Results) -> None:
    """Write the measured figures, and the kept ones of rows that were not measured now."""
    known = kept_at(path) or Results()
    write_results(path, Results(measured.machine, known.figures | measured.figures))


def load() -> Results:
    """The results of the last kept run; empty if there was none."""
    return kept_at(RESULTS) or Results()


def keep(measured: Results) -> None:
    """Merge new figures into the known ones, and write results, plot and documents."""
    known = load()
    together = known.figures | measured.figures
    ordered = sorted(together, key=lambda key: ORDER.index(key.partition(":")[0]))
    merged = Results(measured.machine, {key: together[key] for key in ordered}, measured.micro or known.micro)
    write_results(RESULTS, merged)
    write(load())


def write(results: Results) -> None:
    """Write the plot and the documents."""
    PLOT.write_text(svg_text(results), encoding="utf-8")
    DETAIL.write_text(with_block(DETAIL, detail_block(results), BEGIN, END), encoding="utf-8")
    readme.write()


if __name__ == "__main__":
    write(load())
