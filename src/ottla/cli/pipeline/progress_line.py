"""The live line of a run: rows per second, batch time and lag of each flow, redrawn in place on a terminal."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ottla.cli.common.escaping import escape
from ottla.cli.common.output import fit, print_json, say
from ottla.spark.pipelines.progress import FlowProgress

LOG_INTERVAL_S = 10.0
"""The time between two lines in a file or pipe."""
_SEPARATOR = "  │  "


@contextmanager
def make_reporter(as_json: bool) -> Iterator[Callable[[FlowProgress], None]]:
    """A function to call with each batch: prints JSON lines, redraws a line, or prints one now and then where lines stay."""
    if as_json:
        yield lambda progress: print_json(progress.as_json())
        return
    latest: dict[str, FlowProgress] = {}
    if not sys.stderr.isatty():
        yield _occasional(latest)
        return

    def redraw(progress: FlowProgress) -> None:
        latest[progress.flow] = progress
        width = shutil.get_terminal_size().columns
        sys.stderr.write(f"\r\x1b[K{fit(line_of([*latest.values()]), width - 1)}")
        sys.stderr.flush()

    try:
        yield redraw
    finally:
        if latest:
            sys.stderr.write("\n")
            sys.stderr.flush()


def _occasional(latest: dict[str, FlowProgress]) -> Callable[[FlowProgress], None]:
    printed_s = time.monotonic()

    def report(progress: FlowProgress) -> None:
        nonlocal printed_s
        latest[progress.flow] = progress
        if time.monotonic() - printed_s >= LOG_INTERVAL_S:
            printed_s = time.monotonic()
            say(line_of([*latest.values()]), err=True)

    return report


def line_of(flows: list[FlowProgress]) -> str:
    """The numbers of all flows in one line, the latest batch of each."""
    return _SEPARATOR.join(text_of(each) for each in flows)


def text_of(progress: FlowProgress) -> str:
    """The numbers of one flow."""
    lag = "" if progress.lag is None else f", lag {progress.lag:,}"
    batch = f"batch {progress.batch} in {progress.batch_ms / 1000:.1f} s"
    return f"{escape(progress.flow)}: {progress.rows_per_s:,.0f} rows/s, {batch}{lag}"
