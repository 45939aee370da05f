"""LegacyOffsetCommitKey, LegacyOffsetCommitValue, OffsetCommitKey, OffsetCommitValue. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.base import Message


class LegacyOffsetCommitKey(Message):
    __slots__ = ("group", "topic", "partition")

    def __init__(
        self,
        *,
        group: str = "",
        topic: str = "",
        partition: int = 0,
    ) -> None:
        self.group = group
        self.topic = topic
        self.partition = partition
        self.unknown_tags = None

    KEY = 0
    SCHEMA = """\
LegacyOffsetCommitKey key=0 type=coordinator-key versions=0 flexible=none
  group string 0
  topic string 0
  partition int32 0
"""
    STRUCTS = ()


class LegacyOffsetCommitValue(Message):
    __slots__ = ("offset", "metadata", "commit_timestamp")

    def __init__(
        self,
        *,
        offset: int = 0,
        metadata: str = "",
        commit_timestamp: int = 0,
    ) -> None:
        self.offset = offset
        self.metadata = metadata
        self.commit_timestamp = commit_timestamp
        self.unknown_tags = None

    KEY = 0
    SCHEMA = """\
LegacyOffsetCommitValue key=0 type=coordinator-value versions=0 flexible=none
  offset int64 0
  metadata string 0
  commitTimestamp int64 0
"""
    STRUCTS = ()


class OffsetCommitKey(Message):
    __slots__ = ("group", "topic", "partition")

    def __init__(
        self,
        *,
        group: str = "",
        topic: str = "",
        partition: int = 0,
    ) -> None:
        self.group = group
        self.topic = topic
        self.partition = partition
        self.unknown_tags = None

    KEY = 1
    SCHEMA = """\
OffsetCommitKey key=1 type=coordinator-key versions=0 flexible=none
  group string 0
  topic string 0
  partition int32 0
"""
    STRUCTS = ()


class OffsetCommitValue(Message):
    __slots__ = ("offset", "leader_epoch", "metadata", "commit_timestamp", "expire_timestamp", "topic_id")

    def __init__(
        self,
        *,
        offset: int = 0,
        leader_epoch: int = -1,
        metadata: str = "",
        commit_timestamp: int = 0,
        expire_timestamp: int = -1,
        topic_id: Uuid = ZERO_UUID,
    ) -> None:
        self.offset = offset
        self.leader_epoch = leader_epoch
        self.metadata = metadata
        self.commit_timestamp = commit_timestamp
        self.expire_timestamp = expire_timestamp
        self.topic_id = topic_id
        self.unknown_tags = None

    KEY = 1
    SCHEMA = """\
OffsetCommitValue key=1 type=coordinator-value versions=0-4 flexible=4+
  offset int64 0+
  leaderEpoch int32 3+ default=-1 ignorable
  metadata string 0+
  commitTimestamp int64 0+
  expireTimestamp int64 1 default=-1 ignorable
  topicId uuid 4+ tag=0@4+ ignorable
"""
    STRUCTS = ()
