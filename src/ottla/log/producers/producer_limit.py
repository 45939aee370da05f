"""ProducerLimit: how many producers the partitions of a node remember (ottla.max.producer.ids).

A producer takes about 450 bytes in every partition that it writes to, until producer.id.expiration.ms, and any client can
invent producers. At the limit the producers that have been idle the longest are forgotten, as if they had expired: when one
writes again, its batch is taken with any sequence. Never forgotten are those that wrote in the last `PROTECTED_MS`, which is
longer than clients retry a batch (delivery.timeout.ms, two minutes), and those with a transaction. So no retry is taken for a
new batch. If all are protected, the new producer is refused with THROTTLING_QUOTA_EXCEEDED, and may retry.

"Idle" is by this node's clock: the timestamps of records are the client's to choose. Growth is added up; only when it reaches
the limit are all producers counted, at most every `COUNT_MS`. One per node, on its event loop.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from itertools import islice
from typing import TYPE_CHECKING

from ottla.env import Clock
from ottla.env.repeated_lines import RepeatedLines
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode

if TYPE_CHECKING:
    from ottla.log.producers.producer_state import ProducerState

PROTECTED_MS = 300_000
COUNT_MS = 1000
FREED_SHARE = 10
"""One in so many is forgotten at once: looking at 200,000 takes 40 ms."""
SAMPLED = 10_000

SETTING = "ottla.max.producer.ids"


class ProducerLimit:
    """The limit of one node. `states` returns the producers of all its logs."""

    def __init__(self, limit: int, clock: Clock, states: Callable[[], Iterable[ProducerState]] = tuple) -> None:
        self._limit = limit
        self._lines = RepeatedLines(clock, logging.getLogger("ottla.log"))
        self._count = limit
        """At most so many producers there are. Not counted yet: the first call does it."""
        self._counted_ms = -COUNT_MS
        self.states = states

    def take(self, partition: str, producer_id: int, now_ms: int) -> None:
        """Make room for a producer that is new to `partition`; `KafkaError` if there is none."""
        if self._count >= self._limit and abs(now_ms - self._counted_ms) >= COUNT_MS:
            self._count_and_forget(now_ms)
        if self._count >= self._limit:
            text = (
                f"producer {producer_id}, new to {partition}, is refused: the partitions of this node have {self._count:,} "
                f"producers that were active in the last {PROTECTED_MS // 60_000} minutes or have a transaction open, and "
                f"{SETTING} is {self._limit:,}. Retry later, use fewer producers, or raise that setting"
            )
            self._lines.log(logging.WARNING, "refused", "%s", text)
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, text)
        self._count += 1

    def _count_and_forget(self, now_ms: int) -> None:
        """Count all producers; at the limit, forget those that have been idle the longest."""
        states = [state for state in self.states() if state.producers]
        count = sum(len(state.producers) for state in states)
        self._count, self._counted_ms = count, now_ms
        if count < self._limit:
            return
        step = 1 + count // SAMPLED  # of very many a sample will do: sorting all would take long
        entries = (entry for state in states for entry in state.producers.values())
        times = sorted([entry.seen_ms for entry in islice(entries, None, None, step)])
        wanted = count - self._limit + max(1, self._limit // FREED_SHARE)
        latest_ms = min(now_ms - PROTECTED_MS, times[min(wanted // step, len(times)) - 1] if wanted >= step else times[0])
        forgotten = sum([state.remove_idle(latest_ms) for state in states])
        if not forgotten and latest_ms < now_ms - PROTECTED_MS:  # the oldest of them have transactions
            forgotten = sum([state.remove_idle(now_ms - PROTECTED_MS) for state in states])
        self._count = count - forgotten
        if not forgotten:
            return
        self._lines.log(
            logging.WARNING,
            "forgotten",
            "%d producers, idle for %d s or longer, are forgotten: the partitions of this node had %d, and %s is %d",
            forgotten,
            (now_ms - latest_ms) // 1000,
            count,
            SETTING,
            self._limit,
        )
