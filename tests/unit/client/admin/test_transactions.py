"""Transactions as coordinators see them."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.support.nodes.fake_node import FakeNode, all_versions
from tests.support.peers.transaction_requests import TransactionRequests
from tests.support.servers.kafka_server import KafkaServer

from ottla.errors import InvalidRegularExpressionError, TransactionalIdNotFoundError, UnsupportedVersionError
from ottla.ids import TopicPartition


@pytest.fixture
def raw(server: KafkaServer) -> Iterator[TransactionRequests]:
    requests = TransactionRequests(server.bootstrap)
    requests.find_coordinator("any")
    yield requests
    requests.client.close()


def test_transactions_are_listed_described_and_ended_by_force(
    admin: Any, name: str, create: Callable[..., Any], raw: TransactionRequests
) -> None:
    create({name: 2})
    open_id, idle_id = f"{name}-open", f"{name}-idle"
    _, producer = raw.initialise(open_id)
    raw.add(open_id, producer, name, 0, 1)
    _, idle = raw.initialise(idle_id)

    def listed(**filters: Any) -> dict[str, str]:
        found = admin.list_transactions(**filters)
        return {each.transactional_id: each.state for each in found if each.transactional_id in (open_id, idle_id)}

    assert listed() == {open_id: "Ongoing", idle_id: "Empty"}
    assert listed(states=["Empty"]) == {idle_id: "Empty"}
    assert listed(producer_ids=[producer.id]) == {open_id: "Ongoing"}
    assert open_id not in listed(longer_than_ms=600_000)
    assert listed(id_pattern=f"{name}-i.*") == {idle_id: "Empty"}
    results = admin.describe_transactions([open_id, idle_id, "missing-id"])
    description = results[open_id]
    assert (description.state, description.producer_id, description.producer_epoch) == ("Ongoing", producer.id, producer.epoch)
    assert description.partitions == (TopicPartition(name, 0), TopicPartition(name, 1))
    assert description.start is not None
    assert (description.timeout_ms, description.coordinator) == (60_000, 1)
    assert results[idle_id].start is None
    assert isinstance(results.errors["missing-id"], TransactionalIdNotFoundError)
    fenced = admin.fence_producers([open_id, idle_id])
    assert fenced[open_id].producer_id == producer.id
    assert fenced[open_id].producer_epoch > producer.epoch
    assert fenced[idle_id].producer_epoch > idle.epoch
    admin.force_terminate_transaction(idle_id)
    assert "Ongoing" not in listed().values()


def test_filters_that_the_broker_refuses(admin: Any) -> None:
    with pytest.raises(ValueError, match="states: the broker does not know Sleeping"):
        admin.list_transactions(states=["Sleeping"])
    with pytest.raises(InvalidRegularExpressionError):
        admin.list_transactions(id_pattern="[")


def test_broker_that_is_too_old_for_a_filter_is_told_by_an_error(scripted: Any, node: FakeNode) -> None:
    node.served = all_versions(ListTransactions=(0, 0))
    with pytest.raises(UnsupportedVersionError, match="too old to list transactions by how long they are open: leave that out"):
        scripted.list_transactions(longer_than_ms=5)
    with pytest.raises(UnsupportedVersionError, match="too old to list transactions by a pattern: leave that out"):
        scripted.list_transactions(id_pattern="a.*")


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda admin: admin.list_transactions(producer_ids=[-1]), ValueError, "producer_ids is -1"),
        (lambda admin: admin.list_transactions(longer_than_ms=-5), ValueError, "longer_than_ms is -5"),
        (lambda admin: admin.describe_transactions("a"), TypeError, "transactional_ids must be a list"),
        (lambda admin: admin.fence_producers([""]), ValueError, "transactional_ids must not be empty"),
        (lambda admin: admin.force_terminate_transaction(""), ValueError, "transactional_id must not be empty"),
    ],
)
def test_bad_argument_is_named(scripted: Any, call: Callable[[Any], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call(scripted)
