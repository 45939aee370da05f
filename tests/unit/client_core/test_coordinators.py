"""The finder of a coordinator: when it looks, what it retries, and in which shape of request."""

from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.machines.open_connections import OpenConnections

from ottla.client_core.coordinators import CoordinatorFinder, CoordinatorKind, find_coordinator_request
from ottla.client_core.machine import Channel, Connect, Request
from ottla.client_core.metadata import Metadata, Node
from ottla.errors import NetworkError, SaslAuthenticationError
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.find_coordinator import Coordinator, FindCoordinatorResponse

SETTINGS = SimpleNamespace(
    metadata_max_age_ms=300_000,
    metadata_recovery_rebootstrap_trigger_ms=300_000,
    metadata_recovery_strategy="rebootstrap",
    retry_backoff_ms=100,
    retry_backoff_max_ms=1_000,
)


def finder() -> CoordinatorFinder:
    metadata = Metadata(SETTINGS, lambda limit: limit // 2)
    return CoordinatorFinder(metadata, CoordinatorKind.GROUP, "g", SETTINGS, lambda limit: limit // 2)


def found(code: int = 0, node_id: int = 3) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(
        coordinators=[Coordinator(key="g", node_id=node_id, host="host-3", port=9092, error_code=code, error_message=None)]
    )


def ask(machine: CoordinatorFinder, now_ms: int) -> Request:
    (request,) = machine.step(now_ms)
    return request


def test_nothing_is_asked_before_the_coordinator_is_wanted() -> None:
    machine = finder()
    assert machine.step(0) == []
    assert machine.next_deadline_ms() is None


@pytest.mark.parametrize("version", [3, 6])
def test_the_coordinator_is_found_in_every_shape_of_answer(version: int) -> None:
    machine = finder()
    machine.want()
    request = ask(machine, 0)
    answer: Any = found() if version >= 4 else FindCoordinatorResponse(node_id=3, host="host-3", port=9092)
    machine.answered(request, answer, version, 5)
    assert machine.node() == 3
    assert machine._metadata.nodes[3] == Node(3, "host-3", 9092)
    assert machine.step(10_000) == []


def test_a_lost_coordinator_is_looked_for_again() -> None:
    machine = finder()
    machine.want()
    machine.answered(ask(machine, 0), found(), 6, 0)
    machine.lost("NOT_COORDINATOR")
    assert machine.node() is None
    machine.answered(ask(machine, 1), found(node_id=4), 6, 1)
    assert machine.node() == 4


def test_retriable_errors_wait_longer_each_time() -> None:
    machine = finder()
    machine.want()
    machine.answered(ask(machine, 0), found(ErrorCode.COORDINATOR_NOT_AVAILABLE), 6, 0)
    assert machine.next_deadline_ms() == 100
    machine.failed(ask(machine, 100), NetworkError("no connection"), 100)
    assert machine.next_deadline_ms() == 300
    assert machine.retried_error is not None


def test_a_missing_permission_ends_the_search_until_it_is_wanted_again() -> None:
    machine = finder()
    machine.want()
    machine.answered(ask(machine, 0), found(ErrorCode.GROUP_AUTHORIZATION_FAILED), 6, 0)
    assert machine.error is not None
    assert "group g" in str(machine.error)
    assert machine.step(1_000_000) == []
    machine.want()
    assert machine.step(1_000_001)


def test_an_answer_without_the_key_is_retried() -> None:
    machine = finder()
    machine.want()
    machine.answered(ask(machine, 0), FindCoordinatorResponse(), 6, 0)
    assert machine.node() is None
    assert machine.next_deadline_ms() == 100


def test_old_brokers_get_a_single_key() -> None:
    assert find_coordinator_request(CoordinatorKind.TRANSACTION, "t", 3).key == "t"
    assert find_coordinator_request(CoordinatorKind.TRANSACTION, "t", 4).coordinator_keys == ["t"]


def known(connections: OpenConnections) -> CoordinatorFinder:
    """A finder that knows the coordinator, node 3, since time 0."""
    machine = finder()
    machine.connections = connections
    machine.want()
    machine.answered(ask(machine, 0), found(), 6, 0)
    return machine


def connect(machine: CoordinatorFinder, now_ms: int) -> Connect:
    request = ask(machine, now_ms)
    assert isinstance(request, Connect)
    return request


def test_nobody_connects_to_a_coordinator_that_no_request_goes_to() -> None:
    machine = known(OpenConnections())
    assert machine.node() == 3
    assert machine.is_ready
    assert machine.step(600_000) == []
    assert machine.next_deadline_ms() is None


def test_a_request_waits_until_its_channel_to_the_coordinator_is_open() -> None:
    connections = OpenConnections()
    machine = known(connections)
    connections.open.add((3, Channel.GROUP))
    assert machine.connected(Channel.GROUP) == 3
    assert machine.connected(Channel.HEARTBEAT) is None
    assert machine.next_deadline_ms() == 0, "the driver must step: the finder's turn may have been before"
    assert not machine.is_ready
    request = connect(machine, 10)
    assert (request.node, request.channel) == (3, Channel.HEARTBEAT)
    assert machine.connected(Channel.HEARTBEAT) is None
    assert machine.step(11) == []
    connections.open.add((3, Channel.HEARTBEAT))
    machine.answered(request, None, 0, 12)
    assert machine.is_ready
    assert machine.connected(Channel.HEARTBEAT) == 3
    assert machine.next_deadline_ms() is None


def test_the_coordinator_is_looked_for_again_while_it_is_slow_to_connect() -> None:
    connections = OpenConnections()
    machine = known(connections)
    machine.connected(Channel.GROUP)
    slow = connect(machine, 1_000)
    waits, now_ms = [], 1_000
    for _ in range(5):
        deadline_ms = machine.next_deadline_ms()
        assert deadline_ms is not None
        waits.append(deadline_ms - now_ms)
        now_ms = deadline_ms
        machine.answered(ask(machine, now_ms), found(), 6, now_ms)
        assert machine.connected(Channel.GROUP) is None
    assert waits == [100, 200, 400, 800, 1_000]
    machine.answered(ask(machine, now_ms + 1_000), found(node_id=4), 6, now_ms + 1_000)
    connections.open.add((4, Channel.GROUP))
    assert machine.connected(Channel.GROUP) == 4
    machine.failed(slow, NetworkError("no connection in time"), 11_000)
    assert machine.connected(Channel.GROUP) == 4, "the old node's failure does not concern the new one"


def test_a_coordinator_that_cannot_be_reached_is_looked_for_after_growing_waits() -> None:
    machine = known(OpenConnections())
    waits, now_ms = [], 0
    for _ in range(4):
        machine.connected(Channel.GROUP)
        error = NetworkError("refused")
        machine.failed(connect(machine, now_ms), error, now_ms)
        assert machine.node() is None
        assert machine.retried_error is error
        deadline_ms = machine.next_deadline_ms()
        assert deadline_ms is not None
        waits.append(deadline_ms - now_ms)
        now_ms = deadline_ms
        machine.answered(ask(machine, now_ms), found(), 6, now_ms)
        assert machine.retried_error is error, "it is still why requests wait"
    assert waits == sorted(waits)
    assert waits[-1] == 1_000


def test_a_refused_login_at_the_coordinator_ends_the_search() -> None:
    machine = known(OpenConnections())
    machine.connected(Channel.GROUP)
    error = SaslAuthenticationError("wrong password")
    machine.failed(connect(machine, 0), error, 0)
    assert machine.error is error
    assert machine.step(600_000) == []


def test_a_connection_that_another_request_has_opened_is_used() -> None:
    connections = OpenConnections()
    machine = known(connections)
    machine.connected(Channel.GROUP)
    connect(machine, 0)
    connections.open.add((3, Channel.GROUP))
    assert machine.step(50) == []
    assert machine.is_ready
