"""ControlRecordTypeSchema to VotersRecord. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.base import EMPTY, NEW, Message, Struct


class ControlRecordTypeSchema(Message):
    __slots__ = ("type",)

    def __init__(
        self,
        *,
        type: int = 0,
    ) -> None:
        self.type = type
        self.unknown_tags = None

    SCHEMA = """\
ControlRecordTypeSchema type=data versions=0 flexible=none
  Type int16 0+
"""
    STRUCTS = ()


class EndTxnMarker(Message):
    __slots__ = ("coordinator_epoch",)

    def __init__(
        self,
        *,
        coordinator_epoch: int = 0,
    ) -> None:
        self.coordinator_epoch = coordinator_epoch
        self.unknown_tags = None

    SCHEMA = """\
EndTxnMarker type=data versions=0 flexible=none
  CoordinatorEpoch int32 0+
"""
    STRUCTS = ()


class KRaftVersionRecord(Message):
    __slots__ = ("version", "kraft_version")

    def __init__(
        self,
        *,
        version: int = 0,
        kraft_version: int = 0,
    ) -> None:
        self.version = version
        self.kraft_version = kraft_version
        self.unknown_tags = None

    SCHEMA = """\
KRaftVersionRecord type=data versions=0 flexible=0+
  Version int16 0+
  KRaftVersion int16 0+
"""
    STRUCTS = ()


class LeaderChangeMessageVoter(Struct):
    __slots__ = ("voter_id", "voter_directory_id")

    def __init__(
        self,
        *,
        voter_id: int = 0,
        voter_directory_id: Uuid = ZERO_UUID,
    ) -> None:
        self.voter_id = voter_id
        self.voter_directory_id = voter_directory_id
        self.unknown_tags = None


class LeaderChangeMessage(Message):
    __slots__ = ("version", "leader_id", "voters", "granting_voters")

    def __init__(
        self,
        *,
        version: int = 0,
        leader_id: int = 0,
        voters: list[LeaderChangeMessageVoter] = EMPTY,
        granting_voters: list[LeaderChangeMessageVoter] = EMPTY,
    ) -> None:
        self.version = version
        self.leader_id = leader_id
        self.voters = [] if voters is EMPTY else voters
        self.granting_voters = [] if granting_voters is EMPTY else granting_voters
        self.unknown_tags = None

    SCHEMA = """\
LeaderChangeMessage type=data versions=0-1 flexible=0+
  Version int16 0+
  LeaderId int32 0+ entity=brokerId
  Voters []Voter 0+
  GrantingVoters []Voter 0+
  struct Voter 0+
    VoterId int32 0+
    VoterDirectoryId uuid 1+
"""
    STRUCTS = (LeaderChangeMessageVoter,)


class SnapshotFooterRecord(Message):
    __slots__ = ("version",)

    def __init__(
        self,
        *,
        version: int = 0,
    ) -> None:
        self.version = version
        self.unknown_tags = None

    SCHEMA = """\
SnapshotFooterRecord type=data versions=0 flexible=0+
  Version int16 0+
"""
    STRUCTS = ()


class SnapshotHeaderRecord(Message):
    __slots__ = ("version", "last_contained_log_timestamp")

    def __init__(
        self,
        *,
        version: int = 0,
        last_contained_log_timestamp: int = 0,
    ) -> None:
        self.version = version
        self.last_contained_log_timestamp = last_contained_log_timestamp
        self.unknown_tags = None

    SCHEMA = """\
SnapshotHeaderRecord type=data versions=0 flexible=0+
  Version int16 0+
  LastContainedLogTimestamp int64 0+
"""
    STRUCTS = ()


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


class Endpoint(Struct):
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


class VotersRecordVoter(Struct):
    __slots__ = ("voter_id", "voter_directory_id", "endpoints", "kraft_version_feature")

    def __init__(
        self,
        *,
        voter_id: int = 0,
        voter_directory_id: Uuid = ZERO_UUID,
        endpoints: list[Endpoint] = EMPTY,
        kraft_version_feature: KRaftVersionFeature = NEW,
    ) -> None:
        self.voter_id = voter_id
        self.voter_directory_id = voter_directory_id
        self.endpoints = [] if endpoints is EMPTY else endpoints
        self.kraft_version_feature = KRaftVersionFeature() if kraft_version_feature is NEW else kraft_version_feature
        self.unknown_tags = None


class VotersRecord(Message):
    __slots__ = ("version", "voters")

    def __init__(
        self,
        *,
        version: int = 0,
        voters: list[VotersRecordVoter] = EMPTY,
    ) -> None:
        self.version = version
        self.voters = [] if voters is EMPTY else voters
        self.unknown_tags = None

    SCHEMA = """\
VotersRecord type=data versions=0 flexible=0+
  Version int16 0+
  Voters []Voter 0+
    VoterId int32 0+ entity=brokerId
    VoterDirectoryId uuid 0+
    Endpoints []Endpoint 0+
      Name string 0+ key
      Host string 0+
      Port uint16 0+
    KRaftVersionFeature KRaftVersionFeature 0+
      MinSupportedVersion int16 0+
      MaxSupportedVersion int16 0+
"""
    STRUCTS = (VotersRecordVoter, Endpoint, KRaftVersionFeature)
