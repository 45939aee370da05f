"""Errors of groups (consumer, share, streams) and of transactions.

Names follow Apache Kafka's Java exceptions. A docstring is the sentence of `codes.py`, and the text of an error without one.
"""

from ottla.errors.codes import ErrorCode
from ottla.errors.kinds import AbortableError, ApplicationRecoverableError, ClientError, RefreshRetriableError, RetriableError


class OffsetMetadataTooLargeError(ClientError, code=ErrorCode.OFFSET_METADATA_TOO_LARGE):
    """The text stored with the offset is longer than offset.metadata.max.bytes; shorten it."""


class CoordinatorLoadInProgressError(RetriableError, code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS):
    """The coordinator is still reading its state from the log; try again shortly."""


class CoordinatorNotAvailableError(RefreshRetriableError, code=ErrorCode.COORDINATOR_NOT_AVAILABLE):
    """The coordinator is not available yet; look it up again and retry."""


class NotCoordinatorError(RefreshRetriableError, code=ErrorCode.NOT_COORDINATOR):
    """This broker is not the coordinator of that group or transaction; look the coordinator up again."""


class IllegalGenerationError(ApplicationRecoverableError, code=ErrorCode.ILLEGAL_GENERATION):
    """The member speaks for a generation of the group that has passed; join again."""


class InconsistentGroupProtocolError(ClientError, code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL):
    """The member shares no assignment protocol with the group, or is of another protocol type; align the members' settings."""


class InvalidGroupIdError(ClientError, code=ErrorCode.INVALID_GROUP_ID):
    """The group id is empty or not allowed."""


class UnknownMemberIdError(ApplicationRecoverableError, code=ErrorCode.UNKNOWN_MEMBER_ID):
    """The coordinator does not know this member, which may have been evicted; join again."""


class InvalidSessionTimeoutError(ClientError, code=ErrorCode.INVALID_SESSION_TIMEOUT):
    """The session timeout lies outside the broker's group.min.session.timeout.ms and group.max.session.timeout.ms."""


class RebalanceInProgressError(ClientError, code=ErrorCode.REBALANCE_IN_PROGRESS):
    """The group is rebalancing; join again before going on."""


class InvalidCommitOffsetSizeError(ClientError, code=ErrorCode.INVALID_COMMIT_OFFSET_SIZE):
    """The offsets to commit are too large to be written as one batch; commit fewer at once."""


class OutOfOrderSequenceError(ClientError, code=ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
    """The producer's sequence number leaves a gap, so an earlier batch is missing; it must fail or start a new epoch."""


class DuplicateSequenceError(ClientError, code=ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
    """The batch was written before; the producer may treat it as sent."""


class InvalidProducerEpochError(ApplicationRecoverableError, code=ErrorCode.INVALID_PRODUCER_EPOCH):
    """The producer's epoch is older than the newest one seen; another instance has taken its place."""


class InvalidTxnStateError(ClientError, code=ErrorCode.INVALID_TXN_STATE):
    """The transaction is not in a state that allows this."""


class InvalidPidMappingError(ApplicationRecoverableError, code=ErrorCode.INVALID_PRODUCER_ID_MAPPING):
    """The producer id is not the one that belongs to this transactional id."""


class InvalidTxnTimeoutError(ClientError, code=ErrorCode.INVALID_TRANSACTION_TIMEOUT):
    """The transaction timeout is above the broker's transaction.max.timeout.ms; ask for less."""


class ConcurrentTransactionsError(RetriableError, code=ErrorCode.CONCURRENT_TRANSACTIONS):
    """Another operation on the same transaction is still under way; try again shortly."""


class TransactionCoordinatorFencedError(ClientError, code=ErrorCode.TRANSACTION_COORDINATOR_FENCED):
    """The transaction coordinator that sent this has been replaced by a newer one."""


class UnknownProducerIdError(OutOfOrderSequenceError, code=ErrorCode.UNKNOWN_PRODUCER_ID):
    """The broker has forgotten this producer id, for example because its records have expired; start a new epoch."""


class GroupNotEmptyError(ClientError, code=ErrorCode.NON_EMPTY_GROUP):
    """The group still has members; stop them first."""


class GroupIdNotFoundError(ClientError, code=ErrorCode.GROUP_ID_NOT_FOUND):
    """No group of this id exists."""


class MemberIdRequiredError(ClientError, code=ErrorCode.MEMBER_ID_REQUIRED):
    """The coordinator has given the member an id; join again with it."""


class GroupMaxSizeReachedError(ClientError, code=ErrorCode.GROUP_MAX_SIZE_REACHED):
    """The group already has as many members as group.max.size allows."""


class FencedInstanceIdError(ApplicationRecoverableError, code=ErrorCode.FENCED_INSTANCE_ID):
    """Another member has joined with the same group.instance.id; this one must stop."""


class GroupSubscribedToTopicError(ClientError, code=ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC):
    """Members of the group subscribe to the topic, so its offsets cannot be deleted; stop them first."""


class UnstableOffsetCommitError(RetriableError, code=ErrorCode.UNSTABLE_OFFSET_COMMIT):
    """An open transaction still holds these offsets; try again when it has ended."""


class ProducerFencedError(ApplicationRecoverableError, code=ErrorCode.PRODUCER_FENCED):
    """A newer producer with the same transactional id has taken over; this one must stop."""


class TransactionalIdNotFoundError(ClientError, code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND):
    """No transaction of this transactional id is known."""


class FencedMemberEpochError(ClientError, code=ErrorCode.FENCED_MEMBER_EPOCH):
    """The member's epoch is not the group's; the member must give up its partitions and join again."""


class UnreleasedInstanceIdError(ClientError, code=ErrorCode.UNRELEASED_INSTANCE_ID):
    """Another member still holds this group.instance.id; try again when it has left."""


class UnsupportedAssignorError(ClientError, code=ErrorCode.UNSUPPORTED_ASSIGNOR):
    """The coordinator does not offer this assignor; choose one from group.consumer.assignors."""


class StaleMemberEpochError(ClientError, code=ErrorCode.STALE_MEMBER_EPOCH):
    """The member's epoch is behind what the coordinator last gave it; try again after the next heartbeat."""


class TransactionAbortableError(AbortableError, code=ErrorCode.TRANSACTION_ABORTABLE):
    """The transaction met an error that it cannot commit through; abort it and begin a new one."""


class InvalidRecordStateError(ClientError, code=ErrorCode.INVALID_RECORD_STATE):
    """The record is not in a state that allows this acknowledgement."""


class ShareSessionNotFoundError(RetriableError, code=ErrorCode.SHARE_SESSION_NOT_FOUND):
    """The broker does not hold this share session; start a new one."""


class InvalidShareSessionEpochError(RetriableError, code=ErrorCode.INVALID_SHARE_SESSION_EPOCH):
    """The share session's epoch is not the one expected next; start a new session."""


class FencedStateEpochError(ClientError, code=ErrorCode.FENCED_STATE_EPOCH):
    """The share coordinator's state has a newer epoch; the sender has been replaced."""


class InvalidRegularExpressionError(ClientError, code=ErrorCode.INVALID_REGULAR_EXPRESSION):
    """The regular expression is not valid; it must follow RE2's syntax."""


class StreamsInvalidTopologyError(ClientError, code=ErrorCode.STREAMS_INVALID_TOPOLOGY):
    """The streams topology sent is not valid; the message says why."""


class StreamsInvalidTopologyEpochError(ClientError, code=ErrorCode.STREAMS_INVALID_TOPOLOGY_EPOCH):
    """The streams topology's epoch is not the one the group expects."""


class StreamsTopologyFencedError(ClientError, code=ErrorCode.STREAMS_TOPOLOGY_FENCED):
    """The member runs an older streams topology than the group; upgrade it."""


class ShareSessionLimitReachedError(RetriableError, code=ErrorCode.SHARE_SESSION_LIMIT_REACHED):
    """The broker holds as many share sessions as it may; try again later."""
