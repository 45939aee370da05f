"""The exactly-once protocol: ids, the record of a decision, and what tasks and the driver do next. Pure; decision 0024.

A decision is what is durable about a query's last batch, one record per query in the decisions topic. Its key is the query's
id, so compaction keeps the last one. Its value is JSON:

    {"version": 1, "batch": 7, "run": "…", "state": "decided", "time_ms": 1794885520103, "problem": "",
     "transactions": [["ottla-sink.….0", 4000, 3, 0, 1200], …]}     id, producer id, epoch, task, rows

A driver may decide about a batch only if the query's last record is still the one that every task of the batch saw before it
wrote. So a record of any driver ends the chances of all batches that were begun before it, and what was open before the record
can be aborted after it, unless the record itself decides to commit it.

Transactional ids; `query` is the id of the streaming query, or a fresh id for a batch write:

    ottla-sink.<query>.driver              the producer that writes the query's decisions
    ottla-sink.<query>.<worker>.<number>   transactions of tasks: one Python worker's ids, numbered from 0
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
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


class StoredDecision(NamedTuple):
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


NO_RECORD = -1
"""What a task has seen if the query has no record."""
NAMES_SHOWN = 5


@dataclass(frozen=True)
class TaskResult:
    """What a task has done, for the driver."""

    query: str
    run: str
    batch: int
    task: int
    rows: int
    transaction: HeldTransaction | None
    """None: the task had no rows, or skipped them."""
    seen: int
    """The offset of the query's last record before the task wrote its first row, or NO_RECORD."""
    is_skipped: bool = False
    """Whether the batch was decided before, so that the task wrote nothing."""


# Tasks


class Write(NamedTuple):
    """Write the rows."""


class Skip(NamedTuple):
    """Write nothing: the batch is decided already."""


class Refuse(NamedTuple):
    """Fail, for this reason."""

    reason: str


def plan_task(found: StoredDecision | None, query: str, batch: int) -> Write | Skip | Refuse:
    """What a task does with its rows, by the query's last record."""
    if found is None or found.decision.batch < batch:
        return Write()
    decision = found.decision
    if decision.batch > batch:
        return Refuse(outdated(query, batch, decision.batch))
    if decision.state is State.BROKEN:
        return Refuse(broken(decision))
    return Write() if decision.state is State.ABORTED else Skip()


def is_given_up(found: StoredDecision | None, seen: int, batch: int) -> bool:
    """Whether the driver gave the batch up while the task wrote: its transaction must not stay open."""
    return (
        found is not None
        and found.offset > seen
        and found.decision.batch >= batch
        and found.decision.state in (State.ABORTED, State.BROKEN)
    )


# The driver's commit


class Decide(NamedTuple):
    """Write this decision, then commit its transactions."""

    decision: Decision


class FinishEarlier(NamedTuple):
    """The batch was decided before: commit that decision's transactions, abort those of the replay."""

    decision: Decision
    aborted: tuple[HeldTransaction, ...]


def plan_commit(
    found: StoredDecision | None, results: Sequence[TaskResult], batch: int, now_ms: int
) -> Decide | FinishEarlier | Refuse:
    """What the driver does with a batch whose tasks are all done. `results` is not empty."""
    query, run = results[0].query, results[0].run
    held = tuple(each.transaction for each in results if each.transaction is not None)
    last = None if found is None else found.decision
    if last is not None and last.batch > batch:
        return Refuse(outdated(query, batch, last.batch))
    if last is not None and last.batch == batch and last.state is State.BROKEN:
        return Refuse(broken(last))
    if last is not None and last.batch == batch and last.state in (State.DECIDED, State.FINISHED):
        return FinishEarlier(last, held)
    if any(each.is_skipped for each in results):
        return Refuse(
            f"tasks of batch {batch} of query {query} found it decided, but its decision is gone from the decisions topic: "
            "records of that topic were deleted. Start the query with a new checkpoint"
        )
    if not is_last_for(found, results):
        return Refuse(
            f"another run of query {query} has taken over since batch {batch} began: nothing of this run was committed. "
            "Stop one of the two; a restart repeats the batch"
        )
    return Decide(Decision(query, batch, run, State.DECIDED, held, now_ms))


def is_last_for(found: StoredDecision | None, results: Sequence[TaskResult]) -> bool:
    """Whether this record is the one that every task saw before it wrote."""
    return all(each.seen == (NO_RECORD if found is None else found.offset) for each in results)


def may_give_up(last: Decision, batch: int) -> bool:
    """Whether the record of an aborted batch may follow the query's last one: it must not replace a decision."""
    if last.state in (State.DECIDED, State.BROKEN):
        return False
    return last.batch < batch or (last.batch == batch and last.state is State.ABORTED)


class Look(NamedTuple):
    """A transaction as its coordinator describes it."""

    state: str
    producer_id: int
    epoch: int


def check_open(held: Sequence[HeldTransaction], looks: Mapping[str, Look | None], query: str, batch: int) -> Refuse | None:
    """Refuse to decide if a transaction is not open any more. Nothing is committed by then, so a restart repeats the batch."""
    gone = []
    for each in held:
        look = looks.get(each.transactional_id)
        if look is None or look != ("Ongoing", each.producer_id, each.epoch):
            gone.append(f"{each.transactional_id} of task {each.task} ({'unknown' if look is None else look.state})")
    if not gone:
        return None
    return Refuse(
        f"batch {batch} of query {query} was not committed: {len(gone)} of its {len(held)} transactions ended before the last "
        f"task did: {_some(gone)}. They may be open for kafka.transaction.timeout.ms: make it longer, or batches smaller. "
        "A restart repeats the batch"
    )


# After the transactions have been ended


def missing_rows(decision: Decision, aborted: Sequence[HeldTransaction], total: int) -> str:
    """What a batch lacks of which some transactions were aborted after the decision."""
    rows = sum(each.rows for each in aborted)
    names = [f"{each.transactional_id} of task {each.task}, {each.rows} rows" for each in aborted]
    return (
        f"{rows} rows are missing, because {len(aborted)} of its {total} transactions were aborted by the cluster before the "
        f"driver could commit them: {_some(names)}. The others are committed"
    )


def broken(decision: Decision) -> str:
    """The error of a batch that is half committed."""
    return (
        f"batch {decision.batch} of query {decision.query} was decided and is half committed: {decision.problem}. "
        "After a repair, or to go on without these rows: "
        f"ottla pipeline transactions --query {decision.query} --accept-loss --execute"
    )


def outdated(query: str, batch: int, last_batch: int) -> str:
    """The error of a batch that comes after a later one."""
    return (
        f"query {query} writes batch {batch}, but has committed batch {last_batch} before: this is a run that another one has "
        "overtaken, or its checkpoint is older than the topics. Stop it, or start with a new checkpoint"
    )


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return ", ".join(names[:NAMES_SHOWN]) + more
