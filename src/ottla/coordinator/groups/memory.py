"""How much memory the members of all groups of a node may take together, whoever they are.

A member is kept for as long as its session lasts, with whatever it said when it joined, and a client can make up as many as it
likes, each with a subscription of megabytes. Beyond the limit nobody is let in, and nobody who is in may grow, until sessions
have ended. It is the coordinator's trouble, not the group's, and it passes: so clients are told to try again.

Nothing is kept in step with every change of every group. What is let in is added up, and when that comes to the limit, what is
really there is counted: not more often than `RECOUNT_MS`, as long as that finds too much.
"""

from __future__ import annotations

from collections.abc import Callable
from sys import getsizeof

from ottla.coordinator.contract import Instant
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode

MEMBER_BYTES = 3000
"""What a member takes that says next to nothing, with its timer and a group of its own."""
PARTITION_BYTES = 200
"""What it takes to know that a member holds a partition, or is meant to."""
UNLIMITED_BYTES = 1 << 62
RECOUNT_MS = 2000


def size_of(*parts: str | bytes | None) -> int:
    """What texts and bytes take, together."""
    return sum(getsizeof(part) for part in parts if part is not None)


class MemberMemory:
    """One node's, shared by its shards. `count` tells what all members take now."""

    __slots__ = ("_count", "_counted_ms", "_used_bytes", "limit_bytes")

    def __init__(self, limit_bytes: int = UNLIMITED_BYTES, count: Callable[[], int] = lambda: 0) -> None:
        self.limit_bytes = limit_bytes
        self._count = count
        self._counted_ms: int | None = None
        self._used_bytes = limit_bytes  # not known yet: the first that asks has it counted

    def take(self, more_bytes: int, group_id: str, now: Instant) -> None:
        """Let a member take so much more. COORDINATOR_NOT_AVAILABLE if there is no more: nothing is changed then."""
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
