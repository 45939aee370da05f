"""Rebalance listeners: objects, callables, and who is called for what."""

from typing import Any

import pytest

from ottla.client.consumer.listener import RebalanceListener, listener_of, tell
from ottla.client_core.group.membership import Assign, Left, Lost, Revoke
from ottla.ids import TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
BOTH = frozenset({A, B})


def test_events_reach_their_callables() -> None:
    calls: list[Any] = []

    def note(name: str) -> Any:
        return lambda partitions: calls.append((name, partitions))

    listener = listener_of(None, note("assigned"), note("revoked"), note("lost"))
    for event in (Assign(BOTH, frozenset({B})), Revoke(BOTH), Lost(BOTH, "why"), Left("why")):
        tell(listener, event)
    assert calls == [("assigned", {B}), ("revoked", {A, B}), ("lost", {A, B})]


def test_what_is_lost_counts_as_revoked_where_nothing_else_is_given() -> None:
    calls: list[Any] = []
    tell(listener_of(None, None, calls.append, None), Lost(BOTH, "why"))

    class Mine(RebalanceListener):
        def on_revoked(self, partitions: Any) -> None:
            calls.append(partitions)

    tell(listener_of(Mine(), None, None, None), Lost(BOTH, "why"))

    class Duck:
        def on_revoked(self, partitions: Any) -> None:
            calls.append(partitions)

    tell(listener_of(Duck(), None, None, None), Lost(BOTH, "why"))
    assert calls == [{A, B}] * 3


def test_no_listener_does_nothing() -> None:
    for event in (Assign(BOTH, BOTH), Revoke(BOTH), Lost(BOTH, "why")):
        assert tell(listener_of(None, None, None, None), event) is None
        assert tell(RebalanceListener(), event) is None


def test_wrong_listeners_are_refused() -> None:
    with pytest.raises(TypeError, match="not both"):
        listener_of(RebalanceListener(), print, None, None)
    with pytest.raises(TypeError, match="callables"):
        listener_of(None, "print", None, None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="on_assigned"):
        listener_of(object(), None, None, None)
