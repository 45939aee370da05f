"""How numbers, sizes and times are written on pages: filters of the templates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from markupsafe import Markup


def count(value: float | None) -> str:
    """`12,345`; an en dash for nothing."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:,.1f}"


def short(value: float | None) -> str:
    """`12.3k`."""
    if value is None:
        return "–"
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:.3g}{unit}"
    return count(value)


def size(value: float | None) -> str:
    """`1.2 GB`."""
    if value is None:
        return "–"
    for limit, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= limit:
            return f"{value / limit:.3g} {unit}"
    return f"{value:.0f} B"


def duration(seconds: float | None) -> str:
    """`3 min 20 s`."""
    if seconds is None:
        return "–"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{int(seconds // 60)} min {int(seconds % 60)} s"
    if seconds < 86400:
        return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60)} min"
    return f"{int(seconds // 86400)} d {int(seconds % 86400 // 3600)} h"


def moment(ms: int | None) -> str:
    """`2026-11-19 05:12:31.250 UTC`."""
    if ms is None or ms < 0:
        return "–"
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + " UTC"


def segment(value: object) -> str:
    """A name as one segment of a path."""
    return quote(str(value), safe="")


def sparkline(values: Sequence[float], width: int = 120, height: int = 28) -> Markup:
    """A small chart as SVG."""
    if len(values) < 2:
        return Markup("")
    top = max(values) or 1.0
    step = width / (len(values) - 1)
    points = " ".join(f"{index * step:.1f},{height - 2 - (height - 4) * each / top:.1f}" for index, each in enumerate(values))
    return Markup(
        f'<svg class="spark" viewBox="0 0 {width} {height}" width="{width}" height="{height}" aria-hidden="true">'
        f'<polyline points="{points}"/></svg>'
    )


FILTERS: dict[str, Callable[..., Any]] = {
    "count": count,
    "short": short,
    "size": size,
    "duration": duration,
    "moment": moment,
    "segment": segment,
    "sparkline": sparkline,
}
