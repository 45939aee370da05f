"""The requests of a transaction, and the first error in the answer to one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.client_core.machine import Channel, Request
from ottla.client_core.offsets import ConsumerGroupMetadata, OffsetAndMetadata
from ottla.client_core.producer.idempotence import INIT_PRODUCER_ID_VERSION_MAX, Key, two_phase_request
from ottla.errors import KafkaError, exception_of
from ottla.errors.codes import ErrorCode, error_meaning
from ottla.wire.apis import ApiKey
from ottla.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)

if TYPE_CHECKING:
    from ottla.client_core.producer.transactions import TransactionManager

# `Pending`: an operation of a machine that a caller waits for.


class Pending:
    """Becomes done once, with or without an error, and then calls those who wait. Belongs to the event loop."""

    __slots__ = ("error", "is_claimed", "is_done", "waiters", "what")

    def __init__(self, what: str) -> None:
        self.what = what
        self.is_done = False
        self.is_claimed = False
        """Whether a caller has got the outcome. One that stopped waiting gets it when it repeats its call."""
        self.error: KafkaError | None = None
        self.waiters: list[Callable[[], Any]] = []

    def finish(self, error: KafkaError | None = None) -> None:
        """Be done; only the first call counts."""
        if self.is_done:
            return
        self.is_done = True
        self.error = error
        waiters, self.waiters = self.waiters, []
        for waiter in waiters:
            waiter()


ADD_PARTITIONS_VERSION_MAX = 3
END_VERSION_MAX_BEFORE_TV2 = 4
COMMIT_VERSION_MAX_BEFORE_TV2 = 4


class Kind(Enum):
    """The requests that a transaction consists of."""

    INIT = "init"
    ADD_PARTITIONS = "add partitions"
    ADD_OFFSETS = "add offsets"
    COMMIT_OFFSETS = "commit offsets"
    END = "end"


ADDS = frozenset({Kind.ADD_PARTITIONS, Kind.ADD_OFFSETS})
"""Under version 1, the first of these begins the transaction at its coordinator."""


class OffsetCommit:
    """Offsets of one group on their way into the transaction."""

    __slots__ = ("group", "is_added", "offsets", "pending")

    def __init__(self, group: ConsumerGroupMetadata, offsets: dict[Key, OffsetAndMetadata]) -> None:
        self.group = group
        self.offsets = offsets
        self.is_added = False
        self.pending = Pending(f"offsets of group {group.group_id} to be stored with the transaction")


class Context(NamedTuple):
    """What a request was for."""

    kind: Kind
    partitions: tuple[tuple[str, int], ...] = ()
    commit: OffsetCommit | None = None


def init_producer_id(manager: TransactionManager, node: int) -> Request:
    """Asks for the producer id, or for its next epoch if there is one already."""
    producer_id, epoch = manager.idempotence.producer
    message = InitProducerIdRequest(
        transactional_id=manager.transactional_id,
        transaction_timeout_ms=manager.settings.transaction_timeout_ms,
        producer_id=producer_id,
        producer_epoch=epoch,
        enable2_pc=manager.settings.transaction_two_phase_commit_enable,
        keep_prepared_txn=manager.is_keeping,
    )
    if message.enable2_pc or message.keep_prepared_txn:
        return two_phase_request(message, node, Context(Kind.INIT))
    return Request(message, node, context=Context(Kind.INIT), version_max=INIT_PRODUCER_ID_VERSION_MAX)


def add_partitions(manager: TransactionManager, node: int, partitions: list[tuple[str, int]]) -> Request:
    """Adds partitions to a transaction of version 1."""
    producer_id, epoch = manager.idempotence.producer
    message = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=manager.transactional_id,
        v3_and_below_producer_id=producer_id,
        v3_and_below_producer_epoch=epoch,
        v3_and_below_topics=[
            AddPartitionsToTxnTopic(name=topic, partitions=numbers) for topic, numbers in _by_topic(partitions).items()
        ],
    )
    context = Context(Kind.ADD_PARTITIONS, tuple(partitions))
    return Request(message, node, context=context, version_max=ADD_PARTITIONS_VERSION_MAX)


def add_offsets(manager: TransactionManager, node: int, commit: OffsetCommit) -> Request:
    """Adds a group's offsets to a transaction of version 1."""
    producer_id, epoch = manager.idempotence.producer
    message = AddOffsetsToTxnRequest(
        transactional_id=manager.transactional_id,
        producer_id=producer_id,
        producer_epoch=epoch,
        group_id=commit.group.group_id,
    )
    return Request(message, node, context=Context(Kind.ADD_OFFSETS, commit=commit))


def add_again(manager: TransactionManager, node: int, context: Context) -> Request:
    """Repeats a request that added partitions or offsets."""
    if context.commit is not None:
        return add_offsets(manager, node, context.commit)
    return add_partitions(manager, node, list(context.partitions))


def commit_offsets(manager: TransactionManager, node: int, commit: OffsetCommit) -> Request:
    """Hands offsets to the group's coordinator, which applies them when the transaction is committed."""
    producer_id, epoch = manager.idempotence.producer
    topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
    for (topic, partition), position in commit.offsets.items():
        topics.setdefault(topic, []).append(
            TxnOffsetCommitRequestPartition(
                partition_index=partition,
                committed_offset=position.offset,
                committed_leader_epoch=-1 if position.leader_epoch is None else position.leader_epoch,
                committed_metadata=position.metadata,
            )
        )
    message = TxnOffsetCommitRequest(
        transactional_id=manager.transactional_id,
        group_id=commit.group.group_id,
        producer_id=producer_id,
        producer_epoch=epoch,
        generation_id=commit.group.generation_id,
        member_id=commit.group.member_id,
        group_instance_id=commit.group.group_instance_id,
        topics=[TxnOffsetCommitRequestTopic(name=name, partitions=partitions) for name, partitions in topics.items()],
    )
    version_max = None if manager.is_implicit else COMMIT_VERSION_MAX_BEFORE_TV2
    context = Context(Kind.COMMIT_OFFSETS, commit=commit)
    return Request(message, node, channel=Channel.GROUP, context=context, version_max=version_max)


def end_transaction(manager: TransactionManager, node: int, *, is_commit: bool) -> Request:
    """Commits or aborts."""
    producer_id, epoch = manager.idempotence.producer
    message = EndTxnRequest(
        transactional_id=manager.transactional_id, producer_id=producer_id, producer_epoch=epoch, committed=is_commit
    )
    version_max = None if manager.is_implicit else END_VERSION_MAX_BEFORE_TV2
    return Request(message, node, context=Context(Kind.END), version_max=version_max)


def _by_topic(partitions: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return topics


def error_in(response: Any) -> KafkaError | None:
    """The first error in an answer. Errors of single partitions fail the whole request: it is repeated as a whole."""
    if isinstance(response, AddPartitionsToTxnResponse):
        return _first(
            (f"{topic.name}-{partition.partition_index}", partition.partition_error_code)
            for topic in response.results_by_topic_v3_and_below
            for partition in topic.results_by_partition
        )
    if isinstance(response, TxnOffsetCommitResponse):
        return _first(
            (f"{topic.name}-{partition.partition_index}", partition.error_code)
            for topic in response.topics
            for partition in topic.partitions
        )
    return _first([("the transaction", response.error_code)])


def _first(results: Iterable[tuple[str, int]]) -> KafkaError | None:
    for what, code in results:
        if code:
            return exception_of(code, f"{what}: {error_meaning(code)}")
    return None


# What an error of a transaction's request means: ask again, look for the coordinator, abort, or give the producer up.


class Verdict(Enum):
    """What follows from an error."""

    RETRY = "retry"
    RELOCATE = "relocate"
    """The coordinator has moved: find it, then retry."""
    ABORT = "abort"
    """The transaction cannot be committed; after an abort the producer goes on."""
    FATAL = "fatal"
    """The producer cannot go on."""


_RELOCATE = {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR, ErrorCode.NETWORK_EXCEPTION}
_RETRY = {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
_ABORT = {
    ErrorCode.TRANSACTION_ABORTABLE,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.OPERATION_NOT_ATTEMPTED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.STALE_MEMBER_EPOCH,
    ErrorCode.UNKNOWN_PRODUCER_ID,
}
_FATAL = {
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.UNSUPPORTED_VERSION,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
}
_FATAL_IN_PRODUCE = {
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.UNSUPPORTED_VERSION,
}


def verdict_of(error: KafkaError, api: int) -> Verdict:
    """What follows from `error` in the answer of a transaction's coordinator or of a group's."""
    code = error.code
    if code in _RELOCATE:
        return Verdict.RELOCATE
    if code in _RETRY:
        return Verdict.RETRY
    if code in _ABORT:
        return Verdict.ABORT
    if code in _FATAL:
        return Verdict.FATAL
    if error.is_retriable:
        # A timeout does not tell whether the coordinator is gone: look again before the next attempt.
        return Verdict.RELOCATE
    return Verdict.ABORT if api == ApiKey.ADD_PARTITIONS_TO_TXN else Verdict.FATAL


def is_fatal_for_producer(error: KafkaError) -> bool:
    """Whether the failure of a batch ends a transactional producer; other failures only end its transaction."""
    return error.code in _FATAL_IN_PRODUCE
