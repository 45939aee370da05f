"""`python -m ottla.sim.histories FILE [--unfinished]`: checks a history that was written with `History.to_lines`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ottla.sim.histories.checks import check
from ottla.sim.histories.history import History


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m ottla.sim.histories", description="Check a history of Kafka clients.")
    parser.add_argument("file", type=Path, help="the history: a line of JSON for each event")
    parser.add_argument("--unfinished", action="store_true", help="consumers had no time to read everything")
    chosen = parser.parse_args(arguments)
    try:
        history = History.from_lines(chosen.file.read_text().splitlines())
    except (OSError, ValueError, KeyError, TypeError) as failure:
        sys.stderr.write(f"{chosen.file} is not a history: {failure!r}. Write one with History.to_lines\n")
        return 2
    report = check(history, is_read_whole=not chosen.unfinished)
    sys.stdout.write("\n".join(report.lines) + "\n")
    return 1 if report.findings else 0


if __name__ == "__main__":
    raise SystemExit(main())
