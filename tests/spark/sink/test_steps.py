"""A process is killed at every named step; the replay leaves every row once and no transaction open."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.spark.sink.sink_work import (
    DRIVER_STEPS,
    PARTITIONS,
    STEPS,
    TASKS,
    KilledBatch,
    committed,
    open_ids,
    options_for,
    rows_of,
    run_batch,
    visible,
)
from tests.support.servers.apache_kafka import ApacheKafka

from ottla import Admin
from ottla.spark import clients
from ottla.spark.sink import commit
from ottla.spark.sink.commit import ledger_of
from ottla.testing import Broker

QUICK = ("task:detached", "commit:checked", "decision:written", "ending:first")
AFTER_DECISION = DRIVER_STEPS[DRIVER_STEPS.index("decision:written") :]
AFTER_ENDING = DRIVER_STEPS[DRIVER_STEPS.index("ending:all") :]


@pytest.mark.parametrize("step", [step if step in QUICK else pytest.param(step, marks=pytest.mark.slow) for step in STEPS])
def test_a_batch_that_is_killed_at_any_step_is_written_once(
    step: str, shared_broker: Broker, out: str, query: str, tmp_path: Path
) -> None:
    kill_and_replay(step, shared_broker.bootstrap_servers, out, query, tmp_path)


@pytest.fixture(scope="module")
def apache_bootstrap(apache_kafka: ApacheKafka) -> Iterator[str]:
    with apache_kafka.start_server() as server:
        yield server.bootstrap
        commit.close_ledgers()
        clients.close_all()


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_a_batch_that_is_killed_at_any_step_is_written_once_to_apache_kafka(
    step: str, apache_bootstrap: str, query: str, tmp_path: Path
) -> None:
    topic = f"out-{step.replace(':', '-')}"
    with Admin(apache_bootstrap) as admin:
        admin.create_topics({topic: PARTITIONS}).raise_first()
    kill_and_replay(step, apache_bootstrap, topic, query, tmp_path)


def kill_and_replay(step: str, bootstrap: str, topic: str, query: str, folder: Path) -> None:
    """Kill the process of a batch at a step, look at what it left, and repeat the batch as Spark does."""
    options = options_for(bootstrap, topic)
    expected = sorted(value for task in range(TASKS) for value in rows_of(0, task))
    KilledBatch(folder / "steps", step, bootstrap, topic, query, "run1", 0).kill()
    before = visible(bootstrap, topic)
    if step not in AFTER_DECISION[1:]:
        assert before == []
    if step in AFTER_ENDING:
        assert sorted(committed(bootstrap, topic)) == expected
    found = ledger_of(options).read(query)
    assert (found is not None) == (step in AFTER_DECISION)
    results = run_batch(options, query, "run2", 0)
    assert all(each.is_skipped for each in results) == (step in AFTER_DECISION)
    assert sorted(committed(bootstrap, topic)) == expected
    with Admin(bootstrap) as admin:
        assert open_ids(admin, query) == []
    run_batch(options, query, "run2", 1)
    assert len(committed(bootstrap, topic)) == 2 * len(expected)
