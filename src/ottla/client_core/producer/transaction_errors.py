"""What an error of a transaction's request means: ask again, look for the coordinator, abort, or give the producer up."""

from __future__ import annotations

from enum import Enum

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.apis import ApiKey


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
