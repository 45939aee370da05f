"""The driver's commits and aborts against a broker: replays, drivers that race, orphans, timeouts."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from tests.spark.sink.sink_work import (
    HANG_S,
    PARTITIONS,
    ROWS,
    TASKS,
    committed,
    open_ids,
    options_for,
    rows_of,
    run_batch,
    run_tasks,
    visible,
)

from ottla import Admin, Producer
from ottla.errors import KafkaError, TimeoutError
from ottla.spark import clients
from ottla.spark.errors import SinkError
from ottla.spark.sink import commit, steps
from ottla.spark.sink.commit import Driver, abort_all, commit_all, ledger_of, look_at, open_transactions
from ottla.spark.sink.ledger import Fence
from ottla.spark.sink.options import SinkOptions
from ottla.spark.sink.protocol import HeldTransaction, State, TaskResult, driver_id, task_id
from ottla.spark.sink.writers import Job, write_in_transaction
from ottla.testing import Broker


def all_rows(*batches: int) -> list[bytes]:
    return sorted(value for batch in batches for task in range(TASKS) for value in rows_of(batch, task))


def test_a_batch_is_visible_after_its_commit_and_not_before(
    shared_broker: Broker, options: SinkOptions, out: str, query: str, admin: Admin
) -> None:
    results = run_tasks(options, query, "run1", 0)
    assert visible(shared_broker.bootstrap_servers, out) == []
    Driver(options).commit(results, 0)
    run_batch(options, query, "run1", 1)
    assert sorted(committed(shared_broker.bootstrap_servers, out)) == all_rows(0, 1)
    assert open_ids(admin, query) == []


def test_commits_that_move_between_processes_go_by_the_log(
    shared_broker: Broker, options: SinkOptions, out: str, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With two sinks in a session Spark commits a query's batches in several Python processes in turn, each with its memory."""
    memories: list[dict[Any, Any]] = [{}, {}]
    turns = (0, 0, 1, 0, 1, 1, 0)
    for batch, process in enumerate(turns):
        monkeypatch.setattr(commit, "_fences", memories[process])
        run_batch(options, query, "run1", batch)
    assert sorted(committed(shared_broker.bootstrap_servers, out)) == all_rows(*range(len(turns)))
    for fence in [*memories[0].values(), *memories[1].values()]:
        fence.close()
    memories[0].clear()
    memories[1].clear()


def test_ids_are_used_again_by_the_next_batch(options: SinkOptions, query: str) -> None:
    first, second = (
        [each.transaction.transactional_id for each in run_batch(options, query, "run1", batch) if each.transaction]
        for batch in (0, 1)
    )
    assert first == second
    assert len(set(first)) == TASKS


def test_a_replay_of_a_committed_batch_writes_nothing(
    shared_broker: Broker, options: SinkOptions, out: str, query: str
) -> None:
    run_batch(options, query, "run1", 0)
    results = run_batch(options, query, "run2", 0)
    assert all(each.is_skipped and each.transaction is None for each in results)
    assert sorted(committed(shared_broker.bootstrap_servers, out)) == all_rows(0)


def test_orphans_of_an_earlier_run_are_aborted_by_the_next_commit(
    shared_broker: Broker, options: SinkOptions, out: str, query: str, admin: Admin
) -> None:
    run_tasks(options, query, "run1", 0)
    assert len(open_ids(admin, query)) == TASKS
    run_batch(options, query, "run2", 0)
    assert open_ids(admin, query) == []
    assert sorted(committed(shared_broker.bootstrap_servers, out)) == all_rows(0)


def test_an_aborted_batch_leaves_nothing_open_and_can_be_replayed(
    shared_broker: Broker, options: SinkOptions, out: str, query: str, admin: Admin
) -> None:
    results = run_tasks(options, query, "run1", 0)
    Driver(options).abort(query, "run1", 0)
    assert open_ids(admin, query) == []
    assert committed(shared_broker.bootstrap_servers, out) == []
    with pytest.raises(SinkError, match="another run"):
        Driver(options).commit([replace(each, run="another") for each in results], 0)
    run_batch(options, query, "run2", 0)
    assert sorted(committed(shared_broker.bootstrap_servers, out)) == all_rows(0)


def test_an_abort_after_the_decision_changes_nothing(
    shared_broker: Broker, options: SinkOptions, out: str, query: str, admin: Admin
) -> None:
    run_batch(options, query, "run1", 0)
    Driver(options).abort(query, "run1", 0)
    found = ledger_of(options).read(query)
    assert found is not None
    assert found.decision.state is State.FINISHED
    assert sorted(committed(shared_broker.bootstrap_servers, out)) == all_rows(0)


def test_of_two_runs_with_the_same_batch_one_is_committed(
    shared_broker: Broker, options: SinkOptions, out: str, query: str, admin: Admin
) -> None:
    slow = run_tasks(options, query, "slow", 0)
    run_batch(options, query, "fast", 0)
    Driver(options).commit(slow, 0)  # finds the decision of the other
    assert sorted(committed(shared_broker.bootstrap_servers, out)) == all_rows(0)
    run_batch(options, query, "fast", 1)
    with pytest.raises(SinkError, match="writes batch 0, but has committed batch 1 before"):
        Driver(options).commit(slow, 0)
    assert open_ids(admin, query) == []


def test_a_driver_that_was_fenced_cannot_decide(shared_broker: Broker, options: SinkOptions, out: str, query: str) -> None:
    run_batch(options, query, "old", 0)
    results = run_tasks(options, query, "old", 1)
    Fence(ledger_of(options), query).close()  # another driver comes between
    with pytest.raises(SinkError, match="was not written"):
        Driver(options).commit(results, 1)
    assert sorted(visible(shared_broker.bootstrap_servers, out)) == all_rows(0)
    run_batch(options, query, "new", 1)
    assert sorted(committed(shared_broker.bootstrap_servers, out)) == all_rows(0, 1)


def test_a_transaction_that_ended_before_the_decision_fails_the_batch_whole(
    shared_broker: Broker, options: SinkOptions, out: str, query: str, admin: Admin
) -> None:
    results = run_tasks(options, query, "run1", 0)
    held = results[1].transaction
    assert held is not None
    abort_all(clients.producer(options.client_without_transactions), [held])
    with pytest.raises(SinkError, match=r"was not committed: 1 of its 3 transactions ended.*of task 1"):
        Driver(options).commit(results, 0)
    Driver(options).abort(query, "run1", 0)
    assert committed(shared_broker.bootstrap_servers, out) == []
    run_batch(options, query, "run2", 0)
    assert sorted(committed(shared_broker.bootstrap_servers, out)) == all_rows(0)


def test_a_transaction_that_ended_after_the_decision_is_a_lasting_error(
    shared_broker: Broker, options: SinkOptions, out: str, query: str, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = run_tasks(options, query, "run1", 0)
    held = results[1].transaction
    assert held is not None

    def time_out(step: str) -> None:
        if step == "decision:written":
            abort_all(clients.producer(options.client_without_transactions), [held])

    monkeypatch.setattr(steps, "listener", time_out)
    expected = (
        rf"batch 0 of query {query} .* half committed: {ROWS} rows are missing, because 1 of its 3 .*of task 1, {ROWS} rows"
    )
    with pytest.raises(SinkError, match=expected):
        Driver(options).commit(results, 0)
    Driver(options).abort(query, "run1", 0)  # Spark calls it after a failed commit
    for run in ("run2", "run3"):
        with pytest.raises(SinkError, match="half committed"):
            run_batch(options, query, run, 0)
    assert len(committed(shared_broker.bootstrap_servers, out)) == 2 * ROWS


def test_a_batch_without_rows_is_decided_too(options: SinkOptions, query: str) -> None:
    run_batch(options, query, "run1", 0)
    Driver(options).commit([write_in_transaction(options, Job(query, "run1", 1, 0), iter([]))], 1)
    found = ledger_of(options).read(query)
    assert found is not None
    assert (found.decision.batch, found.decision.state) == (1, State.FINISHED)


def test_a_batch_write_leaves_no_record_and_nothing_open(
    shared_broker: Broker, options: SinkOptions, out: str, query: str, admin: Admin
) -> None:
    rows = pa.record_batch({"value": [b"a", b"b"]})
    results = [write_in_transaction(options, Job(query, query, 0, task, is_once=True), iter([rows])) for task in range(2)]
    write_in_transaction(options, Job(query, query, 0, 1, is_once=True), iter([rows]))  # an attempt that lost
    Driver(options, is_once=True).commit(results, 0)
    assert sorted(committed(shared_broker.bootstrap_servers, out)) == [b"a", b"a", b"b", b"b"]
    assert (ledger_of(options).read(query), open_ids(admin, query)) == (None, [])
    write_in_transaction(options, Job(f"{query}-2", f"{query}-2", 0, 0, is_once=True), iter([rows]))
    Driver(options, is_once=True).abort(f"{query}-2", f"{query}-2", 0)
    assert len(committed(shared_broker.bootstrap_servers, out)) == 4
    assert (ledger_of(options).read(f"{query}-2"), open_ids(admin, f"{query}-2")) == (None, [])


def write_once(options: SinkOptions, query: str, task: int = 0) -> TaskResult:
    rows = pa.record_batch({"value": [b"a", b"b"]})
    return write_in_transaction(options, Job(query, query, 0, task, is_once=True), iter([rows]))


def test_attempts_that_open_transactions_during_a_batch_write_commit_leave_none(
    shared_broker: Broker, options: SinkOptions, out: str, query: str, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark kills a speculative attempt when the other one succeeds, and the kill takes a while. No later batch aborts it."""
    results = [write_once(options, query)]
    with Producer(shared_broker.bootstrap_servers, transactional_id=task_id(query, "late", 0)) as idle:
        idle.init_transactions()

        def write(step: str) -> None:
            if step == "decision:written":
                write_once(options, query)

        monkeypatch.setattr(steps, "listener", write)
        Driver(options, is_once=True).commit(results, 0)
        assert open_ids(admin, query) == []
        idle.begin_transaction()
        with pytest.raises(KafkaError):
            idle.send(out, b"late").result(30)
    assert open_ids(admin, query) == []
    assert sorted(committed(shared_broker.bootstrap_servers, out)) == [b"a", b"b"]


def test_attempts_that_open_transactions_during_a_batch_write_abort_leave_none(
    options: SinkOptions, query: str, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark calls abort while tasks of the failed job still run."""
    monkeypatch.setattr(commit, "KILL_S", 0.0)
    sweep, late = Driver._sweep, [1]

    def swept(self: Driver, *given: Any) -> None:
        sweep(self, *given)
        if late:
            write_once(options, query, late.pop())

    monkeypatch.setattr(Driver, "_sweep", swept)
    write_once(options, query)
    Driver(options, is_once=True).abort(query, query, 0)
    assert (late, ledger_of(options).read(query), open_ids(admin, query)) == ([], None, [])


def test_batch_write_that_is_decided_is_finished_by_the_abort(
    shared_broker: Broker,
    options: SinkOptions,
    out: str,
    query: str,
    admin: Admin,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """No next run comes: its transactions stayed open, and readers waited for them."""
    results = [write_once(options, query, task) for task in range(2)]
    with monkeypatch.context() as patched:

        def fail(*given: Any) -> None:
            raise TimeoutError("no broker answered")

        patched.setattr(commit, "commit_all", fail)
        with pytest.raises(
            SinkError, match=r"no broker answered\. It is decided, so its rows become visible: do not write them"
        ):
            Driver(options, is_once=True).commit(results, 0)
    Driver(options, is_once=True).abort(query, query, 0)
    assert f"write {query} is complete although its commit failed" in caplog.text
    assert sorted(committed(shared_broker.bootstrap_servers, out)) == [b"a", b"a", b"b", b"b"]
    assert (ledger_of(options).read(query), open_ids(admin, query)) == (None, [])


def test_batch_write_whose_rows_are_visible_does_not_fail(
    shared_broker: Broker, options: SinkOptions, out: str, query: str, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user would write them again."""
    results = [write_once(options, query)]
    orphan = write_once(options, query).transaction
    with monkeypatch.context() as patched:

        def fail(*given: Any) -> None:
            raise TimeoutError("no broker answered")

        patched.setattr(commit, "abort_all", fail)
        Driver(options, is_once=True).commit(results, 0)
    assert orphan is not None
    abort_all(clients.producer(options.client_without_transactions), [orphan])
    assert sorted(committed(shared_broker.bootstrap_servers, out)) == [b"a", b"b"]


def test_query_goes_on_after_a_pause_in_which_brokers_forgot_the_id_of_its_fence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka forgets ids after a week, and other queries of a session keep the process with the fence alive."""
    settings = {"transactional.id.expiration.ms": "1000", "transaction.remove.expired.transaction.cleanup.interval.ms": "100"}
    monkeypatch.setattr(commit, "FENCE_KEPT_S", 0.5)
    with Broker(settings) as broker, Admin(broker.bootstrap_servers) as admin:
        broker.create_topic("out", partitions=PARTITIONS)
        options = options_for(broker.bootstrap_servers, "out")
        run_batch(options, "query", "run1", 0)
        deadline_s = time.monotonic() + HANG_S
        while admin.list_transactions():
            assert time.monotonic() < deadline_s, "the broker keeps its ids"
            time.sleep(0.05)
        run_batch(options, "query", "run1", 1)
        assert sorted(committed(broker.bootstrap_servers, "out")) == all_rows(0, 1)
        commit._fences.popitem()[1].close()
        commit.close_ledgers()
        clients.close_all()


def test_process_keeps_a_few_fences(options: SinkOptions, query: str) -> None:
    for number in range(commit.FENCES_MAX + 2):
        run_batch(options, f"{query}-{number}", "run1", 0)
    kept = [name for name, _ in commit._fences]
    assert kept == [f"{query}-{number}" for number in range(2, commit.FENCES_MAX + 2)]


def hold(broker: Broker, topic: str, name: str) -> HeldTransaction:
    with Producer(broker.bootstrap_servers, transactional_id=name) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, name.encode(), partition=0).result(30)
        return HeldTransaction(*producer.detach_transaction(), 0, 1)


def test_open_transactions_are_found_by_query(shared_broker: Broker, out: str, query: str, admin: Admin) -> None:
    held = [hold(shared_broker, out, task_id(query, "w", number)) for number in range(2)]
    others = [hold(shared_broker, out, name) for name in (task_id(f"{query}-other", "w", 0), driver_id(query))]
    found = open_transactions(admin, query)
    assert [each[:3] for each in found] == [each[:3] for each in held]
    with Producer(shared_broker.bootstrap_servers) as producer:
        abort_all(producer, found)
        assert open_transactions(admin, query) == []
        assert len(open_transactions(admin, f"{query}-other")) == 1
        abort_all(producer, others)


def test_an_abort_does_not_touch_a_later_transaction_of_the_same_id(
    shared_broker: Broker, out: str, query: str, admin: Admin
) -> None:
    earlier = hold(shared_broker, out, task_id(query, "w", 0))
    later = hold(shared_broker, out, task_id(query, "w", 0))
    with Producer(shared_broker.bootstrap_servers) as producer:
        abort_all(producer, [earlier])
        assert [each[:3] for each in open_transactions(admin, query)] == [later[:3]]
        assert commit_all(producer, [later]) == []
        abort_all(producer, [later])  # it is committed, and stays so
        assert commit_all(producer, [later]) == []


def test_commits_can_be_repeated_and_tell_what_was_aborted(shared_broker: Broker, out: str, query: str) -> None:
    held = [hold(shared_broker, out, task_id(query, "w", number)) for number in range(3)]
    unknown = held[0]._replace(transactional_id=task_id(query, "w", 9))
    with Producer(shared_broker.bootstrap_servers) as producer:
        abort_all(producer, [held[1], unknown])
        for _ in range(2):
            assert commit_all(producer, [*held, unknown]) == [held[1], unknown]
        assert commit_all(producer, []) == []


def test_looks_have_state_and_epoch(shared_broker: Broker, out: str, query: str, admin: Admin) -> None:
    held = hold(shared_broker, out, task_id(query, "w", 0))
    unknown = held._replace(transactional_id=task_id(query, "w", 9))
    looks = look_at(admin, [held, unknown])
    assert looks == {held.transactional_id: ("Ongoing", held.producer_id, held.epoch), unknown.transactional_id: None}
    with Producer(shared_broker.bootstrap_servers) as producer:
        abort_all(producer, [held])
