"""AddRaftVoterRequest, AddRaftVoterResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.base import EMPTY, Message, Struct


class Listener(Struct):
    __slots__ = ("name", "host", "port")

    def __init__(
        self,
        *,
        name: str = "",
        host: str = "",
        port: int = 0,
    ) -> None:
        self.name = name
        self.host = host
        self.port = port
        self.unknown_tags = None


class AddRaftVoterRequest(Message):
    __slots__ = ("cluster_id", "timeout_ms", "voter_id", "voter_directory_id", "listeners", "ack_when_committed")

    def __init__(
        self,
        *,
        cluster_id: str | None = "",
        timeout_ms: int = 0,
        voter_id: int = 0,
        voter_directory_id: Uuid = ZERO_UUID,
        listeners: list[Listener] = EMPTY,
        ack_when_committed: bool = True,
    ) -> None:
        self.cluster_id = cluster_id
        self.timeout_ms = timeout_ms
        self.voter_id = voter_id
        self.voter_directory_id = voter_directory_id
        self.listeners = [] if listeners is EMPTY else listeners
        self.ack_when_committed = ack_when_committed
        self.unknown_tags = None

    KEY = 80
    SCHEMA = """\
AddRaftVoterRequest key=80 type=request listeners=controller,broker versions=0-1 flexible=0+
  ClusterId string 0+ nullable=0+
  TimeoutMs int32 0+
  VoterId int32 0+
  VoterDirectoryId uuid 0+
  Listeners []Listener 0+
    Name string 0+ key
    Host string 0+
    Port uint16 0+
  AckWhenCommitted bool 1+ default=true
"""
    STRUCTS = (Listener,)


class AddRaftVoterResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tags = None

    KEY = 80
    SCHEMA = """\
AddRaftVoterResponse key=80 type=response versions=0-1 flexible=0+
  ThrottleTimeMs int32 0+
  ErrorCode int16 0+
  ErrorMessage string 0+ nullable=0+ ignorable
"""
    STRUCTS = ()
