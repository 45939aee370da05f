"""`ottla cluster unregister`."""

import pytest
from tests.support.nodes.fake_node import FakeNode
from tests.unit.cli.conftest import RunOttla

from ottla.cli.cluster import Held, warnings
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


@pytest.mark.parametrize("arguments", [("3",), ("--id", "3")])
def test_a_fenced_broker_is_removed_and_what_it_holds_is_said(
    ottla: RunOttla, node: FakeNode, arguments: tuple[str, ...]
) -> None:
    said = ottla("cluster", "unregister", *arguments, "--yes")
    assert (said.rc, said.lines) == (0, ["Broker 3 is no longer registered."])
    assert [each.broker_id for each in node.asked_for(UnregisterBrokerRequest)] == [3]
    only, held, voter = said.err.splitlines()
    assert only.startswith("ottla: broker 3 has the only replica of orders-1: nothing in there can be read without it")
    assert held.startswith("ottla: broker 3 holds 2 replicas: they stay under-replicated until they are reassigned")
    assert voter == ("ottla: node 3 is a voter of the metadata quorum, and stays one: `ottla quorum remove 3` takes its vote")


def test_without_a_terminal_it_needs_yes(ottla: RunOttla, node: FakeNode) -> None:
    said = ottla("cluster", "unregister", "3")
    assert said.rc == 1
    assert said.err.endswith("ottla: nothing was changed: add --yes to say that you mean it\n")
    assert node.asked_for(UnregisterBrokerRequest) == []


def test_a_live_broker_is_refused_without_force(ottla: RunOttla, node: FakeNode) -> None:
    said = ottla("cluster", "unregister", "2", "--yes")
    assert said.rc == 1
    assert said.err.startswith("ottla: broker 2 at two:9092 is alive, so it was not unregistered. Stop it")
    assert node.asked_for(UnregisterBrokerRequest) == []
    assert ottla("cluster", "unregister", "2", "--yes", "--force").rc == 0
    assert [each.broker_id for each in node.asked_for(UnregisterBrokerRequest)] == [2]


def test_last_replicas_in_sync_are_warned_of() -> None:
    (text, _) = warnings(4, Held(["a-0"], ["a-0"], [], ["a-0"], is_voter=False))
    assert text.startswith("no other replica of a-0 is in sync: without broker 4 there is no leader")


def test_a_refusal_is_one_sentence(ottla: RunOttla, node: FakeNode) -> None:
    node.handlers[UnregisterBrokerRequest] = lambda request, version: UnregisterBrokerResponse(
        error_code=ErrorCode.BROKER_ID_NOT_REGISTERED
    )
    said = ottla("cluster", "unregister", "9")
    assert said.rc == 1
    assert said.err.startswith("ottla: broker 9 was not unregistered")
    assert "BROKER_ID_NOT_REGISTERED" in said.err


def test_the_broker_must_be_named(ottla: RunOttla) -> None:
    said = ottla("cluster", "unregister")
    assert said.rc == 2
    assert "name the broker, for example: ottla cluster unregister 4" in said.err
