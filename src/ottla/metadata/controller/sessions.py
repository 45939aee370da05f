"""Which brokers the active controller has heard of lately. Never in the log: a new controller begins with what it hears.

Times are milliseconds of a clock that does not jump (the `now_ms` that decisions are handed). Nothing is set here: who must be
fenced, and when to look again, are answers.
"""

from __future__ import annotations

NOT_SHUTTING_DOWN = -1


class BrokerSession:
    """One broker, under one registration epoch."""

    __slots__ = ("contact_ms", "epoch", "metadata_offset", "shutdown_offset")

    def __init__(self, epoch: int, contact_ms: int) -> None:
        self.epoch = epoch
        self.contact_ms = contact_ms
        self.metadata_offset = -1
        self.shutdown_offset = NOT_SHUTTING_DOWN
        """The offset that the others must have read before the broker may go; -1 while it does not want to."""


class BrokerSessions:
    """The sessions by broker id."""

    def __init__(self, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._sessions: dict[int, BrokerSession] = {}

    def get(self, broker_id: int) -> BrokerSession | None:
        return self._sessions.get(broker_id)

    def touch(self, broker_id: int, epoch: int, now_ms: int) -> BrokerSession:
        """The broker was heard."""
        session = self._sessions.get(broker_id)
        if session is None or session.epoch != epoch:
            session = self._sessions[broker_id] = BrokerSession(epoch, now_ms)
        session.contact_ms = now_ms
        return session

    def expect(self, broker_id: int, epoch: int, now_ms: int) -> None:
        """The broker has not been heard yet, and has the time of a session to be."""
        self._sessions[broker_id] = BrokerSession(epoch, now_ms)

    def forget(self, broker_id: int) -> None:
        self._sessions.pop(broker_id, None)

    def is_live(self, broker_id: int, epoch: int, now_ms: int) -> bool:
        """Whether the broker that registered with `epoch` may still be there."""
        session = self._sessions.get(broker_id)
        return session is not None and session.epoch == epoch and now_ms <= session.contact_ms + self._timeout_ms

    def deadline_ms(self, broker_id: int, epoch: int, now_ms: int) -> int:
        """When the broker is to be fenced unless it is heard; `now_ms` if it is over already or was never expected."""
        session = self._sessions.get(broker_id)
        if session is None or session.epoch != epoch:
            return now_ms
        return session.contact_ms + self._timeout_ms
