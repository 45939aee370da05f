"""Requests under way and backoffs."""

from ottla.raft.connections import NEVER_MS, Connections
from ottla.raft.effects import Destination
from ottla.wire.messages.vote import VoteRequest

THERE = Destination(2, "h", 1)


def test_one_request_per_node_at_a_time() -> None:
    connections = Connections(20)
    assert connections.is_ready(2, 0)
    correlation = connections.sent(THERE, VoteRequest())
    assert not connections.is_ready(2, 100)
    assert connections.ready_at_ms(2) == NEVER_MS
    assert connections.under_way(2, correlation) is not None
    assert connections.under_way(2, correlation + 1) is None
    connections.ended(2, correlation, True, 100)
    assert connections.is_ready(2, 100)


def test_failure_is_followed_by_a_wait() -> None:
    connections = Connections(20)
    connections.ended(2, connections.sent(THERE, VoteRequest()), False, 100)
    assert connections.is_backing_off(2, 119)
    assert connections.ready_at_ms(2) == 120
    assert connections.is_ready(2, 120)
    connections.ended(2, connections.sent(THERE, VoteRequest()), False, 120)
    connections.reset()
    assert connections.is_ready(2, 120)


def test_bootstrap_servers_take_turns() -> None:
    connections, servers = Connections(20), (("a", 1), ("b", 2))
    first = connections.next_bootstrap(servers, 0)
    second = connections.next_bootstrap(servers, 0)
    assert first is not None
    assert second is not None
    assert [first.host, second.host] == ["a", "b"]
    connections.sent(first, VoteRequest())
    connections.sent(second, VoteRequest())
    assert connections.next_bootstrap(servers, 0) is None
    assert connections.bootstrap_ready_at_ms(servers) == NEVER_MS
    assert connections.bootstrap_ready_at_ms(()) == NEVER_MS
