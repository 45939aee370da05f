"""UpdateRaftVoterRequest, UpdateRaftVoterResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.base import EMPTY, NEW, Message, Struct


class KRaftVersionFeature(Struct):
    __slots__ = ("min_supported_version", "max_supported_version")

    def __init__(
        self,
        *,
        min_supported_version: int = 0,
        max_supported_version: int = 0,
    ) -> None:
        self.min_supported_version = min_supported_version
        self.max_supported_version = max_supported_version
        self.unknown_tags = None


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


class UpdateRaftVoterRequest(Message):
    __slots__ = ("cluster_id", "current_leader_epoch", "voter_id", "voter_directory_id", "listeners", "kraft_version_feature")

    def __init__(
        self,
        *,
        cluster_id: str | None = "",
        current_leader_epoch: int = 0,
        voter_id: int = 0,
        voter_directory_id: Uuid = ZERO_UUID,
        listeners: list[Listener] = EMPTY,
        kraft_version_feature: KRaftVersionFeature = NEW,
    ) -> None:
        self.cluster_id = cluster_id
        self.current_leader_epoch = current_leader_epoch
        self.voter_id = voter_id
        self.voter_directory_id = voter_directory_id
        self.listeners = [] if listeners is EMPTY else listeners
        self.kraft_version_feature = KRaftVersionFeature() if kraft_version_feature is NEW else kraft_version_feature
        self.unknown_tags = None

    KEY = 82
    SCHEMA = """\
UpdateRaftVoterRequest key=82 type=request listeners=controller versions=0 flexible=0+
  ClusterId string 0+ nullable=0+
  CurrentLeaderEpoch int32 0+
  VoterId int32 0+
  VoterDirectoryId uuid 0+
  Listeners []Listener 0+
    Name string 0+ key
    Host string 0+
    Port uint16 0+
  KRaftVersionFeature KRaftVersionFeature 0+
    MinSupportedVersion int16 0+
    MaxSupportedVersion int16 0+
"""
    STRUCTS = (Listener, KRaftVersionFeature)


class CurrentLeader(Struct):
    __slots__ = ("leader_id", "leader_epoch", "host", "port")

    def __init__(
        self,
        *,
        leader_id: int = -1,
        leader_epoch: int = -1,
        host: str = "",
        port: int = 0,
    ) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.host = host
        self.port = port
        self.unknown_tags = None


class UpdateRaftVoterResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "current_leader")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        current_leader: CurrentLeader | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.current_leader = current_leader
        self.unknown_tags = None

    KEY = 82
    SCHEMA = """\
UpdateRaftVoterResponse key=82 type=response versions=0 flexible=0+
  ThrottleTimeMs int32 0+
  ErrorCode int16 0+
  CurrentLeader CurrentLeader 0+ tag=0@0+
    LeaderId int32 0+ default=-1 entity=brokerId
    LeaderEpoch int32 0+ default=-1
    Host string 0+
    Port int32 0+
"""
    STRUCTS = (CurrentLeader,)
