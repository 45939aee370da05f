"""A live line for each query on a terminal: batch, rows, rate, batch time and lag."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.spark.progress.measures import Measures

if TYPE_CHECKING:
    from rich.console import Console


def line_of(measures: Measures, rows_total: int) -> str:
    """One line: `orders · batch 12 · 48,210 rows · 4,210 rows/s · 0.41 s · lag 0`; with a lag, also that of partitions."""
    parts = [
        measures.name,
        f"batch {measures.batch_id}",
        f"{rows_total:,} rows",
        f"{measures.rows_per_second:,.0f} rows/s",
        f"{measures.batch_ms / 1000:.2f} s",
    ]
    if measures.sources:
        parts.append(f"lag {measures.lag:,}")
    if measures.lag and (numbers := measures.behind_latest) is not None:
        parts[-1] += f" (per partition {numbers.min:,} to {numbers.max:,}, average {numbers.avg:,.1f})"
    return " · ".join(parts)


class ProgressLine:
    """Lines that are rewritten in place. Where the console is no terminal, nothing is shown."""

    def __init__(self, console: Console | None = None) -> None:
        from rich.console import Console

        self._console = console or Console(stderr=True)
        self._lines: dict[str, str] = {}
        self._live: Any = None

    def show(self, measures: Measures, rows_total: int) -> None:
        """Show a query's newest measures."""
        if not self._console.is_terminal:
            return
        from rich.live import Live
        from rich.text import Text

        self._lines[measures.query_id] = line_of(measures, rows_total)
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False)
            self._live.start()
        self._live.update(Text("\n".join(self._lines.values()), overflow="ellipsis", no_wrap=True), refresh=True)

    def close(self) -> None:
        """Leave the last lines on the terminal."""
        if self._live is not None:
            self._live.stop()
            self._live = None
