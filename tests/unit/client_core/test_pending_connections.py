"""OpenConnections that a machine waits for before it sends: one attempt for each node, and news of leaders meanwhile."""

from types import SimpleNamespace

import pytest
from tests.support.machines.open_connections import OpenConnections

from ottla.client_core.machine import Channel, Connect
from ottla.client_core.metadata import Metadata
from ottla.client_core.pending_connections import Connecting
from ottla.errors import NetworkError
from ottla.wire.messages.metadata import MetadataResponse, MetadataResponseBroker

SETTINGS = SimpleNamespace(
    metadata_max_age_ms=300_000,
    metadata_recovery_rebootstrap_trigger_ms=300_000,
    metadata_recovery_strategy="rebootstrap",
    retry_backoff_ms=100,
    retry_backoff_max_ms=1_000,
)
REFRESH_MS = 1_000


@pytest.fixture
def metadata() -> Metadata:
    made = Metadata(SETTINGS, lambda limit: limit // 2)
    (request,) = made.step(0)
    brokers = [MetadataResponseBroker(node_id=1, host="h", port=1)]
    made.answered(request, MetadataResponse(brokers=brokers), 13, 0)
    return made


@pytest.fixture
def connecting(metadata: Metadata) -> Connecting:
    made = Connecting(metadata, REFRESH_MS, Channel.FETCH)
    made.connections = OpenConnections()
    return made


def test_every_node_counts_as_connected_without_a_driver(metadata: Metadata) -> None:
    assert Connecting(metadata, REFRESH_MS).is_open(1)


def test_connections_of_another_channel_do_not_count(connecting: Connecting) -> None:
    assert isinstance(connecting.connections, OpenConnections)
    connecting.connections.open.add((1, Channel.DATA))
    assert not connecting.is_open(1)
    connecting.connections.open.add((1, Channel.FETCH))
    assert connecting.is_open(1)


def test_one_attempt_for_each_node_is_under_way(connecting: Connecting) -> None:
    (request,) = connecting.connect(1, 0)
    assert isinstance(request, Connect)
    assert (request.node, request.channel) == (1, Channel.FETCH)
    assert connecting.connect(1, 10) == []
    assert len(connecting.connect(2, 10)) == 1
    connecting.answered(request)
    assert len(connecting.connect(1, 20)) == 1


def test_the_last_failure_is_known_until_the_node_is_connected(connecting: Connecting) -> None:
    (request,) = connecting.connect(1, 0)
    error = NetworkError("no connection")
    connecting.failed(request, error)
    assert connecting.failure(1) is error
    assert connecting.failure(2) is None
    (again,) = connecting.connect(1, 10)
    connecting.answered(again)
    assert connecting.failure(1) is None


def test_the_metadata_is_refreshed_while_a_connection_is_slow(connecting: Connecting, metadata: Metadata) -> None:
    (request,) = connecting.connect(1, 5_000)
    assert connecting.next_deadline_ms() == 6_000
    connecting.look(5_999)
    assert metadata.step(5_999) == []
    connecting.look(6_000)
    assert len(metadata.step(6_000)) == 1
    assert connecting.next_deadline_ms() == 7_000, "a deadline in the past would spin the driver"
    connecting.answered(request)
    assert connecting.next_deadline_ms() is None
