"""`ottla cluster unregister`."""

import pytest
from tests.support.nodes.fake_node import FakeNode
from tests.unit.cli.conftest import RunOttla

from ottla.errors.codes import ErrorCode
from ottla.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


@pytest.mark.parametrize("arguments", [("3",), ("--id", "3")])
def test_a_broker_is_removed(ottla: RunOttla, node: FakeNode, arguments: tuple[str, ...]) -> None:
    said = ottla("cluster", "unregister", *arguments)
    assert (said.rc, said.lines) == (0, ["Broker 3 is no longer registered."])
    assert [each.broker_id for each in node.asked_for(UnregisterBrokerRequest)] == [3]


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
