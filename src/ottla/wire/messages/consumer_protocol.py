"""ConsumerProtocolAssignment, ConsumerProtocolSubscription. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import EMPTY, Bytes, Message, Struct


class ConsumerProtocolAssignmentTopicPartition(Struct):
    __slots__ = ("topic", "partitions")

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[int] = EMPTY,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class ConsumerProtocolAssignment(Message):
    __slots__ = ("assigned_partitions", "user_data")

    def __init__(
        self,
        *,
        assigned_partitions: list[ConsumerProtocolAssignmentTopicPartition] = EMPTY,
        user_data: Bytes | None = None,
    ) -> None:
        self.assigned_partitions = [] if assigned_partitions is EMPTY else assigned_partitions
        self.user_data = user_data
        self.unknown_tags = None

    SCHEMA = """\
ConsumerProtocolAssignment type=data versions=0-3 flexible=none
  AssignedPartitions []TopicPartition 0+
    Topic string 0+ key entity=topicName
    Partitions []int32 0+
  UserData bytes 0+ nullable=0+ default=null zerocopy
"""
    STRUCTS = (ConsumerProtocolAssignmentTopicPartition,)


class ConsumerProtocolSubscriptionTopicPartition(Struct):
    __slots__ = ("topic", "partitions")

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[int] = EMPTY,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class ConsumerProtocolSubscription(Message):
    __slots__ = ("topics", "user_data", "owned_partitions", "generation_id", "rack_id")

    def __init__(
        self,
        *,
        topics: list[str] = EMPTY,
        user_data: Bytes | None = None,
        owned_partitions: list[ConsumerProtocolSubscriptionTopicPartition] = EMPTY,
        generation_id: int = -1,
        rack_id: str | None = None,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.user_data = user_data
        self.owned_partitions = [] if owned_partitions is EMPTY else owned_partitions
        self.generation_id = generation_id
        self.rack_id = rack_id
        self.unknown_tags = None

    SCHEMA = """\
ConsumerProtocolSubscription type=data versions=0-3 flexible=none
  Topics []string 0+
  UserData bytes 0+ nullable=0+ default=null zerocopy
  OwnedPartitions []TopicPartition 1+ ignorable
    Topic string 1+ key entity=topicName
    Partitions []int32 1+
  GenerationId int32 2+ default=-1 ignorable
  RackId string 3+ nullable=3+ default=null ignorable
"""
    STRUCTS = (ConsumerProtocolSubscriptionTopicPartition,)
