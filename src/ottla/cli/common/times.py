"""Moments as people write and read them: milliseconds since 1970, ISO 8601, or a duration before now."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import click

_DURATION = re.compile(r"(\d+)(ms|s|m|h|d)")
_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def parse_time_ms(text: str, flag: str, now_ms: int | None = None) -> int:
    """Milliseconds since 1970. A time without a zone is this machine's; a duration counts back from now."""
    if text.isascii() and text.isdigit():
        return int(text)
    duration_ms = parse_duration_ms(text)
    if duration_ms is not None:
        return (current_ms() if now_ms is None else now_ms) - duration_ms
    try:
        return round(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise click.UsageError(
            f"{flag} does not understand {text!r}: give milliseconds since 1970, a time such as 2026-01-31T12:00 or "
            "2026-01-31T12:00Z, or a duration before now such as 90s, 30m, 1h30m or 7d"
        ) from None


def parse_duration_ms(text: str) -> int | None:
    """`90s`, `1h30m`; None for what is no duration."""
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return sum(int(number) * _UNIT_MS[unit] for number, unit in parts)


def current_ms() -> int:
    """Milliseconds since 1970, by this machine's clock."""
    return int(datetime.now(UTC).timestamp() * 1000)


def show_time(timestamp_ms: int) -> str:
    """A timestamp for people, in UTC so that it reads the same everywhere; `-` for none."""
    if timestamp_ms < 0:
        return "-"
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)
    return moment.strftime("%Y-%m-%d %H:%M:%S.") + f"{timestamp_ms % 1000:03d}"
