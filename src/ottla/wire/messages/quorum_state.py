"""QuorumStateData. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.base import EMPTY, Message, Struct


class Voter(Struct):
    __slots__ = ("voter_id",)

    def __init__(
        self,
        *,
        voter_id: int = 0,
    ) -> None:
        self.voter_id = voter_id
        self.unknown_tags = None


class QuorumStateData(Message):
    __slots__ = ("cluster_id", "leader_id", "leader_epoch", "voted_id", "voted_directory_id", "applied_offset", "current_voters")

    def __init__(
        self,
        *,
        cluster_id: str = "",
        leader_id: int = -1,
        leader_epoch: int = -1,
        voted_id: int = -1,
        voted_directory_id: Uuid = ZERO_UUID,
        applied_offset: int = 0,
        current_voters: list[Voter] | None = EMPTY,
    ) -> None:
        self.cluster_id = cluster_id
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.voted_id = voted_id
        self.voted_directory_id = voted_directory_id
        self.applied_offset = applied_offset
        self.current_voters = [] if current_voters is EMPTY else current_voters
        self.unknown_tags = None

    SCHEMA = """\
QuorumStateData type=data versions=0-1 flexible=0+
  ClusterId string 0
  LeaderId int32 0+ default=-1
  LeaderEpoch int32 0+ default=-1
  VotedId int32 0+ default=-1
  VotedDirectoryId uuid 1+
  AppliedOffset int64 0
  CurrentVoters []Voter 0 nullable=0
    VoterId int32 0
"""
    STRUCTS = (Voter,)
