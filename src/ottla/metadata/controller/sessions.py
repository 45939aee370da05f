"""Broker sessions: the time of each broker's last heartbeat, on the active controller. They are never in the log.

Times are milliseconds of a monotonic clock (the `now_ms` argument of decisions). No timers here: the controller asks for
deadlines, and its host sets the timer.
"""

from __future__ import annotations

from ottla.ids import Uuid

NOT_SHUTTING_DOWN = -1


class BrokerSession:
    """One broker, under one registration epoch."""

    __slots__ = ("contact_ms", "epoch", "metadata_offset", "offline_directories", "shutdown_offset")

    def __init__(self, epoch: int, contact_ms: int) -> None:
        self.epoch = epoch
        self.contact_ms = contact_ms
        self.metadata_offset = -1
        self.shutdown_offset = NOT_SHUTTING_DOWN
        """The metadata offset that other brokers must have read before this one may stop; -1 while it is not shutting down."""
        self.offline_directories: frozenset[Uuid] = frozenset()
        """The directories that its last heartbeat called offline."""


class BrokerSessions:
    """The sessions by broker id."""

    def __init__(self, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._sessions: dict[int, BrokerSession] = {}

    def get(self, broker_id: int) -> BrokerSession | None:
        return self._sessions.get(broker_id)

    def touch(self, broker_id: int, epoch: int, now_ms: int) -> BrokerSession:
        """Extend the broker's session: a heartbeat came."""
        session = self._sessions.get(broker_id)
        if session is None or session.epoch != epoch:
            session = self._sessions[broker_id] = BrokerSession(epoch, now_ms)
        session.contact_ms = now_ms
        return session

    def expect(self, broker_id: int, epoch: int, now_ms: int) -> None:
        """Start a session for a broker that has sent no heartbeat to this controller yet."""
        self._sessions[broker_id] = BrokerSession(epoch, now_ms)

    def forget(self, broker_id: int) -> None:
        self._sessions.pop(broker_id, None)

    def is_live(self, broker_id: int, epoch: int, now_ms: int) -> bool:
        """Whether the session of the broker that registered with `epoch` has not expired."""
        session = self._sessions.get(broker_id)
        return session is not None and session.epoch == epoch and now_ms <= session.contact_ms + self._timeout_ms

    def deadline_ms(self, broker_id: int, epoch: int, now_ms: int) -> int:
        """When the broker's session expires; `now_ms` if there is no session for `epoch`."""
        session = self._sessions.get(broker_id)
        if session is None or session.epoch != epoch:
            return now_ms
        return session.contact_ms + self._timeout_ms
