"""Transactional ids of the exactly-once sink: how they are written and read. Pure.

    ottla-sink.<query>.driver              the producer that writes the query's decisions
    ottla-sink.<query>.<worker>.<number>   transactions of tasks: one Python worker's ids, numbered from 0

`query` is the id of the streaming query, or a fresh id for a batch write. Everything that a query may leave open begins with
`query_prefix(query)`.
"""

from __future__ import annotations

import secrets
from typing import NamedTuple

PREFIX = "ottla-sink."
DRIVER = "driver"
QUERIES_MAX = 1000


class SinkId(NamedTuple):
    """A transactional id of a sink, in its parts."""

    query: str
    worker: str
    """`driver` for the one that writes decisions."""
    number: int


def query_prefix(query: str) -> str:
    """What every transactional id of a query begins with."""
    return f"{PREFIX}{query}."


def driver_id(query: str) -> str:
    """The transactional id under which a query's decisions are written."""
    return f"{PREFIX}{query}.{DRIVER}"


def task_id(query: str, worker: str, number: int) -> str:
    """A transactional id of a task."""
    return f"{PREFIX}{query}.{worker}.{number}"


def parse_id(transactional_id: str) -> SinkId | None:
    """The parts of an id, or None if no sink has made it."""
    if not transactional_id.startswith(PREFIX):
        return None
    parts = transactional_id[len(PREFIX) :].split(".")
    if len(parts) == 2 and parts[1] == DRIVER:
        return SinkId(parts[0], DRIVER, 0)
    if len(parts) == 3 and parts[2].isdecimal():
        return SinkId(parts[0], parts[1], int(parts[2]))
    return None


class IdPool:
    """The transactional ids of one Python worker.

    Brokers remember a transactional id for a week, so ids are used again, by one rule: only for a later batch of the same
    query. A later batch exists only if every transaction of the earlier one has ended as decided. So taking an id, which aborts
    what is open under it, never touches a decided transaction. No other process uses this worker's ids.
    """

    def __init__(self, worker: str = "") -> None:
        self._worker = worker or secrets.token_hex(6)
        self._last_batches: dict[str, list[int]] = {}
        """For each query, the batch that used each of its ids last."""

    def take(self, query: str, batch: int) -> str:
        """An id for a task of this batch."""
        if query not in self._last_batches and len(self._last_batches) >= QUERIES_MAX:
            # Forgotten ids must not be made again.
            self._last_batches.clear()
            self._worker = secrets.token_hex(6)
        used = self._last_batches.setdefault(query, [])
        for number, last in enumerate(used):
            if last < batch:
                used[number] = batch
                return task_id(query, self._worker, number)
        used.append(batch)
        return task_id(query, self._worker, len(used) - 1)
