"""ConsumerGroupMetadataKey to ConsumerGroupRegularExpressionValue. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.base import EMPTY, NEW, Message, Struct


class ConsumerGroupMetadataKey(Message):
    __slots__ = ("group_id",)

    def __init__(
        self,
        *,
        group_id: str = "",
    ) -> None:
        self.group_id = group_id
        self.unknown_tags = None

    KEY = 3
    SCHEMA = """\
ConsumerGroupMetadataKey key=3 type=coordinator-key versions=0 flexible=none
  GroupId string 0
"""
    STRUCTS = ()


class ConsumerGroupMetadataValue(Message):
    __slots__ = ("epoch", "metadata_hash")

    def __init__(
        self,
        *,
        epoch: int = 0,
        metadata_hash: int = 0,
    ) -> None:
        self.epoch = epoch
        self.metadata_hash = metadata_hash
        self.unknown_tags = None

    KEY = 3
    SCHEMA = """\
ConsumerGroupMetadataValue key=3 type=coordinator-value versions=0 flexible=0+
  Epoch int32 0+
  MetadataHash int64 0+ tag=0@0+ default=0
"""
    STRUCTS = ()


class ConsumerGroupPartitionMetadataKey(Message):
    __slots__ = ("group_id",)

    def __init__(
        self,
        *,
        group_id: str = "",
    ) -> None:
        self.group_id = group_id
        self.unknown_tags = None

    KEY = 4
    SCHEMA = """\
ConsumerGroupPartitionMetadataKey key=4 type=coordinator-key versions=0 flexible=none
  GroupId string 0
"""
    STRUCTS = ()


class PartitionMetadata(Struct):
    __slots__ = ("partition", "racks")

    def __init__(
        self,
        *,
        partition: int = 0,
        racks: list[str] = EMPTY,
    ) -> None:
        self.partition = partition
        self.racks = [] if racks is EMPTY else racks
        self.unknown_tags = None


class TopicMetadata(Struct):
    __slots__ = ("topic_id", "topic_name", "num_partitions", "partition_metadata")

    def __init__(
        self,
        *,
        topic_id: Uuid = ZERO_UUID,
        topic_name: str = "",
        num_partitions: int = 0,
        partition_metadata: list[PartitionMetadata] = EMPTY,
    ) -> None:
        self.topic_id = topic_id
        self.topic_name = topic_name
        self.num_partitions = num_partitions
        self.partition_metadata = [] if partition_metadata is EMPTY else partition_metadata
        self.unknown_tags = None


class ConsumerGroupPartitionMetadataValue(Message):
    __slots__ = ("topics",)

    def __init__(
        self,
        *,
        topics: list[TopicMetadata] = EMPTY,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None

    KEY = 4
    SCHEMA = """\
ConsumerGroupPartitionMetadataValue key=4 type=coordinator-value versions=0 flexible=0+
  Topics []TopicMetadata 0+
    TopicId uuid 0+
    TopicName string 0+
    NumPartitions int32 0+
    PartitionMetadata []PartitionMetadata 0+
      Partition int32 0+
      Racks []string 0+
"""
    STRUCTS = (TopicMetadata, PartitionMetadata)


class ConsumerGroupMemberMetadataKey(Message):
    __slots__ = ("group_id", "member_id")

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.unknown_tags = None

    KEY = 5
    SCHEMA = """\
ConsumerGroupMemberMetadataKey key=5 type=coordinator-key versions=0 flexible=none
  GroupId string 0
  MemberId string 0
"""
    STRUCTS = ()


class ClassicProtocol(Struct):
    __slots__ = ("name", "metadata")

    def __init__(
        self,
        *,
        name: str = "",
        metadata: bytes = b"",
    ) -> None:
        self.name = name
        self.metadata = metadata
        self.unknown_tags = None


class ClassicMemberMetadata(Struct):
    __slots__ = ("session_timeout_ms", "supported_protocols")

    def __init__(
        self,
        *,
        session_timeout_ms: int = 0,
        supported_protocols: list[ClassicProtocol] = EMPTY,
    ) -> None:
        self.session_timeout_ms = session_timeout_ms
        self.supported_protocols = [] if supported_protocols is EMPTY else supported_protocols
        self.unknown_tags = None


class ConsumerGroupMemberMetadataValue(Message):
    __slots__ = ("instance_id", "rack_id", "client_id", "client_host", "subscribed_topic_names", "subscribed_topic_regex", "rebalance_timeout_ms", "server_assignor", "classic_member_metadata")

    def __init__(
        self,
        *,
        instance_id: str | None = "",
        rack_id: str | None = "",
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: list[str] = EMPTY,
        subscribed_topic_regex: str | None = "",
        rebalance_timeout_ms: int = -1,
        server_assignor: str | None = "",
        classic_member_metadata: ClassicMemberMetadata | None = NEW,
    ) -> None:
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.subscribed_topic_names = [] if subscribed_topic_names is EMPTY else subscribed_topic_names
        self.subscribed_topic_regex = subscribed_topic_regex
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.server_assignor = server_assignor
        self.classic_member_metadata = ClassicMemberMetadata() if classic_member_metadata is NEW else classic_member_metadata
        self.unknown_tags = None

    KEY = 5
    SCHEMA = """\
ConsumerGroupMemberMetadataValue key=5 type=coordinator-value versions=0 flexible=0+
  InstanceId string 0+ nullable=0+
  RackId string 0+ nullable=0+
  ClientId string 0+
  ClientHost string 0+
  SubscribedTopicNames []string 0+
  SubscribedTopicRegex string 0+ nullable=0+
  RebalanceTimeoutMs int32 0+ default=-1
  ServerAssignor string 0+ nullable=0+
  ClassicMemberMetadata ClassicMemberMetadata 0+ nullable=0+ tag=0@0+
    SessionTimeoutMs int32 0+
    SupportedProtocols []ClassicProtocol 0+
      Name string 0+
      Metadata bytes 0+
"""
    STRUCTS = (ClassicMemberMetadata, ClassicProtocol)


class ConsumerGroupTargetAssignmentMetadataKey(Message):
    __slots__ = ("group_id",)

    def __init__(
        self,
        *,
        group_id: str = "",
    ) -> None:
        self.group_id = group_id
        self.unknown_tags = None

    KEY = 6
    SCHEMA = """\
ConsumerGroupTargetAssignmentMetadataKey key=6 type=coordinator-key versions=0 flexible=none
  GroupId string 0
"""
    STRUCTS = ()


class ConsumerGroupTargetAssignmentMetadataValue(Message):
    __slots__ = ("assignment_epoch", "assignment_timestamp")

    def __init__(
        self,
        *,
        assignment_epoch: int = 0,
        assignment_timestamp: int = 0,
    ) -> None:
        self.assignment_epoch = assignment_epoch
        self.assignment_timestamp = assignment_timestamp
        self.unknown_tags = None

    KEY = 6
    SCHEMA = """\
ConsumerGroupTargetAssignmentMetadataValue key=6 type=coordinator-value versions=0 flexible=0+
  AssignmentEpoch int32 0+
  AssignmentTimestamp int64 0+ tag=0@0+ default=0 ignorable
"""
    STRUCTS = ()


class ConsumerGroupTargetAssignmentMemberKey(Message):
    __slots__ = ("group_id", "member_id")

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.unknown_tags = None

    KEY = 7
    SCHEMA = """\
ConsumerGroupTargetAssignmentMemberKey key=7 type=coordinator-key versions=0 flexible=none
  GroupId string 0
  MemberId string 0
"""
    STRUCTS = ()


class TopicPartition(Struct):
    __slots__ = ("topic_id", "partitions")

    def __init__(
        self,
        *,
        topic_id: Uuid = ZERO_UUID,
        partitions: list[int] = EMPTY,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class ConsumerGroupTargetAssignmentMemberValue(Message):
    __slots__ = ("topic_partitions",)

    def __init__(
        self,
        *,
        topic_partitions: list[TopicPartition] = EMPTY,
    ) -> None:
        self.topic_partitions = [] if topic_partitions is EMPTY else topic_partitions
        self.unknown_tags = None

    KEY = 7
    SCHEMA = """\
ConsumerGroupTargetAssignmentMemberValue key=7 type=coordinator-value versions=0 flexible=0+
  TopicPartitions []TopicPartition 0+
    TopicId uuid 0+
    Partitions []int32 0+
"""
    STRUCTS = (TopicPartition,)


class ConsumerGroupCurrentMemberAssignmentKey(Message):
    __slots__ = ("group_id", "member_id")

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.unknown_tags = None

    KEY = 8
    SCHEMA = """\
ConsumerGroupCurrentMemberAssignmentKey key=8 type=coordinator-key versions=0 flexible=none
  GroupId string 0
  MemberId string 0
"""
    STRUCTS = ()


class TopicPartitions(Struct):
    __slots__ = ("topic_id", "partitions", "assignment_epochs")

    def __init__(
        self,
        *,
        topic_id: Uuid = ZERO_UUID,
        partitions: list[int] = EMPTY,
        assignment_epochs: list[int] | None = EMPTY,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions
        self.assignment_epochs = [] if assignment_epochs is EMPTY else assignment_epochs
        self.unknown_tags = None


class ConsumerGroupCurrentMemberAssignmentValue(Message):
    __slots__ = ("member_epoch", "previous_member_epoch", "state", "assigned_partitions", "partitions_pending_revocation")

    def __init__(
        self,
        *,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        assigned_partitions: list[TopicPartitions] = EMPTY,
        partitions_pending_revocation: list[TopicPartitions] = EMPTY,
    ) -> None:
        self.member_epoch = member_epoch
        self.previous_member_epoch = previous_member_epoch
        self.state = state
        self.assigned_partitions = [] if assigned_partitions is EMPTY else assigned_partitions
        self.partitions_pending_revocation = [] if partitions_pending_revocation is EMPTY else partitions_pending_revocation
        self.unknown_tags = None

    KEY = 8
    SCHEMA = """\
ConsumerGroupCurrentMemberAssignmentValue key=8 type=coordinator-value versions=0 flexible=0+
  MemberEpoch int32 0+
  PreviousMemberEpoch int32 0+
  State int8 0+
  AssignedPartitions []TopicPartitions 0+
  PartitionsPendingRevocation []TopicPartitions 0+
  struct TopicPartitions 0+
    TopicId uuid 0+
    Partitions []int32 0+
    AssignmentEpochs []int32 0+ nullable=0+ tag=0@0+
"""
    STRUCTS = (TopicPartitions,)


class ConsumerGroupRegularExpressionKey(Message):
    __slots__ = ("group_id", "regular_expression")

    def __init__(
        self,
        *,
        group_id: str = "",
        regular_expression: str = "",
    ) -> None:
        self.group_id = group_id
        self.regular_expression = regular_expression
        self.unknown_tags = None

    KEY = 16
    SCHEMA = """\
ConsumerGroupRegularExpressionKey key=16 type=coordinator-key versions=0 flexible=none
  GroupId string 0
  RegularExpression string 0
"""
    STRUCTS = ()


class ConsumerGroupRegularExpressionValue(Message):
    __slots__ = ("topics", "version", "timestamp")

    def __init__(
        self,
        *,
        topics: list[str] = EMPTY,
        version: int = 0,
        timestamp: int = 0,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.version = version
        self.timestamp = timestamp
        self.unknown_tags = None

    KEY = 16
    SCHEMA = """\
ConsumerGroupRegularExpressionValue key=16 type=coordinator-value versions=0 flexible=0+
  Topics []string 0+
  Version int64 0+
  Timestamp int64 0+
"""
    STRUCTS = ()
