"""`RebalanceListener`: what a program does when its group gives it partitions or takes them away."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.client_core.group.membership import Assign, Event, Lost, Partitions, Revoke
from ottla.ids import TopicPartition

Handler = Callable[[set[TopicPartition]], Any]


class RebalanceListener:
    """Override what you need. The calls come inside of poll(), in the caller's thread; those of an asyncio consumer may be
    coroutines. The consumer may be used in them, except for poll(), unsubscribe() and close().
    """

    def on_assigned(self, partitions: set[TopicPartition]) -> Any:
        """These partitions were added. Seek here to start elsewhere than at the committed offsets."""

    def on_revoked(self, partitions: set[TopicPartition]) -> Any:
        """These partitions are about to be given up. Commit here; they are still this consumer's."""

    def on_lost(self, partitions: set[TopicPartition]) -> Any:
        """These partitions are gone already, and another member may read them: a commit would be refused."""
        return self.on_revoked(partitions)


class Handlers(RebalanceListener):
    """A listener made of callables; what is lost goes to `on_revoked` where there is no `on_lost`."""

    def __init__(self, on_assigned: Handler | None, on_revoked: Handler | None, on_lost: Handler | None) -> None:
        self._on_assigned = on_assigned
        self._on_revoked = on_revoked
        self._on_lost = on_lost or on_revoked

    def on_assigned(self, partitions: set[TopicPartition]) -> Any:
        return self._on_assigned(partitions) if self._on_assigned is not None else None

    def on_revoked(self, partitions: set[TopicPartition]) -> Any:
        return self._on_revoked(partitions) if self._on_revoked is not None else None

    def on_lost(self, partitions: set[TopicPartition]) -> Any:
        return self._on_lost(partitions) if self._on_lost is not None else None


def listener_of(
    listener: Any, on_assigned: Handler | None, on_revoked: Handler | None, on_lost: Handler | None
) -> RebalanceListener:
    """The listener that a caller has given, as an object or as callables."""
    given = [each for each in (on_assigned, on_revoked, on_lost) if each is not None]
    if listener is not None and given:
        raise TypeError("give a listener, or on_assigned, on_revoked and on_lost, not both")
    for each in given:
        if not callable(each):
            raise TypeError(f"on_assigned, on_revoked and on_lost are callables, not {each!r}")
    if listener is None:
        return Handlers(on_assigned, on_revoked, on_lost)
    if isinstance(listener, RebalanceListener):
        return listener
    found = [getattr(listener, name, None) for name in ("on_assigned", "on_revoked", "on_lost")]
    if not any(callable(each) for each in found):
        raise TypeError(
            f"a listener has on_assigned(partitions), on_revoked(partitions) or on_lost(partitions), not {listener!r}"
        )
    return Handlers(*found)


def tell(listener: RebalanceListener, event: Event) -> Any:
    """Call the listener for an event; returns what it returned."""
    if isinstance(event, Assign):
        return listener.on_assigned(set(event.added))
    if isinstance(event, Revoke):
        return listener.on_revoked(set(event.partitions))
    return listener.on_lost(set(event.partitions)) if isinstance(event, Lost) else None


__all__ = ["Handler", "Partitions", "RebalanceListener", "listener_of", "tell"]
