"""The clients' tables, for the terminal and docs/benchmarks.md, and the lines of the README; from bench/clients/results.json.

python -m bench.clients.report        rewrite the documents from the results, without measuring
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from pathlib import Path

from bench import readme, report
from bench.clients.cases import CASES, CEILING, CONSUME, PRODUCE
from bench.clients.results import ClientResults, Comparison, comparisons
from bench.readme import with_block
from bench.side_by_side.figures import amount, samples_text

RESULTS = report.ROOT / "bench" / "clients" / "results.json"
BEGIN, END = "<!-- clients:begin -->", "<!-- clients:end -->"
HEADING = ("what", "best of the others", "Ottla", "ratio", "raw protocol", "goal", "")
CEILING_COLUMN = HEADING.index("raw protocol")
NO_DETAIL = "–"
NOT_MEASURED = "Not measured yet: `make bench-clients`.\n"
HOW = (
    "One Ottla broker in its own process serves all clients in turn, round by round, each in a new process and with one record",
    "stored or read before the clock starts. Every producer is idempotent (acks=all) and waits for the delivery result of",
    "every record; consumers read six partitions from their beginning. Figures are medians, with the smallest and the largest",
    "of the rounds in brackets. A ratio is Ottla's figure divided by the best of confluent-kafka, aiokafka and kafka-python in",
    "the same round (of aiokafka for asyncio, of kafka-python without the compiled kernels). Latency is that of 500 records a",
    "second that do not linger, with producer and consumer in two processes. One record at a time, waited for: the caller",
    "sends a record, waits for its result and sends the next, with each client's default settings.",
    "Raw protocol is what loopback and broker allow: batches that were encoded before over one socket, answers that are not",
    "decoded. It shows Ottla's share of that rate.",
)


def cells(row: Comparison) -> tuple[str, ...]:
    """One row of the table."""
    ratio = f"{row.ratio:.2f}"
    if len(row.ratios) > 1:
        ratio += f" ({min(row.ratios):.2f}–{max(row.ratios):.2f})"
    goal = "" if row.goal is None else str(row.goal)
    other = f"{samples_text(row.others)} {row.other_name}"
    ceiling = ""
    if row.ceiling:
        most = statistics.median(row.ceiling)
        ceiling = f"{statistics.median(row.ottla) / most:.2f} of {amount(most)}"
    return f"{row.what}, {row.unit}", other, samples_text(row.ottla), ratio, ceiling, goal, row.verdict


def table(rows: Sequence[Comparison]) -> list[tuple[str, ...]]:
    """The heading and the rows; without the raw protocol's column where it was not measured."""
    found = [HEADING, *map(cells, rows)]
    if any(row.ceiling for row in rows):
        return found
    return [row[:CEILING_COLUMN] + row[CEILING_COLUMN + 1 :] for row in found]


def terminal_text(results: ClientResults) -> str:
    """The table in columns of equal width."""
    rows = table(comparisons(results))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)


def markdown_lines(rows: Sequence[Comparison]) -> list[str]:
    """The table in Markdown, with missed goals in bold."""
    heading, *found = table(rows)
    lines = ["| " + " | ".join(heading) + " |", "|---" + "|---:" * (len(heading) - 2) + "|---|"]
    for cells_shown in found:
        shown = list(cells_shown)
        if shown[-1].startswith("missed"):
            shown[-1] = f"**{shown[-1]}**"
        lines.append("| " + " | ".join(shown) + " |")
    return lines


def detail_lines(results: ClientResults) -> list[str]:
    """Every client and use: rate, the processor time of client and broker for a record, and peak memory."""
    lines: list[str] = []
    for kind, uses in (("produce", PRODUCE), ("consume", CONSUME)):
        heading = ["client", *(case.label for case in CASES)]
        lines += ["", f"{kind.capitalize()}: thousand records/s; client's + broker's µs of processor time per record; peak MB"]
        lines += ["", "| " + " | ".join(heading) + " |", "|---" + "|---:" * len(CASES) + "|"]
        for use in uses:
            shown = [_detail(getattr(results, kind).get(case.label, {}).get(use.name)) for case in CASES]
            if use.name == CEILING and set(shown) == {NO_DETAIL}:
                continue  # kept by a run from before it was measured
            lines.append("| " + " | ".join([use.name, *shown]) + " |")
    shown = {"delivery": "delivery", "end": "end to end", "waited": "waited for"}
    measured = [name for name in shown if name != "waited" or any("waited_p50_ms" in each for each in results.latency.values())]
    heading = [f"{shown[name]} {share}" for name in measured for share in ("p50", "p99")]
    lines += ["", "| latency, ms | " + " | ".join(heading) + " |", "|---" + "|---:" * len(heading) + "|"]
    for client, found in results.latency.items():
        names = [f"{name}_{share}_ms" for name in measured for share in ("p50", "p99")]
        lines.append("| " + " | ".join([client, *(samples_text(found.get(name, [])) for name in names)]) + " |")
    return lines


def _detail(found: dict[str, list[float]] | None) -> str:
    if not found:
        return NO_DETAIL
    rate, cpu, broker, peak = (statistics.median(found[name]) for name in ("rate", "cpu_us", "broker_us", "peak_mb"))
    return f"{amount(rate / 1000)} k; {cpu:.2f} + {broker:.2f}; {peak:.0f}"


def machine_line(results: ClientResults) -> str:
    facts = results.machine
    names = ("confluent-kafka", "aiokafka", "kafka-python")
    peers = ", ".join(f"{name} {facts[name]}" for name in names)
    return f"Python {facts['python']}, {peers}, {facts['system']}, {facts['cpu']}, {facts['memory']}."


def detail_block(results: ClientResults | None) -> str:
    """The lines of docs/benchmarks.md between its markers."""
    if results is None:
        return NOT_MEASURED
    rows = markdown_lines(comparisons(results))
    return "\n".join([machine_line(results), "", *HOW, "", *rows, *detail_lines(results)]) + "\n"


def load(path: Path | None = None) -> ClientResults | None:
    """The results of the last kept run; None if there was none."""
    path = RESULTS if path is None else path
    return ClientResults.from_json(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None


def keep(results: ClientResults) -> None:
    """Write the results and the documents."""
    RESULTS.write_text(json.dumps(results.to_json(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    write()


def write() -> None:
    """Write the documents."""
    report.DETAIL.write_text(with_block(report.DETAIL, detail_block(load()), BEGIN, END), encoding="utf-8")
    readme.write()


if __name__ == "__main__":
    write()
