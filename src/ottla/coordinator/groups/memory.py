"""MemberMemory: the limit on the memory that the members of all groups of a node take together.

A member is kept for its whole session, with the subscription that it sent, and a client can create any number of members with
megabytes each. Beyond the limit no member may join or grow until sessions have expired. Clients get COORDINATOR_NOT_AVAILABLE,
which is retriable, since the condition is the coordinator's and passes.

Memory is not tracked on every change. Growth is added up; when the sum reaches the limit, all members are counted again, at
most every `RECOUNT_MS`.
"""

from __future__ import annotations

from collections.abc import Callable
from sys import getsizeof

from ottla.coordinator.contract import Instant
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode

MEMBER_BYTES = 3000
"""The memory of a member with an empty subscription, including its timer and a group of its own."""
PARTITION_BYTES = 200
"""The memory of one partition that is assigned to a member."""
UNLIMITED_BYTES = 1 << 62
RECOUNT_MS = 2000


def size_of(*parts: str | bytes | None) -> int:
    """The memory of texts and bytes, in bytes."""
    return sum(getsizeof(part) for part in parts if part is not None)


class MemberMemory:
    """The member memory of one node, shared by its shards. `count` returns what all members take now."""

    __slots__ = ("_count", "_counted_ms", "_used_bytes", "limit_bytes")

    def __init__(self, limit_bytes: int = UNLIMITED_BYTES, count: Callable[[], int] = lambda: 0) -> None:
        self.limit_bytes = limit_bytes
        self._count = count
        self._counted_ms: int | None = None
        self._used_bytes = limit_bytes  # unknown yet: the first `take` counts

    def take(self, more_bytes: int, group_id: str, now: Instant) -> None:
        """Reserve `more_bytes` for a member. Raises COORDINATOR_NOT_AVAILABLE, and reserves nothing, beyond the limit."""
        if more_bytes <= 0:
            return
        if self._used_bytes + more_bytes > self.limit_bytes:
            if self._counted_ms is None or now.steady_ms >= self._counted_ms + RECOUNT_MS:
                self._used_bytes, self._counted_ms = self._count(), now.steady_ms
            if self._used_bytes + more_bytes > self.limit_bytes:
                raise KafkaError(
                    ErrorCode.COORDINATOR_NOT_AVAILABLE,
                    f"a member of group {group_id} wants {more_bytes} bytes, and the members of all groups have "
                    f"{self._used_bytes} of {self.limit_bytes} (half of what requests may take: queued.max.request.bytes): "
                    "it has to wait until others are gone",
                )
        self._used_bytes += more_bytes
