"""The exactly-once sink with brokers that serve two-phase commit (KIP-939): what is decided has no timeout any more.

A transaction with the same timeout that nobody decides about is the clock: when the cluster has aborted it, the others would be
gone too.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from tests.spark.sink.sink_work import (
    HANG_S,
    PARTITIONS,
    TASKS,
    committed,
    die_at,
    open_ids,
    options_for,
    rows_of,
    run_batch,
    run_tasks,
)

from ottla import Admin
from ottla.spark import clients
from ottla.spark.errors import SinkError
from ottla.spark.sink import commit, recovery
from ottla.spark.sink.commit import Driver
from ottla.testing import Broker

TIMEOUT = {"kafka.transaction.timeout.ms": "1000"}
SETTINGS = {
    "transaction.two.phase.commit.enable": "true",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
}
NEVER_MS = 2**31 - 1
ALL = sorted(value for task in range(TASKS) for value in rows_of(0, task))


@pytest.fixture(scope="module")
def two_phase_broker() -> Iterator[Broker]:
    """A broker that serves InitProducerId v6, and looks for overdue transactions often."""
    with Broker(SETTINGS) as broker:
        yield broker
        commit.close_ledgers()
        clients.close_all()


@pytest.fixture
def servers(two_phase_broker: Broker, query: str) -> str:
    """Its address. It has a topic with the query's name."""
    two_phase_broker.create_topic(query, partitions=PARTITIONS)
    return two_phase_broker.bootstrap_servers


@pytest.fixture
def admin(two_phase_broker: Broker) -> Iterator[Admin]:
    with Admin(two_phase_broker.bootstrap_servers) as made:
        yield made


def outlast_the_timeout(admin: Admin, servers: str, query: str) -> None:
    """Wait until the cluster has aborted an open transaction of the same timeout, which began later."""
    clock = f"{query}-clock"
    run_tasks(options_for(servers, query, **TIMEOUT), clock, "run", 0)
    await_closed(admin, clock)


def await_closed(admin: Admin, query: str) -> None:
    deadline_s = time.monotonic() + HANG_S
    while open_ids(admin, query):
        assert time.monotonic() < deadline_s, f"transactions of {query} stay open"
        time.sleep(0.05)


@pytest.mark.parametrize(("step", "left"), [("decision:written", TASKS), ("ending:first", TASKS - 1)])
def test_a_decided_batch_outlives_its_timeout(
    step: str, left: int, servers: str, query: str, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = options_for(servers, query, **TIMEOUT)
    die_at(step, monkeypatch, options, query)
    outlast_the_timeout(admin, servers, query)
    assert len(open_ids(admin, query)) == left
    run_batch(options, query, "run2", 0)
    assert sorted(committed(servers, query)) == ALL
    assert open_ids(admin, query) == []


def test_without_two_phase_commit_the_same_batch_is_lost(
    servers: str, query: str, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = options_for(servers, query, twoPhaseCommit="false", **TIMEOUT)
    die_at("decision:written", monkeypatch, options, query)
    outlast_the_timeout(admin, servers, query)
    with pytest.raises(SinkError, match="half committed"):
        run_batch(options, query, "run2", 0)


def test_what_was_not_decided_still_times_out(servers: str, query: str, admin: Admin) -> None:
    run_tasks(options_for(servers, query, **TIMEOUT), query, "run1", 0)
    await_closed(admin, query)
    assert committed(servers, query) == []


def test_a_driver_that_dies_just_before_its_decision_leaves_what_the_next_run_aborts(
    servers: str, query: str, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = options_for(servers, query, **TIMEOUT)
    die_at("commit:kept", monkeypatch, options, query)
    outlast_the_timeout(admin, servers, query)
    assert len(open_ids(admin, query)) == TASKS  # the one gap: nothing but the next run or the command ends them
    assert {each.state for each in recovery.find_lingering(options, query)} == {"undecided"}
    run_batch(options, query, "run2", 0)
    assert sorted(committed(servers, query)) == ALL
    assert open_ids(admin, query) == []


@pytest.mark.parametrize("step", ["commit:kept", "decision:written"])
def test_the_command_ends_what_has_no_timeout(
    step: str, servers: str, query: str, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = options_for(servers, query, **TIMEOUT)
    die_at(step, monkeypatch, options, query)
    if step == "commit:kept":
        recovery.abort_undecided(options, query)
    else:
        assert {each.state for each in recovery.find_lingering(options, query)} == {"decided"}
        recovery.commit_decided(options, query)
    assert open_ids(admin, query) == []
    assert sorted(committed(servers, query)) == ([] if step == "commit:kept" else ALL)


def test_an_abort_after_the_transactions_were_kept_ends_them(
    servers: str, query: str, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = options_for(servers, query, **TIMEOUT)
    die_at("commit:kept", monkeypatch, options, query)
    Driver(options).abort(query, "run1", 0)
    assert open_ids(admin, query) == []
    assert committed(servers, query) == []


def test_tasks_may_open_transactions_without_a_timeout(servers: str, query: str, admin: Admin) -> None:
    options = options_for(servers, query, twoPhaseCommit="true")
    results = run_tasks(options, query, "run1", 0)
    described = admin.describe_transactions(open_ids(admin, query)).values_found.values()
    assert [each.timeout_ms for each in described] == [NEVER_MS] * TASKS
    Driver(options).commit(results, 0)
    assert sorted(committed(servers, query)) == ALL
    run_tasks(options, query, "run1", 1)
    run_batch(options, query, "run2", 1)
    assert open_ids(admin, query) == []


def test_a_kept_transaction_survives_a_restart_of_the_broker(query: str) -> None:
    with Broker(SETTINGS) as broker:
        broker.create_topic(query, partitions=PARTITIONS)
        options = options_for(broker.bootstrap_servers, query, **TIMEOUT)
        with pytest.MonkeyPatch.context() as patched, Admin(broker.bootstrap_servers) as admin:
            die_at("decision:written", patched, options, query)
            before = commit.open_transactions(admin, query)
            broker.restart()
            outlast_the_timeout(admin, broker.bootstrap_servers, query)
            assert commit.open_transactions(admin, query) == before
            run_batch(options, query, "run2", 0)
            assert sorted(committed(broker.bootstrap_servers, query)) == ALL
        commit.close_ledgers()
        clients.close_all()


def test_a_cluster_without_two_phase_commit_is_refused_or_used_without(shared_broker: Broker, out: str, query: str) -> None:
    servers = shared_broker.bootstrap_servers
    with pytest.raises(SinkError, match=r"twoPhaseCommit=true, but the cluster does not .*version 6.*twoPhaseCommit=auto"):
        run_tasks(options_for(servers, out, twoPhaseCommit="true"), query, "run1", 0)
    run_batch(options_for(servers, out), query, "run1", 0)
    assert sorted(committed(servers, out)) == ALL
