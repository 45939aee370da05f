"""`groups list` and `groups describe` while a broker that is still in the metadata is down."""

from typing import Any

import pytest
from tests.support.nodes.fake_node import FakeNode
from tests.unit.cli.conftest import RunOttla

from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker

SOON = ("--timeout", "300")
DOWN = "broker 2 at two:9092 does not answer: start it, or check its advertised.listeners"


@pytest.fixture
def half(coordinator: FakeNode) -> FakeNode:
    """Broker 1 of two; broker 2, which leads orders-1, is down."""
    whole = coordinator.handlers[MetadataRequest]

    def metadata(request: MetadataRequest, version: int) -> MetadataResponse:
        response: Any = whole(request, version)
        for topic in response.topics:
            for each in topic.partitions:
                each.leader_id = 1 + each.partition_index % 2
        response.brokers = [*response.brokers, MetadataResponseBroker(node_id=2, host="two", port=9092)]
        return response  # type: ignore[no-any-return]  # of the class that the caller asked for

    coordinator.handlers[MetadataRequest] = metadata
    return coordinator


def test_list_shows_what_the_others_coordinate(ottla: RunOttla, half: FakeNode) -> None:
    said = ottla("groups", "list", *SOON)
    assert (said.rc, said.lines) == (1, ["idle", "new", "old"])
    assert "the groups that broker 2 coordinates are left out: " in said.err
    assert DOWN in said.err


def test_describe_says_why_an_end_is_not_known(ottla: RunOttla, half: FakeNode) -> None:
    said = ottla("groups", "describe", "old", *SOON)
    assert said.rc == 1
    assert f"the end of orders-1 is not known: {DOWN}" in said.err
    assert "orders-0" not in said.err
