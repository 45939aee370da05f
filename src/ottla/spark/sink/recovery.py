"""Transactions that a pipeline left behind and will not come back for: found, committed or aborted by an operator.

Every change takes the query's fence first, like a driver does. So a query that is still running fails loudly, and repeats its
batch when it is started again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from ottla.client.admin.transactions import TransactionDescription
from ottla.spark import clients
from ottla.spark.errors import SinkError
from ottla.spark.sink import commit
from ottla.spark.sink.commit import Driver, ledger_of, now_ms
from ottla.spark.sink.ledger import Fence, admin_of
from ottla.spark.sink.options import SinkOptions
from ottla.spark.sink.protocol import DRIVER, State, StoredDecision, broken, parse_id

UNDECIDED = "undecided"


class Lingering(NamedTuple):
    """An open transaction of a sink, or a batch that is not finished and has none open."""

    query: str
    batch: int | None
    """None: its driver had not decided about it, so only its task knew."""
    task: int | None
    state: str
    """`undecided`, `decided` or `broken`."""
    transactional_id: str | None
    began_ms: int | None


def join_rows(opened: Mapping[str, TransactionDescription], decisions: Mapping[str, StoredDecision]) -> list[Lingering]:
    """Open transactions and unfinished batches, sorted by query. Pure."""
    rows = []
    for name, described in opened.items():
        parts = parse_id(name)
        if parts is None or parts.worker == DRIVER:
            continue
        found = decisions.get(parts.query)
        held = None
        if found is not None and found.decision.state in (State.DECIDED, State.BROKEN):
            identity = name, described.producer_id, described.producer_epoch
            held = next((each for each in found.decision.transactions if each[:3] == identity), None)
        if found is None or held is None:
            rows.append(Lingering(parts.query, None, None, UNDECIDED, name, described.start))
        else:
            decision = found.decision
            rows.append(Lingering(parts.query, decision.batch, held.task, decision.state.value, name, described.start))
    with_rows = {each.query for each in rows if each.state != UNDECIDED}
    for query, found in decisions.items():
        decision = found.decision
        if decision.state in (State.DECIDED, State.BROKEN) and query not in with_rows:
            rows.append(Lingering(query, decision.batch, None, decision.state.value, None, decision.time_ms))
    return sorted(
        rows, key=lambda each: (each.query, each.batch is None, each.batch or 0, each.task or 0, each.transactional_id or "")
    )


def find_lingering(options: SinkOptions, query: str | None = None) -> list[Lingering]:
    """What the sinks of a cluster have left open, of one query or of all."""
    admin = admin_of(options.client)
    listed = [each.transactional_id for each in admin.list_transactions(states=["Ongoing"])]
    ours = [name for name in listed if (parts := parse_id(name)) is not None and query in (None, parts.query)]
    described = admin.describe_transactions(ours) if ours else None
    opened = (
        {} if described is None else {name: each for name, each in described.values_found.items() if each.start is not None}
    )
    decisions = ledger_of(options).read_all()
    return [each for each in join_rows(opened, decisions) if query in (None, each.query)]


def commit_decided(options: SinkOptions, query: str) -> None:
    """Finish a query's decided batch, as its next run would."""
    fence = Fence(ledger_of(options), query)
    try:
        found = fence.found
        if found is None or found.decision.state is not State.DECIDED:
            raise SinkError(
                f"query {query} has no decided batch that is unfinished: its driver had not decided to commit what is open, so "
                "a part of the batch may be missing. Abort it, and a restart of the query repeats the batch"
            )
        Driver(options).finish(fence, found.decision)
    finally:
        fence.close()


def abort_undecided(options: SinkOptions, query: str, *, even_decided: bool = False) -> None:
    """Abort a query's open transactions. A decided batch is refused, unless asked for and none of it is committed."""
    fence = Fence(ledger_of(options), query)
    try:
        found = fence.found
        if found is not None and found.decision.state is State.DECIDED:
            _undecide(options, fence, found, even_decided)
            return
        if found is not None and found.decision.state is State.BROKEN:
            raise SinkError(broken(found.decision))
        batch = 0 if found is None else found.decision.batch + (found.decision.state is not State.ABORTED)
        Driver(options).give_up(fence, query, "", batch)
    finally:
        fence.close()


def _undecide(options: SinkOptions, fence: Fence, found: StoredDecision, even_decided: bool) -> None:
    decision = found.decision
    name = f"batch {decision.batch} of query {decision.query}"
    if not even_decided:
        raise SinkError(
            f"{name} is decided: its transactions are to be committed, with --commit or by the next run. To abort it all the "
            "same, add --even-decided; a restart then writes the batch again"
        )
    looks = commit.look_at(admin_of(options.client), decision.transactions)
    done = [each for each in decision.transactions if (look := looks[each.transactional_id]) is None or look.state != "Ongoing"]
    if done:
        raise SinkError(
            f"{name} cannot be aborted: {len(done)} of its {len(decision.transactions)} transactions have ended already, so a "
            "replay would double their rows. Use --commit"
        )
    opened = commit.open_transactions(admin_of(options.client), decision.query)
    fence.write(replace(decision, state=State.ABORTED, transactions=(), run="", time_ms=now_ms()))
    commit.abort_all(clients.producer(options.client_without_transactions), opened)


def accept_loss(options: SinkOptions, query: str) -> None:
    """Let a query go on after a batch that is half committed, without the missing rows."""
    fence = Fence(ledger_of(options), query)
    try:
        found = fence.found
        if found is None or found.decision.state is not State.BROKEN:
            raise SinkError(f"query {query} has no batch that is half committed: there is no loss to accept")
        fence.write(replace(found.decision, state=State.FINISHED, transactions=(), run="", time_ms=now_ms()))
    finally:
        fence.close()
