"""The options of `ottla consume`, from flags and client settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ottla.cli.common.offsets import EARLIEST, LATEST

METADATA_AGE_MS_MAX = 5_000


@dataclass(frozen=True, slots=True)
class ConsumeOptions:
    """Which records to read, and when to stop."""

    topics: tuple[str, ...] = ()
    include: re.Pattern[str] | None = None
    """Read all topics that match, too."""
    group: str | None = None
    """The consumer group to read as a member of; None to read without one."""
    partitions: frozenset[int] | None = None
    offset: int | None = None
    """The offset to start at; None to start at `start`."""
    start: int = LATEST
    """A place or a timestamp, as in ListOffsets."""
    reset: int = LATEST
    """Where to start instead if there is no such offset: `EARLIEST` or `LATEST`."""
    max_messages: int | None = None
    timeout_ms: int | None = None
    """Stop when no record has arrived for this long."""
    until_end: bool = False
    """Stop at the end that each partition had at the start."""
    metadata_age_ms_max: int = METADATA_AGE_MS_MAX
    """How often to look for new partitions."""
    read_committed: bool = False
    skip_bad: bool = False
    client: Mapping[str, Any] = field(default_factory=dict)
    """The settings of the consumer, by Kafka's names."""
    login: Mapping[str, Any] = field(default_factory=dict)
    """User name and password, or token, as keywords of the consumer."""

    def __post_init__(self) -> None:
        assert self.reset in (EARLIEST, LATEST)

    @property
    def takes_new_partitions(self) -> bool:
        """Whether to read partitions that are added later."""
        return self.partitions is None and not self.until_end

    @property
    def subscription(self) -> list[str] | re.Pattern[str]:
        """What to subscribe to: names, or one pattern for names and `include`."""
        if self.include is None:
            return list(self.topics)
        return re.compile("|".join([*map(re.escape, self.topics), f"(?:{self.include.pattern})"]))
