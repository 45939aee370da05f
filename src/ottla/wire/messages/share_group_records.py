"""ShareGroupMemberMetadataKey to ShareGroupStatePartitionMetadataValue. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.base import EMPTY, Message, Struct


class ShareGroupMemberMetadataKey(Message):
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

    KEY = 10
    SCHEMA = """\
ShareGroupMemberMetadataKey key=10 type=coordinator-key versions=0 flexible=none
  GroupId string 0
  MemberId string 0
"""
    STRUCTS = ()


class ShareGroupMemberMetadataValue(Message):
    __slots__ = ("rack_id", "client_id", "client_host", "subscribed_topic_names")

    def __init__(
        self,
        *,
        rack_id: str | None = "",
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: list[str] = EMPTY,
    ) -> None:
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.subscribed_topic_names = [] if subscribed_topic_names is EMPTY else subscribed_topic_names
        self.unknown_tags = None

    KEY = 10
    SCHEMA = """\
ShareGroupMemberMetadataValue key=10 type=coordinator-value versions=0 flexible=0+
  RackId string 0+ nullable=0+
  ClientId string 0+
  ClientHost string 0+
  SubscribedTopicNames []string 0+
"""
    STRUCTS = ()


class ShareGroupMetadataKey(Message):
    __slots__ = ("group_id",)

    def __init__(
        self,
        *,
        group_id: str = "",
    ) -> None:
        self.group_id = group_id
        self.unknown_tags = None

    KEY = 11
    SCHEMA = """\
ShareGroupMetadataKey key=11 type=coordinator-key versions=0 flexible=none
  GroupId string 0
"""
    STRUCTS = ()


class ShareGroupMetadataValue(Message):
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

    KEY = 11
    SCHEMA = """\
ShareGroupMetadataValue key=11 type=coordinator-value versions=0 flexible=0+
  Epoch int32 0+
  MetadataHash int64 0+
"""
    STRUCTS = ()


class ShareGroupTargetAssignmentMetadataKey(Message):
    __slots__ = ("group_id",)

    def __init__(
        self,
        *,
        group_id: str = "",
    ) -> None:
        self.group_id = group_id
        self.unknown_tags = None

    KEY = 12
    SCHEMA = """\
ShareGroupTargetAssignmentMetadataKey key=12 type=coordinator-key versions=0 flexible=none
  GroupId string 0
"""
    STRUCTS = ()


class ShareGroupTargetAssignmentMetadataValue(Message):
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

    KEY = 12
    SCHEMA = """\
ShareGroupTargetAssignmentMetadataValue key=12 type=coordinator-value versions=0 flexible=0+
  AssignmentEpoch int32 0+
  AssignmentTimestamp int64 0+ tag=0@0+ default=0 ignorable
"""
    STRUCTS = ()


class ShareGroupTargetAssignmentMemberKey(Message):
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

    KEY = 13
    SCHEMA = """\
ShareGroupTargetAssignmentMemberKey key=13 type=coordinator-key versions=0 flexible=none
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


class ShareGroupTargetAssignmentMemberValue(Message):
    __slots__ = ("topic_partitions",)

    def __init__(
        self,
        *,
        topic_partitions: list[TopicPartition] = EMPTY,
    ) -> None:
        self.topic_partitions = [] if topic_partitions is EMPTY else topic_partitions
        self.unknown_tags = None

    KEY = 13
    SCHEMA = """\
ShareGroupTargetAssignmentMemberValue key=13 type=coordinator-value versions=0 flexible=0+
  TopicPartitions []TopicPartition 0+
    TopicId uuid 0+
    Partitions []int32 0+
"""
    STRUCTS = (TopicPartition,)


class ShareGroupCurrentMemberAssignmentKey(Message):
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

    KEY = 14
    SCHEMA = """\
ShareGroupCurrentMemberAssignmentKey key=14 type=coordinator-key versions=0 flexible=none
  GroupId string 0
  MemberId string 0
"""
    STRUCTS = ()


class TopicPartitions(Struct):
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


class ShareGroupCurrentMemberAssignmentValue(Message):
    __slots__ = ("member_epoch", "previous_member_epoch", "state", "assigned_partitions")

    def __init__(
        self,
        *,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        assigned_partitions: list[TopicPartitions] = EMPTY,
    ) -> None:
        self.member_epoch = member_epoch
        self.previous_member_epoch = previous_member_epoch
        self.state = state
        self.assigned_partitions = [] if assigned_partitions is EMPTY else assigned_partitions
        self.unknown_tags = None

    KEY = 14
    SCHEMA = """\
ShareGroupCurrentMemberAssignmentValue key=14 type=coordinator-value versions=0 flexible=0+
  MemberEpoch int32 0+
  PreviousMemberEpoch int32 0+
  State int8 0+
  AssignedPartitions []TopicPartitions 0+
  struct TopicPartitions 0+
    TopicId uuid 0+
    Partitions []int32 0+
"""
    STRUCTS = (TopicPartitions,)


class ShareGroupStatePartitionMetadataKey(Message):
    __slots__ = ("group_id",)

    def __init__(
        self,
        *,
        group_id: str = "",
    ) -> None:
        self.group_id = group_id
        self.unknown_tags = None

    KEY = 15
    SCHEMA = """\
ShareGroupStatePartitionMetadataKey key=15 type=coordinator-key versions=0 flexible=none
  GroupId string 0
"""
    STRUCTS = ()


class TopicInfo(Struct):
    __slots__ = ("topic_id", "topic_name")

    def __init__(
        self,
        *,
        topic_id: Uuid = ZERO_UUID,
        topic_name: str = "",
    ) -> None:
        self.topic_id = topic_id
        self.topic_name = topic_name
        self.unknown_tags = None


class TopicPartitionsInfo(Struct):
    __slots__ = ("topic_id", "topic_name", "partitions")

    def __init__(
        self,
        *,
        topic_id: Uuid = ZERO_UUID,
        topic_name: str = "",
        partitions: list[int] = EMPTY,
    ) -> None:
        self.topic_id = topic_id
        self.topic_name = topic_name
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class ShareGroupStatePartitionMetadataValue(Message):
    __slots__ = ("initializing_topics", "initialized_topics", "deleting_topics")

    def __init__(
        self,
        *,
        initializing_topics: list[TopicPartitionsInfo] = EMPTY,
        initialized_topics: list[TopicPartitionsInfo] = EMPTY,
        deleting_topics: list[TopicInfo] = EMPTY,
    ) -> None:
        self.initializing_topics = [] if initializing_topics is EMPTY else initializing_topics
        self.initialized_topics = [] if initialized_topics is EMPTY else initialized_topics
        self.deleting_topics = [] if deleting_topics is EMPTY else deleting_topics
        self.unknown_tags = None

    KEY = 15
    SCHEMA = """\
ShareGroupStatePartitionMetadataValue key=15 type=coordinator-value versions=0 flexible=0+
  InitializingTopics []TopicPartitionsInfo 0+
  InitializedTopics []TopicPartitionsInfo 0+
  DeletingTopics []TopicInfo 0+
  struct TopicPartitionsInfo 0+
    TopicId uuid 0+
    TopicName string 0+
    Partitions []int32 0+
  struct TopicInfo 0+
    TopicId uuid 0+
    TopicName string 0+
"""
    STRUCTS = (TopicPartitionsInfo, TopicInfo)
