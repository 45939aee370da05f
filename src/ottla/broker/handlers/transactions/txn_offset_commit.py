"""TxnOffsetCommit: commits a group's offsets as part of a transaction; they count once the transaction commits.

Before a transaction's first write to the group's partition of __consumer_offsets, its transaction coordinator verifies that the
partition belongs to the transaction, or adds it (v5).

v2: leader epoch; COORDINATOR_LOAD_IN_PROGRESS. v3: member id, generation and group.instance.id, which are checked. v4:
TRANSACTION_ABORTABLE. v5: partitions are added implicitly, without AddOffsetsToTxn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.broker.handlers.groups.group_calls import caller_of, code_of
from ottla.broker.handlers.portions import PendingPortions, handle_in_portions
from ottla.broker.requests.context import Handled, PendingTask, RequestContext
from ottla.broker.runtime.coordinators.verification import Begun
from ottla.coordinator.contract import Effects, Instant, Producer, Reply
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition
from ottla.log.producers.producer_entry import NO_SEQUENCE
from ottla.wire.elements import has_many_elements
from ottla.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from ottla.broker.runtime.coordinators.hosted_shard import HostedShard
    from ottla.coordinator.groups.shard import GroupShard
    from ottla.log.producers.append_checks import VerificationState

LOAD_IN_PROGRESS_SINCE = 2
ABORTABLE_SINCE = 4
IMPLICIT_ADD_SINCE = 5


def handle(context: RequestContext, request: TxnOffsetCommitRequest) -> Handled:
    if has_many_elements(request):
        return PendingPortions(handle_in_portions(context, request, _commit, refuse, "topics", "partitions"))
    return _commit(context, request)


def _commit(context: RequestContext, request: TxnOffsetCommitRequest) -> Handled:
    hosted = context.services.coordinators.groups.shard_for(request.group_id)
    if not _is_about_known_partitions(context, request):
        return hosted.ask(_decision(context, request))  # each partition is refused, so there is nothing to verify
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "a group id must not be empty")
    verification = _begin_verification(context, request, hosted)
    if verification is None:
        return hosted.ask(_decision(context, request))
    return PendingTask(_verify_and_commit(context, request, hosted, verification))


def refuse(context: RequestContext, request: TxnOffsetCommitRequest, error: KafkaError) -> TxnOffsetCommitResponse:
    code = code_of(error)
    if code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and context.version < LOAD_IN_PROGRESS_SINCE:
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE  # which makes old clients ask again
    response = TxnOffsetCommitResponse()
    for topic in request.topics:
        results = [
            TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code) for each in topic.partitions
        ]
        response.topics.append(TxnOffsetCommitResponseTopic(name=topic.name, partitions=results))
    return response


def _decision(context: RequestContext, request: TxnOffsetCommitRequest) -> Callable[[GroupShard, Reply, Instant], Effects]:
    caller = caller_of(context)
    return lambda shard, reply, now: shard.offsets.commit_in_transaction(request, caller, reply, now)


def _is_about_known_partitions(context: RequestContext, request: TxnOffsetCommitRequest) -> bool:
    metadata = context.services.metadata
    return any(
        metadata.partition(topic.name, each.partition_index) is not None
        for topic in request.topics
        for each in topic.partitions
    )


def _begin_verification(
    context: RequestContext, request: TxnOffsetCommitRequest, hosted: HostedShard[GroupShard]
) -> VerificationState | None:
    """The verification that the commit has to wait for; None if the transaction is already open in the group's partition."""
    log = hosted.partition.log
    is_add = context.version >= IMPLICIT_ADD_SINCE
    if not (is_add or log.options.verify_transactions):
        return None
    return log.producers.begin_verification(
        request.producer_id, NO_SEQUENCE, request.producer_epoch, is_add, context.services.world.clock.now_ms()
    )


async def _verify_and_commit(
    context: RequestContext,
    request: TxnOffsetCommitRequest,
    hosted: HostedShard[GroupShard],
    verification: VerificationState,
) -> TxnOffsetCommitResponse:
    coordinators = context.services.coordinators
    place = TopicPartition(coordinators.groups.topic, hosted.partition.index)
    begun = [verification]

    def begin_again() -> None:
        """A marker that came meanwhile ended what was begun."""
        if (again := _begin_verification(context, request, hosted)) is not None:
            begun.append(again)

    def is_dropped() -> bool:
        producers = hosted.partition.log.producers
        return producers.verification(request.producer_id) is not begun[-1] and not producers.has_ongoing_transaction(
            request.producer_id, request.producer_epoch
        )

    codes = await coordinators.transactions.verify(
        request.transactional_id,
        Producer(request.producer_id, request.producer_epoch),
        [place],
        context.version >= IMPLICIT_ADD_SINCE,
        Begun(begin_again, is_dropped),
    )
    code = codes.get(place, ErrorCode.NONE)
    if code != ErrorCode.NONE:
        if code == ErrorCode.TRANSACTION_ABORTABLE and context.version < ABORTABLE_SINCE:
            code = ErrorCode.INVALID_TXN_STATE
        raise KafkaError(
            code,
            f"the coordinator of {request.transactional_id!r} does not have {place} in its transaction, so that the offsets of "
            f"group {request.group_id!r} cannot be committed with it: abort it",
        )
    response: TxnOffsetCommitResponse = await coordinators.groups.call(request.group_id, _decision(context, request), begun[-1])
    return response
