"""ClassicMember: one member of a classic group, with its recorded state, its parked requests and its session."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ottla.coordinator.contract import Instant, Reply
from ottla.coordinator.groups.memory import MEMBER_BYTES, size_of


class Protocol(NamedTuple):
    """An assignment protocol that a member supports, with the member's metadata for the leader."""

    name: str
    metadata: bytes


class ClassicMember:
    """A member. `protocols` are in the member's order of preference; after a load only the chosen one is known."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "instance_id",
        "is_new",
        "join_reply",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session_ends_ms",
        "session_timeout_ms",
        "sync_reply",
    )

    def __init__(
        self,
        member_id: str,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: Iterable[Protocol],
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols: tuple[Protocol, ...] = ()
        self.set_protocols(protocols)
        self.assignment = assignment
        self.join_reply: Reply | None = None
        """The parked JoinGroup, until all members have joined."""
        self.sync_reply: Reply | None = None
        """The parked SyncGroup, until the leader has sent the assignment."""
        self.session_ends_ms = 0
        """The steady time at which the session expires, unless the member sends a request before."""
        self.is_new = False
        """Its first JoinGroup is parked: it may not know its id yet, and cannot send heartbeats."""

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    @property
    def is_kept_waiting(self) -> bool:
        """Whether a request of it is parked: then it sends nothing, and its session does not expire."""
        return not self.is_new and (self.join_reply is not None or self.sync_reply is not None)

    def set_protocols(self, protocols: Iterable[Protocol]) -> None:
        self.protocols = tuple({each.name: each for each in protocols}.values())

    def take_sync(self) -> Reply | None:
        """Take the parked SyncGroup, to answer it; None if there is none."""
        reply, self.sync_reply = self.sync_reply, None
        return reply

    def metadata(self, protocol_name: str | None) -> bytes:
        for name, metadata in self.protocols:
            if name == protocol_name:
                return metadata
        raise AssertionError(f"member {self.member_id} does not follow the protocol {protocol_name!r}")

    @property
    def size_bytes(self) -> int:
        """The approximate memory of the member."""
        parts = [part for protocol in self.protocols for part in protocol]
        return MEMBER_BYTES + size_of(self.member_id, self.instance_id, self.client_id, self.assignment, *parts)

    def heard(self, now: Instant) -> None:
        """Extend the session: a request of the member came."""
        self.session_ends_ms = now.steady_ms + self.session_timeout_ms

    def __repr__(self) -> str:
        static = f" (instance {self.instance_id})" if self.instance_id is not None else ""
        return f"{self.member_id}{static}"
