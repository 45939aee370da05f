"""Listing the resources that have settings. Against Apache: tests/compat/test_config_changes.py."""

from tests.support.cases.config_cases import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    GROUP,
    NONE,
    SET,
    TOPIC,
    Case,
    incremental_request,
)
from tests.support.nodes.config_node import ConfigNode

from ottla.errors.codes import ErrorCode
from ottla.wire.messages.list_config_resources import ListConfigResourcesRequest


def listed(node: ConfigNode, version: int, *types: int) -> list[tuple[int, str]]:
    response = node.ask(ListConfigResourcesRequest(resource_types=list(types)), version)
    assert response.error_code == NONE
    return [(each.resource_type, each.resource_name) for each in response.config_resources]


def test_all_kinds_or_some() -> None:
    node = ConfigNode()
    metrics = Case(NONE, CLIENT_METRICS, "m", [("interval.ms", SET, "1000")])
    group = Case(NONE, GROUP, "g", [("consumer.session.timeout.ms", SET, "50000")])
    node.ask(incremental_request(metrics, group, validate_only=False))
    everything = [(GROUP, "g"), (CLIENT_METRICS, "m"), (BROKER_LOGGER, "1"), (BROKER, "1"), (TOPIC, "t"), (TOPIC, "u")]
    assert listed(node, 1) == everything
    assert listed(node, 1, TOPIC, GROUP) == [(GROUP, "g"), (TOPIC, "t"), (TOPIC, "u")]
    assert listed(node, 0) == [(CLIENT_METRICS, "m")]


def test_an_unknown_kind_is_refused() -> None:
    response = ConfigNode().ask(ListConfigResourcesRequest(resource_types=[TOPIC, 3]), 1)
    assert (response.error_code, response.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, [])
