"""RemoveRaftVoterRequest, RemoveRaftVoterResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.base import Message


class RemoveRaftVoterRequest(Message):
    __slots__ = ("cluster_id", "voter_id", "voter_directory_id")

    def __init__(
        self,
        *,
        cluster_id: str | None = "",
        voter_id: int = 0,
        voter_directory_id: Uuid = ZERO_UUID,
    ) -> None:
        self.cluster_id = cluster_id
        self.voter_id = voter_id
        self.voter_directory_id = voter_directory_id
        self.unknown_tags = None

    KEY = 81
    SCHEMA = """\
RemoveRaftVoterRequest key=81 type=request listeners=controller,broker versions=0 flexible=0+
  ClusterId string 0+ nullable=0+
  VoterId int32 0+
  VoterDirectoryId uuid 0+
"""
    STRUCTS = ()


class RemoveRaftVoterResponse(Message):
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

    KEY = 81
    SCHEMA = """\
RemoveRaftVoterResponse key=81 type=response versions=0 flexible=0+
  ThrottleTimeMs int32 0+
  ErrorCode int16 0+
  ErrorMessage string 0+ nullable=0+ ignorable
"""
    STRUCTS = ()
