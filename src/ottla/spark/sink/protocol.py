"""What tasks and the driver do next, as functions of what they have read. Pure; `docs/decisions/0024` has the protocol.

A driver may decide about a batch only if the query's last record is still the one that every task of the batch saw before it
wrote. So a record of any driver ends the chances of all batches that were begun before it, and what was open before the record
can be aborted after it, unless the record itself decides to commit it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ottla.spark.sink.decision import Decision, Found, HeldTransaction, State

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


def plan_task(found: Found | None, query: str, batch: int) -> Write | Skip | Refuse:
    """What a task does with its rows, by the query's last record."""
    if found is None or found.decision.batch < batch:
        return Write()
    decision = found.decision
    if decision.batch > batch:
        return Refuse(outdated(query, batch, decision.batch))
    if decision.state is State.BROKEN:
        return Refuse(broken(decision))
    return Write() if decision.state is State.ABORTED else Skip()


def is_given_up(found: Found | None, seen: int, batch: int) -> bool:
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


def plan_commit(found: Found | None, results: Sequence[TaskResult], batch: int, now_ms: int) -> Decide | FinishEarlier | Refuse:
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


def is_last_for(found: Found | None, results: Sequence[TaskResult]) -> bool:
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
