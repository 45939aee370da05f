"""`ottla pipeline transactions`: lists what sinks left open, and changes nothing without --execute."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from click.testing import CliRunner, Result

from ottla import Producer
from ottla.cli.pipeline.transactions import transactions
from ottla.spark import clients
from ottla.spark.sink import commit
from ottla.spark.sink.ledger import Fence
from ottla.spark.sink.options import SinkOptions
from ottla.spark.sink.protocol import Decision, HeldTransaction, State, task_id
from ottla.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as made:
        made.create_topic("out")
        yield made
        clients.close_all()
        commit.close_ledgers()


def run(broker: Broker, *arguments: str) -> Result:
    return CliRunner().invoke(transactions, ["--bootstrap-server", broker.bootstrap_servers, *arguments])


def hold(broker: Broker, query: str, number: int) -> HeldTransaction:
    with Producer(broker.bootstrap_servers, transactional_id=task_id(query, "w", number)) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("out", query.encode()).result(30)
        return HeldTransaction(*producer.detach_transaction(), number, 1)


def decide(broker: Broker, query: str, held: HeldTransaction) -> None:
    options = SinkOptions({"bootstrap.servers": broker.bootstrap_servers})
    fence = Fence(commit.ledger_of(options), query)
    fence.write(Decision(query, 7, "run", State.DECIDED, (held,)))
    fence.close()


def test_open_transactions_are_listed_and_aborted_only_with_execute(broker: Broker) -> None:
    name = hold(broker, "q1", 0).transactional_id
    (row,) = json.loads(run(broker, "--query", "q1", "--json").stdout)
    assert row | {"ageMs": 0} == {
        "query": "q1",
        "batch": None,
        "task": None,
        "state": "undecided",
        "ageMs": 0,
        "transactionalId": name,
    }
    assert "add --execute" in run(broker, "--query", "q1", "--abort").output
    assert f"undecided\t{row['ageMs']}"[:9] in run(broker).stdout
    assert "done" in run(broker, "--query", "q1", "--abort", "--execute").output
    assert json.loads(run(broker, "--query", "q1", "--json").stdout) == []


def test_a_decided_batch_is_committed_and_not_aborted(broker: Broker) -> None:
    decide(broker, "q2", hold(broker, "q2", 3))
    refused = run(broker, "--query", "q2", "--abort", "--execute")
    assert "batch 7 of query q2 is decided" in str(refused.exception)
    assert "--even-decided" in str(refused.exception)
    assert run(broker, "--query", "q2", "--commit", "--execute").exit_code == 0
    assert json.loads(run(broker, "--query", "q2", "--json").stdout) == []
    assert [each.value for each in broker.records("out") if each.value == b"q2"] == [b"q2"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--commit",), "--commit needs --query ID"),
        (("--query", "q", "--execute"), "say what to do: --commit, --abort or --accept-loss"),
    ],
)
def test_a_wrong_use_is_explained(broker: Broker, arguments: tuple[str, ...], expected: str) -> None:
    result = run(broker, *arguments)
    assert result.exit_code == 2
    assert expected in result.output


def test_a_query_with_nothing_open_is_named(broker: Broker) -> None:
    assert "query q9 has nothing to commit: it has nothing open" in str(run(broker, "--query", "q9", "--commit").exception)
