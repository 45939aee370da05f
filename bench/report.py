"""`make bench`: runs the micro-benchmarks one after the other and puts their figures into the README.

    python -m bench.report [--check]

Every figure in the README's block comes from here, in one run on one machine. `--check` prints the block and changes nothing.
"""

import json
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"


def run(module: str) -> Any:
    """What a benchmark measured. Its exit code says whether it met its goal, which the figures show anyway."""
    print(f"{module} …", file=sys.stderr, flush=True)
    done = subprocess.run([sys.executable, "-m", module, "--json"], cwd=ROOT, capture_output=True, text=True, check=False)
    try:
        return json.loads(done.stdout)
    except ValueError:
        sys.exit(f"{module} gave no figures:\n{done.stderr}")


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
        f"A partition log with batches of {size}, beside what the machine's page cache takes and gives (`bench/log_bench.py`):",
        "",
        *table(["", "MB/s"], rows),
        *table(["", "ratio"], ratios),
    ]


def block() -> str:
    lines = [f"Python {platform.python_version()} on {platform.system()}, {platform.machine()}.", ""]
    lines += wire_lines(run("bench.wire_bench"))
    lines += records_lines(run("bench.records_bench"))
    lines += log_lines(run("bench.log_bench"))
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    measured = block()
    print(measured)
    if "--check" in sys.argv[1:]:
        return
    text = README.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    if not rest or not after:
        sys.exit(f"{README} has no {BEGIN} … {END} to put the figures between")
    README.write_text(f"{before}{BEGIN}\n{measured}{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
