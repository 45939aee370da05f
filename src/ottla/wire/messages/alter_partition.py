"""AlterPartitionRequest, AlterPartitionResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.base import EMPTY, Message, Struct


class BrokerState(Struct):
    __slots__ = ("broker_id", "broker_epoch")

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.unknown_tags = None


class AlterPartitionRequestPartitionData(Struct):
    __slots__ = ("partition_index", "leader_epoch", "new_isr", "new_isr_with_epochs", "leader_recovery_state", "partition_epoch")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        leader_epoch: int = 0,
        new_isr: list[int] = EMPTY,
        new_isr_with_epochs: list[BrokerState] = EMPTY,
        leader_recovery_state: int = 0,
        partition_epoch: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.leader_epoch = leader_epoch
        self.new_isr = [] if new_isr is EMPTY else new_isr
        self.new_isr_with_epochs = [] if new_isr_with_epochs is EMPTY else new_isr_with_epochs
        self.leader_recovery_state = leader_recovery_state
        self.partition_epoch = partition_epoch
        self.unknown_tags = None


class AlterPartitionRequestTopicData(Struct):
    __slots__ = ("topic_id", "partitions")

    def __init__(
        self,
        *,
        topic_id: Uuid = ZERO_UUID,
        partitions: list[AlterPartitionRequestPartitionData] = EMPTY,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class AlterPartitionRequest(Message):
    __slots__ = ("broker_id", "broker_epoch", "topics")

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        topics: list[AlterPartitionRequestTopicData] = EMPTY,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None

    KEY = 56
    SCHEMA = """\
AlterPartitionRequest key=56 type=request listeners=controller versions=2-3 flexible=0+
  BrokerId int32 0+ entity=brokerId
  BrokerEpoch int64 0+ default=-1
  Topics []TopicData 0+
    TopicId uuid 2+ ignorable
    Partitions []PartitionData 0+
      PartitionIndex int32 0+
      LeaderEpoch int32 0+
      NewIsr []int32 0-2 entity=brokerId
      NewIsrWithEpochs []BrokerState 3+
        BrokerId int32 3+ entity=brokerId
        BrokerEpoch int64 3+ default=-1
      LeaderRecoveryState int8 1+ default=0
      PartitionEpoch int32 0+
"""
    STRUCTS = (AlterPartitionRequestTopicData, AlterPartitionRequestPartitionData, BrokerState)


class AlterPartitionResponsePartitionData(Struct):
    __slots__ = ("partition_index", "error_code", "leader_id", "leader_epoch", "isr", "leader_recovery_state", "partition_epoch")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        leader_id: int = 0,
        leader_epoch: int = 0,
        isr: list[int] = EMPTY,
        leader_recovery_state: int = 0,
        partition_epoch: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.isr = [] if isr is EMPTY else isr
        self.leader_recovery_state = leader_recovery_state
        self.partition_epoch = partition_epoch
        self.unknown_tags = None


class AlterPartitionResponseTopicData(Struct):
    __slots__ = ("topic_id", "partitions")

    def __init__(
        self,
        *,
        topic_id: Uuid = ZERO_UUID,
        partitions: list[AlterPartitionResponsePartitionData] = EMPTY,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class AlterPartitionResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "topics")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        topics: list[AlterPartitionResponseTopicData] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None

    KEY = 56
    SCHEMA = """\
AlterPartitionResponse key=56 type=response versions=2-3 flexible=0+
  ThrottleTimeMs int32 0+
  ErrorCode int16 0+
  Topics []TopicData 0+
    TopicId uuid 2+ ignorable
    Partitions []PartitionData 0+
      PartitionIndex int32 0+
      ErrorCode int16 0+
      LeaderId int32 0+ entity=brokerId
      LeaderEpoch int32 0+
      Isr []int32 0+ entity=brokerId
      LeaderRecoveryState int8 1+ default=0 ignorable
      PartitionEpoch int32 0+
"""
    STRUCTS = (AlterPartitionResponseTopicData, AlterPartitionResponsePartitionData)
