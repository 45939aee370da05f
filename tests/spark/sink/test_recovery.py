"""Transactions that pipelines left behind: found with what is known of them, and ended by an operator."""

from __future__ import annotations

import pytest
from tests.spark.sink.sink_work import ROWS, TASKS, committed, die_at, open_ids, run_batch, run_tasks

from ottla import Admin
from ottla.client.admin.transactions import TransactionDescription
from ottla.spark import clients
from ottla.spark.errors import SinkError
from ottla.spark.sink import recovery
from ottla.spark.sink.commit import abort_all, ledger_of, open_transactions
from ottla.spark.sink.options import SinkOptions
from ottla.spark.sink.protocol import Decision, HeldTransaction, State, StoredDecision, driver_id, task_id
from ottla.spark.sink.recovery import Lingering, find_lingering, join_rows
from ottla.testing import Broker


def test_rows_join_open_transactions_with_decisions() -> None:
    def described(producer_id: int, epoch: int) -> TransactionDescription:
        return TransactionDescription(1, "Ongoing", producer_id, epoch, 1000, 500, ())

    opened = {
        task_id("a", "w", 0): described(1, 0),
        task_id("a", "w", 1): described(2, 0),
        task_id("b", "w", 0): described(3, 0),
        driver_id("b"): described(4, 0),
        "payments": described(5, 0),
    }
    held = (HeldTransaction(task_id("a", "w", 1), 2, 0, 8, 100), HeldTransaction(task_id("a", "w", 0), 1, 1, 9, 100))
    decisions = {
        "a": StoredDecision(Decision("a", 7, "run", State.DECIDED, held), 1),
        "c": StoredDecision(Decision("c", 3, "run", State.BROKEN, (), 400), 2),
        "d": StoredDecision(Decision("d", 3, "run", State.FINISHED), 3),
    }
    assert join_rows(opened, decisions) == [
        Lingering("a", 7, 8, "decided", task_id("a", "w", 1), 500),
        Lingering("a", None, None, "undecided", task_id("a", "w", 0), 500),  # another epoch than the decided one
        Lingering("b", None, None, "undecided", task_id("b", "w", 0), 500),
        Lingering("c", 3, None, "broken", None, 400),
    ]


def test_a_decided_batch_is_committed_and_never_aborted_by_accident(
    shared_broker: Broker, options: SinkOptions, out: str, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    die_at("decision:written", monkeypatch, options, query)
    assert [(each.batch, each.task, each.state) for each in find_lingering(options, query)] == [
        (0, task, "decided") for task in range(TASKS)
    ]
    with pytest.raises(SinkError, match="is decided: its transactions are to be committed"):
        recovery.abort_undecided(options, query)
    recovery.commit_decided(options, query)
    assert len(committed(shared_broker.bootstrap_servers, out)) == TASKS * ROWS
    assert find_lingering(options, query) == []
    with pytest.raises(SinkError, match="has no decided batch"):
        recovery.commit_decided(options, query)


def test_a_decided_batch_can_be_aborted_while_nothing_of_it_is_committed(
    shared_broker: Broker, options: SinkOptions, out: str, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    die_at("decision:written", monkeypatch, options, query)
    recovery.abort_undecided(options, query, even_decided=True)
    assert committed(shared_broker.bootstrap_servers, out) == []
    assert find_lingering(options, query) == []
    run_batch(options, query, "run2", 0)
    assert len(committed(shared_broker.bootstrap_servers, out)) == TASKS * ROWS


def test_a_half_committed_batch_cannot_be_aborted(options: SinkOptions, query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    die_at("ending:all", monkeypatch, options, query)
    assert [each.state for each in find_lingering(options, query)] == ["decided"]
    with pytest.raises(SinkError, match=r"cannot be aborted: 3 of its 3 transactions have ended already"):
        recovery.abort_undecided(options, query, even_decided=True)
    recovery.commit_decided(options, query)


def test_undecided_transactions_are_aborted_and_the_batch_can_be_replayed(
    shared_broker: Broker, options: SinkOptions, out: str, query: str, admin: Admin
) -> None:
    run_batch(options, query, "run1", 0)
    run_tasks(options, query, "run1", 1)
    assert [each.state for each in find_lingering(options, query)] == ["undecided"] * TASKS
    with pytest.raises(SinkError, match="no decided batch"):
        recovery.commit_decided(options, query)
    recovery.abort_undecided(options, query)
    assert open_ids(admin, query) == []
    run_batch(options, query, "run2", 1)
    assert len(committed(shared_broker.bootstrap_servers, out)) == 2 * TASKS * ROWS


def test_a_query_goes_on_after_its_loss_is_accepted(
    shared_broker: Broker, options: SinkOptions, out: str, query: str, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    die_at("decision:written", monkeypatch, options, query)
    abort_all(clients.producer(options.client_without_transactions), open_transactions(admin, query)[:1])
    with pytest.raises(SinkError, match="half committed"):
        run_batch(options, query, "run2", 0)
    assert [each.state for each in find_lingering(options, query)] == ["broken"]
    recovery.accept_loss(options, query)
    run_batch(options, query, "run3", 0)
    run_batch(options, query, "run3", 1)
    assert len(committed(shared_broker.bootstrap_servers, out)) == (2 * TASKS - 1) * ROWS
    found = ledger_of(options).read(query)
    assert found is not None
    assert found.decision.batch == 1
    with pytest.raises(SinkError, match="no loss to accept"):
        recovery.accept_loss(options, query)
