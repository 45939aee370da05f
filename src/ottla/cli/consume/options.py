"""The options of `ottla consume`, from flags and client settings."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ottla.cli.common.offsets import EARLIEST, LATEST

METADATA_AGE_MS_MAX = 5_000


@dataclass(frozen=True, slots=True)
class ConsumeOptions:
    """Which records to read, and when to stop."""

    topic: str | None = None
    include: re.Pattern[str] | None = None
    """Read all topics that match, instead of `topic`."""
    partitions: frozenset[int] | None = None
    offset: int | None = None
    """The offset to start at; None to start at `start`."""
    start: int = LATEST
    """A place or a timestamp, as in ListOffsets."""
    reset: int = LATEST
    """Where to continue if an offset is out of range: `EARLIEST` or `LATEST`."""
    max_messages: int | None = None
    timeout_ms: int | None = None
    """Stop when no record has arrived for this long."""
    until_end: bool = False
    """Stop at the end that each partition had at the start."""
    metadata_age_ms_max: int = METADATA_AGE_MS_MAX
    """How often to look for new partitions."""
    read_committed: bool = False
    skip_bad: bool = False
    fetch: FetchLimits = field(default_factory=lambda: FetchLimits())

    def __post_init__(self) -> None:
        assert self.reset in (EARLIEST, LATEST)

    @property
    def takes_new_partitions(self) -> bool:
        """Whether to read partitions that are added later."""
        return self.partitions is None and not self.until_end


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Limits of a fetch request, with the defaults of Kafka's consumer."""

    min_bytes: int = 1
    max_bytes: int = 50 * 1024 * 1024
    max_wait_ms: int = 500
    partition_bytes_max: int = 1024 * 1024
