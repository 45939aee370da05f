"""Tests of `ottla.coordinator.groups.consumer.checks`: malformed requests."""

from typing import Any

import pytest
from tests.support.shards.consumer_harness import ConsumerHarness

from ottla.coordinator.groups.settings import GroupSettings
from ottla.errors.codes import ErrorCode

JOIN = {"subscribed_topic_names": ["t"], "rebalance_timeout_ms": 1}


@pytest.mark.parametrize(
    ("member_id", "epoch", "owned", "fields", "version"),
    [
        pytest.param("", 0, {}, JOIN, 1, id="no member id"),
        pytest.param(" ", 0, {}, JOIN, 1, id="a blank member id"),
        pytest.param("", 1, None, {}, 0, id="no member id after the join"),
        pytest.param("", -1, None, {}, 0, id="no member id at a leave"),
        pytest.param("a", 0, {}, {**JOIN, "group_id": ""}, 1, id="no group"),
        pytest.param("a", 0, {}, {**JOIN, "instance_id": ""}, 1, id="an empty instance id"),
        pytest.param("a", 0, {}, {**JOIN, "rack_id": ""}, 1, id="an empty rack"),
        pytest.param("a", 0, {}, {**JOIN, "rebalance_timeout_ms": -1}, 1, id="no rebalance timeout"),
        pytest.param("a", 0, None, JOIN, 1, id="null partitions at the join"),
        pytest.param("a", 0, {"t": [1]}, JOIN, 1, id="partitions at the join"),
        pytest.param("a", 0, {}, {"rebalance_timeout_ms": 1}, 1, id="no subscription"),
        pytest.param("a", -2, None, {}, 1, id="a temporary leave of a dynamic member"),
        pytest.param("a", -3, None, {}, 1, id="no such epoch"),
    ],
)
def test_invalid_requests(member_id: str, epoch: int, owned: Any, fields: dict[str, Any], version: int) -> None:
    harness = ConsumerHarness({"t": 1})
    asked = harness.heartbeat(member_id, epoch, owned, version=version, **fields)
    assert asked.code == ErrorCode.INVALID_REQUEST
    assert not harness.log


def test_an_unknown_assignor_is_refused() -> None:
    harness = ConsumerHarness({"t": 1})
    asked = harness.heartbeat("a", 0, {}, server_assignor="best", **JOIN)
    assert asked.code == ErrorCode.UNSUPPORTED_ASSIGNOR
    assert "uniform, range" in str(asked.answer)


def test_an_assignor_missing_from_the_settings_is_refused() -> None:
    harness = ConsumerHarness({"t": 1}, GroupSettings(group_consumer_assignors=("range",)))
    assert harness.heartbeat("a", 0, {}, server_assignor="uniform", **JOIN).code == ErrorCode.UNSUPPORTED_ASSIGNOR
    assert harness.heartbeat("a", 0, {}, server_assignor="range", **JOIN).code == 0


def test_the_consumer_protocol_is_refused_when_switched_off() -> None:
    harness = ConsumerHarness({"t": 1}, GroupSettings(rebalance_protocols=("classic",)))
    assert harness.heartbeat("a", 0, {}, **JOIN).code == ErrorCode.UNSUPPORTED_VERSION


def test_an_empty_subscription_is_accepted() -> None:
    harness = ConsumerHarness({"t": 1})
    assert harness.heartbeat("a", 0, {}, subscribed_topic_regex="", rebalance_timeout_ms=1).code == 0
