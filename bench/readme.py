"""The README's ten lines of figures, from the kept results of all four benchmarks.

python -m bench.readme        rewrite them, without measuring

Each benchmark rewrites them when it keeps its results (`keep` of its report). All rows are in docs/benchmarks.md.
"""

import json
import statistics
import sys
from pathlib import Path

from bench.clients.results import ClientResults, comparisons
from bench.side_by_side.figures import APACHE, Results, amount

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
RESULTS = {
    "servers": ROOT / "bench" / "results.json",
    "cluster": ROOT / "bench" / "cluster" / "results.json",
    "clients": ROOT / "bench" / "clients" / "results.json",
    "spark": ROOT / "bench" / "spark" / "results.json",
}
BEGIN, END = "<!-- figures:begin -->", "<!-- figures:end -->"
SPARK = "Spark's connector"
ROWS = (
    ("servers", "produce:1kb-6"),
    ("servers", "latency:p99"),
    ("servers", "start"),
    ("servers", "memory:load"),
    ("cluster", "cluster:produce:1kb-r3"),
    ("cluster", "cluster:leader"),
    ("clients", "produce:Ottla send_many:100 B"),
    ("clients", "latency:end_p99_ms"),
    ("spark", "source:100"),
    ("spark", "latency:p50"),
)
"""Benchmark and key, one for each subject, also where Ottla is slower or has missed a goal."""
HEADING = ("| what | the other | Ottla | ratio |", "|---|---:|---:|---:|")


def rows_of(name: str) -> dict[str, str]:
    """The lines of one benchmark's kept results by their keys; none if nothing was kept."""
    path = RESULTS[name]
    if not path.exists():
        return {}
    kept = json.loads(path.read_text(encoding="utf-8"))
    if name == "clients":
        compared = comparisons(ClientResults.from_json(kept))
        return {row.key: line(row.what, row.unit, row.others, row.other_name, row.ottla, row.ratio) for row in compared}
    other = SPARK if name == "spark" else APACHE
    figures = Results.from_json(kept).figures
    return {
        key: line(each.what, each.unit, each.other, other, each.ottla, each.ratio)
        for key, each in figures.items()
        if each.other  # a few are held to a limit alone
    }


def line(what: str, unit: str, others: list[float], other: str, ottla: list[float], ratio: float) -> str:
    """One row: medians, and who the other is."""
    shown = f"{amount(statistics.median(others))} {other}"
    return f"| {what}, {unit} | {shown} | {amount(statistics.median(ottla))} | {ratio:.2f} |"


def block() -> str:
    """The README's lines between its markers."""
    kept = {name: rows_of(name) for name in RESULTS}
    return "\n".join([*HEADING, *(kept[name][key] for name, key in ROWS if key in kept[name])]) + "\n"


def with_block(document: Path, measured: str, begin: str = BEGIN, end: str = END) -> str:
    """The text of a document with `measured` between its markers."""
    before, _, rest = document.read_text(encoding="utf-8").partition(begin)
    _, _, after = rest.partition(end)
    if not rest or not after:
        sys.exit(f"{document} has no markers {begin} … {end} for the figures")
    return f"{before}{begin}\n{measured}{end}{after}"


def write() -> None:
    """Write the lines into the README."""
    README.write_text(with_block(README, block()), encoding="utf-8")


if __name__ == "__main__":
    write()
