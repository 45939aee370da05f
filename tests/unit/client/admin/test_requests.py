"""Errors of items, and changes at the controller: what is asked again and what is not."""

from typing import Any

import pytest
from tests.support.nodes.fake_node import FakeNode

from ottla.client.admin.requests import raise_refused, refused, refused_or
from ottla.errors import BrokerIdNotRegisteredError, NotControllerError, TopicExistsError
from ottla.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


def test_error_has_the_brokers_text_or_a_general_one() -> None:
    assert str(refused(36, "topic a", "it exists")) == "topic a: it exists (TOPIC_ALREADY_EXISTS)"
    general = refused(36, "topic a")
    assert isinstance(general, TopicExistsError)
    assert str(general).startswith("topic a: ")
    assert refused_or(0, "topic a", None, 7) == 7
    raise_refused(0, "topic a")
    with pytest.raises(NotControllerError):
        raise_refused(41, "topic a")


def test_controller_that_has_moved_is_asked_again(scripted: Any, node: FakeNode) -> None:
    codes = iter([41, 41, 0])
    node.handlers[UnregisterBrokerRequest] = lambda request, version: UnregisterBrokerResponse(error_code=next(codes))
    scripted.unregister_broker(5)
    assert len(node.asked_for(UnregisterBrokerRequest)) == 3


def test_final_refusal_is_raised_at_once(scripted: Any, node: FakeNode) -> None:
    node.handlers[UnregisterBrokerRequest] = lambda request, version: UnregisterBrokerResponse(
        error_code=102, error_message="who?"
    )
    with pytest.raises(BrokerIdNotRegisteredError, match=r"broker 5 was not unregistered: who\?"):
        scripted.unregister_broker(5)
    assert len(node.asked_for(UnregisterBrokerRequest)) == 1
