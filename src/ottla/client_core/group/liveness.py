"""The heartbeats of a classic member: when they are due, when its session has ended, and when its owner polled too late."""

from __future__ import annotations

from ottla.client_core.group.collaborators import GroupSettings
from ottla.client_core.group.identity import Identity
from ottla.client_core.machine import Channel, Request
from ottla.wire.messages.heartbeat import HeartbeatRequest


class Liveness:
    """Heartbeats, one at a time, and the deadlines that they, their answers and polls move."""

    def __init__(self, settings: GroupSettings, identity: Identity) -> None:
        self._settings = settings
        self._identity = identity
        self._out: Request | None = None
        self._heartbeat_at_ms = 0
        self.session_ends_ms = 0
        self.poll_due_ms = 0

    def polled(self, now_ms: int) -> None:
        """The owner has polled."""
        self.poll_due_ms = now_ms + self._settings.max_poll_interval_ms

    def joined(self, now_ms: int) -> None:
        """The coordinator has started a session."""
        self._heartbeat_at_ms = now_ms + self._settings.heartbeat_interval_ms
        self.session_ends_ms = now_ms + self._settings.session_timeout_ms

    def extend_session(self, now_ms: int) -> None:
        """The coordinator has heard a heartbeat, or will be looked for from now."""
        self.session_ends_ms = now_ms + self._settings.session_timeout_ms

    @property
    def due_ms(self) -> int | None:
        """When the next heartbeat is due; None while one is out."""
        return self._heartbeat_at_ms if self._out is None else None

    def is_due(self, now_ms: int) -> bool:
        """Whether it is time for a heartbeat."""
        return self._out is None and now_ms >= self._heartbeat_at_ms

    def send(self, node: int, now_ms: int) -> Request:
        """The heartbeat."""
        self._heartbeat_at_ms = now_ms + self._settings.heartbeat_interval_ms
        identity = self._identity
        message = HeartbeatRequest(
            group_id=identity.group_id,
            generation_id=identity.generation,
            member_id=identity.member_id,
            group_instance_id=identity.group_instance_id,
        )
        self._out = Request(message, node, channel=Channel.HEARTBEAT, context=identity.now)
        return self._out

    def is_mine(self, request: Request) -> bool:
        """Whether the request is the heartbeat that is out."""
        return request is self._out

    def answered(self, request: Request, *, keeps_session: bool, now_ms: int) -> bool:
        """The heartbeat got an answer; False if it speaks of an older generation, and so says nothing."""
        self._out = None
        if request.context != self._identity.now:
            return False
        if keeps_session:
            self.extend_session(now_ms)
        return True

    def failed(self, now_ms: int) -> None:
        """The heartbeat got no answer: send another one soon."""
        self._out = None
        self._heartbeat_at_ms = min(self._heartbeat_at_ms, now_ms + self._settings.retry_backoff_ms)
