"""AddPartitionsToTxnRequest, AddPartitionsToTxnResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import EMPTY, Message, Struct


class AddPartitionsToTxnTopic(Struct):
    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[int] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class AddPartitionsToTxnTransaction(Struct):
    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "verify_only", "topics")

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        verify_only: bool = False,
        topics: list[AddPartitionsToTxnTopic] = EMPTY,
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.verify_only = verify_only
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None


class AddPartitionsToTxnRequest(Message):
    __slots__ = ("transactions", "v3_and_below_transactional_id", "v3_and_below_producer_id", "v3_and_below_producer_epoch", "v3_and_below_topics")

    def __init__(
        self,
        *,
        transactions: list[AddPartitionsToTxnTransaction] = EMPTY,
        v3_and_below_transactional_id: str = "",
        v3_and_below_producer_id: int = 0,
        v3_and_below_producer_epoch: int = 0,
        v3_and_below_topics: list[AddPartitionsToTxnTopic] = EMPTY,
    ) -> None:
        self.transactions = [] if transactions is EMPTY else transactions
        self.v3_and_below_transactional_id = v3_and_below_transactional_id
        self.v3_and_below_producer_id = v3_and_below_producer_id
        self.v3_and_below_producer_epoch = v3_and_below_producer_epoch
        self.v3_and_below_topics = [] if v3_and_below_topics is EMPTY else v3_and_below_topics
        self.unknown_tags = None

    KEY = 24
    SCHEMA = """\
AddPartitionsToTxnRequest key=24 type=request listeners=broker versions=0-5 flexible=3+
  Transactions []AddPartitionsToTxnTransaction 4+
    TransactionalId string 4+ key entity=transactionalId
    ProducerId int64 4+ entity=producerId
    ProducerEpoch int16 4+
    VerifyOnly bool 4+ default=false
    Topics []AddPartitionsToTxnTopic 4+
  V3AndBelowTransactionalId string 0-3 entity=transactionalId
  V3AndBelowProducerId int64 0-3 entity=producerId
  V3AndBelowProducerEpoch int16 0-3
  V3AndBelowTopics []AddPartitionsToTxnTopic 0-3
  struct AddPartitionsToTxnTopic 0+
    Name string 0+ key entity=topicName
    Partitions []int32 0+
"""
    STRUCTS = (AddPartitionsToTxnTransaction, AddPartitionsToTxnTopic)


class AddPartitionsToTxnPartitionResult(Struct):
    __slots__ = ("partition_index", "partition_error_code")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        partition_error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.partition_error_code = partition_error_code
        self.unknown_tags = None


class AddPartitionsToTxnTopicResult(Struct):
    __slots__ = ("name", "results_by_partition")

    def __init__(
        self,
        *,
        name: str = "",
        results_by_partition: list[AddPartitionsToTxnPartitionResult] = EMPTY,
    ) -> None:
        self.name = name
        self.results_by_partition = [] if results_by_partition is EMPTY else results_by_partition
        self.unknown_tags = None


class AddPartitionsToTxnResult(Struct):
    __slots__ = ("transactional_id", "topic_results")

    def __init__(
        self,
        *,
        transactional_id: str = "",
        topic_results: list[AddPartitionsToTxnTopicResult] = EMPTY,
    ) -> None:
        self.transactional_id = transactional_id
        self.topic_results = [] if topic_results is EMPTY else topic_results
        self.unknown_tags = None


class AddPartitionsToTxnResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "results_by_transaction", "results_by_topic_v3_and_below")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        results_by_transaction: list[AddPartitionsToTxnResult] = EMPTY,
        results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.results_by_transaction = [] if results_by_transaction is EMPTY else results_by_transaction
        self.results_by_topic_v3_and_below = [] if results_by_topic_v3_and_below is EMPTY else results_by_topic_v3_and_below
        self.unknown_tags = None

    KEY = 24
    SCHEMA = """\
AddPartitionsToTxnResponse key=24 type=response versions=0-5 flexible=3+
  ThrottleTimeMs int32 0+
  ErrorCode int16 4+ ignorable
  ResultsByTransaction []AddPartitionsToTxnResult 4+
    TransactionalId string 4+ key entity=transactionalId
    TopicResults []AddPartitionsToTxnTopicResult 4+
  ResultsByTopicV3AndBelow []AddPartitionsToTxnTopicResult 0-3
  struct AddPartitionsToTxnTopicResult 0+
    Name string 0+ key entity=topicName
    ResultsByPartition []AddPartitionsToTxnPartitionResult 0+
  struct AddPartitionsToTxnPartitionResult 0+
    PartitionIndex int32 0+ key
    PartitionErrorCode int16 0+
"""
    STRUCTS = (AddPartitionsToTxnResult, AddPartitionsToTxnTopicResult, AddPartitionsToTxnPartitionResult)
