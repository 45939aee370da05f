"""The settings that the machines of a consumer read: a part of `ConsumerSettings`, named for what they need."""

from __future__ import annotations

from typing import Protocol


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
