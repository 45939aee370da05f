"""RemoteLogSegmentMetadataRecord to RemoteLogSegmentMetadataSnapshotRecord. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.base import EMPTY, NEW, Message, Struct


class RemoteLogSegmentMetadataRecordSegmentLeaderEpochEntry(Struct):
    __slots__ = ("leader_epoch", "offset")

    def __init__(
        self,
        *,
        leader_epoch: int = 0,
        offset: int = 0,
    ) -> None:
        self.leader_epoch = leader_epoch
        self.offset = offset
        self.unknown_tags = None


class RemoteLogSegmentMetadataRecordTopicIdPartitionEntry(Struct):
    __slots__ = ("name", "id", "partition")

    def __init__(
        self,
        *,
        name: str = "",
        id: Uuid = ZERO_UUID,
        partition: int = 0,
    ) -> None:
        self.name = name
        self.id = id
        self.partition = partition
        self.unknown_tags = None


class RemoteLogSegmentMetadataRecordRemoteLogSegmentIdEntry(Struct):
    __slots__ = ("topic_id_partition", "id")

    def __init__(
        self,
        *,
        topic_id_partition: RemoteLogSegmentMetadataRecordTopicIdPartitionEntry = NEW,
        id: Uuid = ZERO_UUID,
    ) -> None:
        self.topic_id_partition = RemoteLogSegmentMetadataRecordTopicIdPartitionEntry() if topic_id_partition is NEW else topic_id_partition
        self.id = id
        self.unknown_tags = None


class RemoteLogSegmentMetadataRecord(Message):
    __slots__ = ("remote_log_segment_id", "start_offset", "end_offset", "broker_id", "max_timestamp_ms", "event_timestamp_ms", "segment_leader_epochs", "segment_size_in_bytes", "custom_metadata", "remote_log_segment_state", "txn_index_empty")

    def __init__(
        self,
        *,
        remote_log_segment_id: RemoteLogSegmentMetadataRecordRemoteLogSegmentIdEntry = NEW,
        start_offset: int = 0,
        end_offset: int = 0,
        broker_id: int = 0,
        max_timestamp_ms: int = 0,
        event_timestamp_ms: int = 0,
        segment_leader_epochs: list[RemoteLogSegmentMetadataRecordSegmentLeaderEpochEntry] = EMPTY,
        segment_size_in_bytes: int = 0,
        custom_metadata: bytes | None = None,
        remote_log_segment_state: int = 0,
        txn_index_empty: bool = False,
    ) -> None:
        self.remote_log_segment_id = RemoteLogSegmentMetadataRecordRemoteLogSegmentIdEntry() if remote_log_segment_id is NEW else remote_log_segment_id
        self.start_offset = start_offset
        self.end_offset = end_offset
        self.broker_id = broker_id
        self.max_timestamp_ms = max_timestamp_ms
        self.event_timestamp_ms = event_timestamp_ms
        self.segment_leader_epochs = [] if segment_leader_epochs is EMPTY else segment_leader_epochs
        self.segment_size_in_bytes = segment_size_in_bytes
        self.custom_metadata = custom_metadata
        self.remote_log_segment_state = remote_log_segment_state
        self.txn_index_empty = txn_index_empty
        self.unknown_tags = None

    KEY = 0
    SCHEMA = """\
RemoteLogSegmentMetadataRecord key=0 type=metadata versions=0 flexible=0+
  RemoteLogSegmentId RemoteLogSegmentIdEntry 0+
    TopicIdPartition TopicIdPartitionEntry 0+
      Name string 0+
      Id uuid 0+
      Partition int32 0+
    Id uuid 0+
  StartOffset int64 0+
  EndOffset int64 0+
  BrokerId int32 0+
  MaxTimestampMs int64 0+
  EventTimestampMs int64 0+
  SegmentLeaderEpochs []SegmentLeaderEpochEntry 0+
    LeaderEpoch int32 0+
    Offset int64 0+
  SegmentSizeInBytes int32 0+
  CustomMetadata bytes 0+ nullable=0+ default=null
  RemoteLogSegmentState int8 0+
  TxnIndexEmpty bool 0+ tag=0@0+
"""
    STRUCTS = (RemoteLogSegmentMetadataRecordRemoteLogSegmentIdEntry, RemoteLogSegmentMetadataRecordTopicIdPartitionEntry, RemoteLogSegmentMetadataRecordSegmentLeaderEpochEntry)


class RemoteLogSegmentMetadataUpdateRecordTopicIdPartitionEntry(Struct):
    __slots__ = ("name", "id", "partition")

    def __init__(
        self,
        *,
        name: str = "",
        id: Uuid = ZERO_UUID,
        partition: int = 0,
    ) -> None:
        self.name = name
        self.id = id
        self.partition = partition
        self.unknown_tags = None


class RemoteLogSegmentMetadataUpdateRecordRemoteLogSegmentIdEntry(Struct):
    __slots__ = ("topic_id_partition", "id")

    def __init__(
        self,
        *,
        topic_id_partition: RemoteLogSegmentMetadataUpdateRecordTopicIdPartitionEntry = NEW,
        id: Uuid = ZERO_UUID,
    ) -> None:
        self.topic_id_partition = RemoteLogSegmentMetadataUpdateRecordTopicIdPartitionEntry() if topic_id_partition is NEW else topic_id_partition
        self.id = id
        self.unknown_tags = None


class RemoteLogSegmentMetadataUpdateRecord(Message):
    __slots__ = ("remote_log_segment_id", "broker_id", "event_timestamp_ms", "custom_metadata", "remote_log_segment_state")

    def __init__(
        self,
        *,
        remote_log_segment_id: RemoteLogSegmentMetadataUpdateRecordRemoteLogSegmentIdEntry = NEW,
        broker_id: int = 0,
        event_timestamp_ms: int = 0,
        custom_metadata: bytes | None = None,
        remote_log_segment_state: int = 0,
    ) -> None:
        self.remote_log_segment_id = RemoteLogSegmentMetadataUpdateRecordRemoteLogSegmentIdEntry() if remote_log_segment_id is NEW else remote_log_segment_id
        self.broker_id = broker_id
        self.event_timestamp_ms = event_timestamp_ms
        self.custom_metadata = custom_metadata
        self.remote_log_segment_state = remote_log_segment_state
        self.unknown_tags = None

    KEY = 1
    SCHEMA = """\
RemoteLogSegmentMetadataUpdateRecord key=1 type=metadata versions=0 flexible=0+
  RemoteLogSegmentId RemoteLogSegmentIdEntry 0+
    TopicIdPartition TopicIdPartitionEntry 0+
      Name string 0+
      Id uuid 0+
      Partition int32 0+
    Id uuid 0+
  BrokerId int32 0+
  EventTimestampMs int64 0+
  CustomMetadata bytes 0+ nullable=0+ default=null
  RemoteLogSegmentState int8 0+
"""
    STRUCTS = (RemoteLogSegmentMetadataUpdateRecordRemoteLogSegmentIdEntry, RemoteLogSegmentMetadataUpdateRecordTopicIdPartitionEntry)


class RemotePartitionDeleteMetadataRecordTopicIdPartitionEntry(Struct):
    __slots__ = ("name", "id", "partition")

    def __init__(
        self,
        *,
        name: str = "",
        id: Uuid = ZERO_UUID,
        partition: int = 0,
    ) -> None:
        self.name = name
        self.id = id
        self.partition = partition
        self.unknown_tags = None


class RemotePartitionDeleteMetadataRecord(Message):
    __slots__ = ("topic_id_partition", "broker_id", "event_timestamp_ms", "remote_partition_delete_state")

    def __init__(
        self,
        *,
        topic_id_partition: RemotePartitionDeleteMetadataRecordTopicIdPartitionEntry = NEW,
        broker_id: int = 0,
        event_timestamp_ms: int = 0,
        remote_partition_delete_state: int = 0,
    ) -> None:
        self.topic_id_partition = RemotePartitionDeleteMetadataRecordTopicIdPartitionEntry() if topic_id_partition is NEW else topic_id_partition
        self.broker_id = broker_id
        self.event_timestamp_ms = event_timestamp_ms
        self.remote_partition_delete_state = remote_partition_delete_state
        self.unknown_tags = None

    KEY = 2
    SCHEMA = """\
RemotePartitionDeleteMetadataRecord key=2 type=metadata versions=0 flexible=0+
  TopicIdPartition TopicIdPartitionEntry 0+
    Name string 0+
    Id uuid 0+
    Partition int32 0+
  BrokerId int32 0+
  EventTimestampMs int64 0+
  RemotePartitionDeleteState int8 0+
"""
    STRUCTS = (RemotePartitionDeleteMetadataRecordTopicIdPartitionEntry,)


class RemoteLogSegmentMetadataSnapshotRecordSegmentLeaderEpochEntry(Struct):
    __slots__ = ("leader_epoch", "offset")

    def __init__(
        self,
        *,
        leader_epoch: int = 0,
        offset: int = 0,
    ) -> None:
        self.leader_epoch = leader_epoch
        self.offset = offset
        self.unknown_tags = None


class RemoteLogSegmentMetadataSnapshotRecord(Message):
    __slots__ = ("segment_id", "start_offset", "end_offset", "broker_id", "max_timestamp_ms", "event_timestamp_ms", "segment_leader_epochs", "segment_size_in_bytes", "custom_metadata", "remote_log_segment_state", "txn_index_empty")

    def __init__(
        self,
        *,
        segment_id: Uuid = ZERO_UUID,
        start_offset: int = 0,
        end_offset: int = 0,
        broker_id: int = 0,
        max_timestamp_ms: int = 0,
        event_timestamp_ms: int = 0,
        segment_leader_epochs: list[RemoteLogSegmentMetadataSnapshotRecordSegmentLeaderEpochEntry] = EMPTY,
        segment_size_in_bytes: int = 0,
        custom_metadata: bytes | None = None,
        remote_log_segment_state: int = 0,
        txn_index_empty: bool = False,
    ) -> None:
        self.segment_id = segment_id
        self.start_offset = start_offset
        self.end_offset = end_offset
        self.broker_id = broker_id
        self.max_timestamp_ms = max_timestamp_ms
        self.event_timestamp_ms = event_timestamp_ms
        self.segment_leader_epochs = [] if segment_leader_epochs is EMPTY else segment_leader_epochs
        self.segment_size_in_bytes = segment_size_in_bytes
        self.custom_metadata = custom_metadata
        self.remote_log_segment_state = remote_log_segment_state
        self.txn_index_empty = txn_index_empty
        self.unknown_tags = None

    KEY = 3
    SCHEMA = """\
RemoteLogSegmentMetadataSnapshotRecord key=3 type=metadata versions=0 flexible=0+
  SegmentId uuid 0+
  StartOffset int64 0+
  EndOffset int64 0+
  BrokerId int32 0+
  MaxTimestampMs int64 0+
  EventTimestampMs int64 0+
  SegmentLeaderEpochs []SegmentLeaderEpochEntry 0+
    LeaderEpoch int32 0+
    Offset int64 0+
  SegmentSizeInBytes int32 0+
  CustomMetadata bytes 0+ nullable=0+ default=null
  RemoteLogSegmentState int8 0+
  TxnIndexEmpty bool 0+ tag=0@0+
"""
    STRUCTS = (RemoteLogSegmentMetadataSnapshotRecordSegmentLeaderEpochEntry,)
