"""Times as verbs read and print them. One rule for all options: a time without an offset is UTC.

What is printed (`2026-01-31T12:00:00.000Z`) can be given back to every option that takes a time.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import click

from ottla.config.values import parse_duration_ms

TIME_HELP = (
    "a time such as 2026-01-31T12:00, UTC unless it has an offset (Z, +01:00), milliseconds since 1970, "
    "or a duration before now such as 30m"
)
"""What every option that takes a time says in its help."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_time_ms(text: str, flag: str, now_ms: int | None = None) -> int:
    """Milliseconds since 1970, never negative: in ListOffsets negative numbers mean places such as the end of a log."""
    if text.isascii() and text.isdigit():
        return int(text)
    duration_ms = parse_duration_ms(text)
    if duration_ms is not None:
        return max(0, (current_ms() if now_ms is None else now_ms) - duration_ms)
    try:
        moment = datetime.fromisoformat(text)
        # Integer arithmetic: a float could turn a time that show_time printed into the neighbouring millisecond.
        since_epoch = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH
    except (ValueError, OverflowError):
        raise click.UsageError(f"{flag} does not understand {text!r}: give {TIME_HELP}, 90s, 1h30m or 7d") from None
    return max(0, since_epoch // timedelta(milliseconds=1))


def current_ms() -> int:
    """Milliseconds since 1970, by this machine's clock."""
    return int(datetime.now(UTC).timestamp() * 1000)


def show_time(timestamp_ms: object) -> str:
    """A timestamp in the format that options read; `-` for none."""
    if not isinstance(timestamp_ms, int) or timestamp_ms < 0:
        return "-"
    try:
        moment = _EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return str(timestamp_ms)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{timestamp_ms % 1000:03d}Z"
