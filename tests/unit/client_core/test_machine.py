"""A request of a machine: defaults that the driver relies on."""

from ottla.client_core.machine import ANY_NODE, CONTROLLER, Channel, Request
from ottla.wire.messages.metadata import MetadataRequest


def test_a_request_goes_to_any_node_on_the_data_channel_and_is_answered() -> None:
    request = Request(MetadataRequest())
    assert (request.node, request.channel, request.is_answered) == (ANY_NODE, Channel.DATA, True)
    assert request.timeout_ms is None
    assert repr(request) == "Request(MetadataRequest to -1, DATA)"


def test_places_of_nodes_are_no_node_ids() -> None:
    assert ANY_NODE < 0
    assert CONTROLLER < 0
