"""What the caller of `ottla consume` asked for, once, in one place."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ottla.cli.common.offsets import EARLIEST, LATEST

METADATA_AGE_MS_MAX = 5_000


@dataclass(frozen=True, slots=True)
class ConsumeOptions:
    """Which records to read, and how long."""

    topic: str | None = None
    include: re.Pattern[str] | None = None
    """Topics that match, instead of one by name."""
    partitions: frozenset[int] | None = None
    offset: int | None = None
    """Where to begin, by offset; else `start` says."""
    start: int = LATEST
    """A place or a timestamp, in the numbers of ListOffsets."""
    reset: int = LATEST
    """Where to go on from if an offset is not there: `EARLIEST` or `LATEST`."""
    max_messages: int | None = None
    timeout_ms: int | None = None
    """Stop when so long nothing has come."""
    until_end: bool = False
    """Stop at what is the end of each partition now."""
    metadata_age_ms_max: int = METADATA_AGE_MS_MAX
    """How often to look for partitions that were added."""
    read_committed: bool = False
    skip_bad: bool = False
    fetch: FetchLimits = field(default_factory=lambda: FetchLimits())

    def __post_init__(self) -> None:
        assert self.reset in (EARLIEST, LATEST)

    @property
    def takes_new_partitions(self) -> bool:
        """Whether partitions that are added meanwhile are meant, too."""
        return self.partitions is None and not self.until_end


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """How much a broker may send at a time, and how long it may wait for it. As in Kafka's consumer."""

    min_bytes: int = 1
    max_bytes: int = 50 * 1024 * 1024
    max_wait_ms: int = 500
    partition_bytes_max: int = 1024 * 1024
