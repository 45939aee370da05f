"""The settings that the machines of a consumer read: a part of `ConsumerSettings`, named for what they need."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class FetchSettings(Protocol):
    """What fetches depend on."""

    @property
    def fetch_min_bytes(self) -> int: ...
    @property
    def fetch_max_bytes(self) -> int: ...
    @property
    def fetch_max_wait_ms(self) -> int: ...
    @property
    def max_partition_fetch_bytes(self) -> int: ...
    @property
    def check_crcs(self) -> bool: ...
    @property
    def isolation_level(self) -> str: ...
    @property
    def client_rack(self) -> str: ...
    @property
    def metadata_max_age_ms(self) -> int: ...
    @property
    def request_timeout_ms(self) -> int: ...
    @property
    def retry_backoff_ms(self) -> int: ...
    @property
    def retry_backoff_max_ms(self) -> int: ...


class OffsetSettings(Protocol):
    """What the search for offsets depends on."""

    @property
    def isolation_level(self) -> str: ...
    @property
    def request_timeout_ms(self) -> int: ...
    @property
    def retry_backoff_ms(self) -> int: ...
    @property
    def retry_backoff_max_ms(self) -> int: ...


READ_COMMITTED = "read_committed"


def isolation_code(settings: FetchSettings | OffsetSettings) -> int:
    """The number of `isolation.level` on the wire."""
    return 1 if settings.isolation_level == READ_COMMITTED else 0


# What to do about a partition without a valid position: `auto.offset.reset`.

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
