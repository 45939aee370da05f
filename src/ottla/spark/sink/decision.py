"""`Decision`: what is durable about a query's last batch, one record per query in the decisions topic. Pure.

The record's key is the query's id, so compaction keeps the last one. Its value is JSON:

    {"version": 1, "batch": 7, "run": "…", "state": "decided", "time_ms": 1794885520103, "problem": "",
     "transactions": [["ottla-sink.….0", 4000, 3, 0, 1200], …]}     id, producer id, epoch, task, rows
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

VERSION = 1


class State(Enum):
    """What is known of a batch."""

    DECIDED = "decided"
    """Its transactions will be committed: by this driver, the next run, or an operator's command."""
    FINISHED = "finished"
    """All of them are committed."""
    ABORTED = "aborted"
    """It was given up before a decision. A replay writes it again."""
    BROKEN = "broken"
    """It was decided, but a part of its transactions was aborted by the cluster first."""


class HeldTransaction(NamedTuple):
    """A transaction that a task has flushed and left open."""

    transactional_id: str
    producer_id: int
    epoch: int
    task: int
    rows: int


@dataclass(frozen=True)
class Decision:
    """The state of a query's last batch."""

    query: str
    batch: int
    run: str
    """The run of the query that wrote this: one start of a streaming query."""
    state: State
    transactions: tuple[HeldTransaction, ...] = ()
    time_ms: int = 0
    problem: str = ""
    """What is missing from a broken batch."""


class Found(NamedTuple):
    """A decision and its offset: a later record of the same query has a higher one."""

    decision: Decision
    offset: int


class UnknownDecision(ValueError):
    """A record of the decisions topic that this version cannot read."""


def encode(decision: Decision) -> bytes:
    """The record's value."""
    fields = {
        "version": VERSION,
        "batch": decision.batch,
        "run": decision.run,
        "state": decision.state.value,
        "time_ms": decision.time_ms,
        "problem": decision.problem,
        "transactions": decision.transactions,
    }
    return json.dumps(fields, separators=(",", ":")).encode()


def decode(query: str, value: bytes) -> Decision:
    """The decision in a record's value. `UnknownDecision` if it is none of ours."""
    try:
        fields = json.loads(value)
        if fields["version"] != VERSION:
            raise UnknownDecision(f"the decision of query {query} has version {fields['version']}: a newer ottla wrote it")
        return Decision(
            query,
            fields["batch"],
            fields["run"],
            State(fields["state"]),
            tuple(HeldTransaction(*each) for each in fields["transactions"]),
            fields["time_ms"],
            fields["problem"],
        )
    except (ValueError, TypeError, KeyError) as problem:
        if isinstance(problem, UnknownDecision):
            raise
        raise UnknownDecision(f"the record of query {query} is no decision: {problem!r}") from None
