"""What to do about a partition without a valid position: `auto.offset.reset`."""

from __future__ import annotations

from typing import NamedTuple, Protocol

EARLIEST_TIMESTAMP = -2
LATEST_TIMESTAMP = -1


class Reset(NamedTuple):
    """Where a partition starts: `kind` is earliest, latest, none, by_duration or time."""

    kind: str
    ms: int = 0
    """How far back by_duration goes; the timestamp of time."""

    def timestamp(self, wall_ms: int) -> int:
        """The timestamp that ListOffsets is asked for at the time `wall_ms`."""
        if self.kind == "earliest":
            return EARLIEST_TIMESTAMP
        if self.kind == "latest":
            return LATEST_TIMESTAMP
        return max(0, wall_ms - self.ms) if self.kind == "by_duration" else self.ms

    def __str__(self) -> str:
        return f"{self.kind}:{self.ms} ms" if self.kind in ("by_duration", "time") else self.kind


EARLIEST = Reset("earliest")
LATEST = Reset("latest")
NO_RESET = Reset("none")


class ResetSettings(Protocol):
    """The settings that name a strategy."""

    @property
    def auto_offset_reset(self) -> str: ...
    @property
    def auto_offset_reset_duration_ms(self) -> int | None: ...


def reset_of(settings: ResetSettings) -> Reset:
    """The strategy that `auto.offset.reset` names."""
    return Reset(settings.auto_offset_reset, settings.auto_offset_reset_duration_ms or 0)
