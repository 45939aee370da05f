"""ShareSnapshotKey, ShareSnapshotValue, ShareUpdateKey, ShareUpdateValue. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.base import EMPTY, Message, Struct


class ShareSnapshotKey(Message):
    __slots__ = ("group_id", "topic_id", "partition")

    def __init__(
        self,
        *,
        group_id: str = "",
        topic_id: Uuid = ZERO_UUID,
        partition: int = 0,
    ) -> None:
        self.group_id = group_id
        self.topic_id = topic_id
        self.partition = partition
        self.unknown_tags = None

    KEY = 0
    SCHEMA = """\
ShareSnapshotKey key=0 type=coordinator-key versions=0 flexible=none
  GroupId string 0
  TopicId uuid 0
  Partition int32 0
"""
    STRUCTS = ()


class ShareSnapshotValueStateBatch(Struct):
    __slots__ = ("first_offset", "last_offset", "delivery_state", "delivery_count")

    def __init__(
        self,
        *,
        first_offset: int = 0,
        last_offset: int = 0,
        delivery_state: int = 0,
        delivery_count: int = 0,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.delivery_state = delivery_state
        self.delivery_count = delivery_count
        self.unknown_tags = None


class ShareSnapshotValue(Message):
    __slots__ = ("snapshot_epoch", "state_epoch", "leader_epoch", "start_offset", "delivery_complete_count", "create_timestamp", "write_timestamp", "state_batches")

    def __init__(
        self,
        *,
        snapshot_epoch: int = 0,
        state_epoch: int = 0,
        leader_epoch: int = 0,
        start_offset: int = 0,
        delivery_complete_count: int = -1,
        create_timestamp: int = 0,
        write_timestamp: int = 0,
        state_batches: list[ShareSnapshotValueStateBatch] = EMPTY,
    ) -> None:
        self.snapshot_epoch = snapshot_epoch
        self.state_epoch = state_epoch
        self.leader_epoch = leader_epoch
        self.start_offset = start_offset
        self.delivery_complete_count = delivery_complete_count
        self.create_timestamp = create_timestamp
        self.write_timestamp = write_timestamp
        self.state_batches = [] if state_batches is EMPTY else state_batches
        self.unknown_tags = None

    KEY = 0
    SCHEMA = """\
ShareSnapshotValue key=0 type=coordinator-value versions=0 flexible=0+
  SnapshotEpoch int32 0+
  StateEpoch int32 0+
  LeaderEpoch int32 0+
  StartOffset int64 0+
  DeliveryCompleteCount int32 0+ tag=0@0+ default=-1
  CreateTimestamp int64 0+
  WriteTimestamp int64 0+
  StateBatches []StateBatch 0+
    FirstOffset int64 0+
    LastOffset int64 0+
    DeliveryState int8 0+
    DeliveryCount int16 0+
"""
    STRUCTS = (ShareSnapshotValueStateBatch,)


class ShareUpdateKey(Message):
    __slots__ = ("group_id", "topic_id", "partition")

    def __init__(
        self,
        *,
        group_id: str = "",
        topic_id: Uuid = ZERO_UUID,
        partition: int = 0,
    ) -> None:
        self.group_id = group_id
        self.topic_id = topic_id
        self.partition = partition
        self.unknown_tags = None

    KEY = 1
    SCHEMA = """\
ShareUpdateKey key=1 type=coordinator-key versions=0 flexible=none
  GroupId string 0
  TopicId uuid 0
  Partition int32 0
"""
    STRUCTS = ()


class ShareUpdateValueStateBatch(Struct):
    __slots__ = ("first_offset", "last_offset", "delivery_state", "delivery_count")

    def __init__(
        self,
        *,
        first_offset: int = 0,
        last_offset: int = 0,
        delivery_state: int = 0,
        delivery_count: int = 0,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.delivery_state = delivery_state
        self.delivery_count = delivery_count
        self.unknown_tags = None


class ShareUpdateValue(Message):
    __slots__ = ("snapshot_epoch", "leader_epoch", "start_offset", "delivery_complete_count", "state_batches")

    def __init__(
        self,
        *,
        snapshot_epoch: int = 0,
        leader_epoch: int = 0,
        start_offset: int = 0,
        delivery_complete_count: int = -1,
        state_batches: list[ShareUpdateValueStateBatch] = EMPTY,
    ) -> None:
        self.snapshot_epoch = snapshot_epoch
        self.leader_epoch = leader_epoch
        self.start_offset = start_offset
        self.delivery_complete_count = delivery_complete_count
        self.state_batches = [] if state_batches is EMPTY else state_batches
        self.unknown_tags = None

    KEY = 1
    SCHEMA = """\
ShareUpdateValue key=1 type=coordinator-value versions=0 flexible=0+
  SnapshotEpoch int32 0+
  LeaderEpoch int32 0+
  StartOffset int64 0+
  DeliveryCompleteCount int32 0+ tag=0@0+ default=-1
  StateBatches []StateBatch 0+
    FirstOffset int64 0+
    LastOffset int64 0+
    DeliveryState int8 0+
    DeliveryCount int16 0+
"""
    STRUCTS = (ShareUpdateValueStateBatch,)
