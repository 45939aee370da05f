"""A progress bar on standard error, for a person at a terminal."""

from __future__ import annotations

import shutil
import sys

REDRAW_S = 0.2
BAR_CELLS = 16
_FULL, _EMPTY = "━", "╌"


class ProgressBar:
    """Redraws one line; shows nothing unless standard error is a terminal and `is_wanted`."""

    def __init__(self, count: int, is_wanted: bool, start_s: float) -> None:
        self._count = count
        self._is_shown = is_wanted and sys.stderr.isatty()
        self._start_s = self._drawn_s = start_s
        self._has_line = False

    def show(self, done: int, size_bytes: int, now_s: float) -> None:
        """Draw, unless it was drawn a moment ago."""
        if not self._is_shown or now_s - self._drawn_s < REDRAW_S:
            return
        self._drawn_s = now_s
        line = bar_line(done, self._count, size_bytes, now_s - self._start_s)
        sys.stderr.write(f"\r{line[: shutil.get_terminal_size().columns - 1]}\x1b[K")
        sys.stderr.flush()
        self._has_line = True

    def clear(self) -> None:
        """Remove the bar: something else is printed next."""
        if self._has_line:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._has_line = False


def bar_line(done: int, count: int, size_bytes: int, seconds: float) -> str:
    """The text of the bar."""
    share = min(1.0, done / count) if count > 0 else 1.0
    full = int(share * BAR_CELLS)
    rates = f"{done / seconds:,.0f} records/s  {size_bytes / seconds / 1024 / 1024:,.1f} MB/s" if seconds > 0 else ""
    return f"{_FULL * full}{_EMPTY * (BAR_CELLS - full)} {share:4.0%}  {done:,} of {count:,}  {rates}"
