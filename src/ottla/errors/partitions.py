"""Errors about topics, partitions, replicas, and the records that are written to and read from them.

Names follow Apache Kafka's Java exceptions. A docstring is the sentence of `codes.py`, and the text of an error without one.
"""

from ottla.errors.codes import ErrorCode
from ottla.errors.kinds import (
    ClientError,
    InvalidConfigurationError,
    InvalidMetadataError,
    InvalidOffsetError,
    RetriableError,
    TimeoutError,
)


class OffsetOutOfRangeError(InvalidOffsetError, code=ErrorCode.OFFSET_OUT_OF_RANGE):
    """The offset lies outside what the partition holds; reset it to the start, the end or a time."""


class CorruptRecordError(RetriableError, code=ErrorCode.CORRUPT_MESSAGE):
    """The batch does not match its checksum or breaks the record format; send it again, or check the client if it persists."""


class UnknownTopicOrPartitionError(InvalidMetadataError, code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
    """This broker does not know the topic or partition; refresh metadata, or create the topic."""


class InvalidFetchSizeError(ClientError, code=ErrorCode.INVALID_FETCH_SIZE):
    """The fetch size asked for is not allowed; ask for a positive number of bytes."""


class LeaderNotAvailableError(InvalidMetadataError, code=ErrorCode.LEADER_NOT_AVAILABLE):
    """The partition has no leader right now, as happens during an election; refresh metadata and try again."""


class NotLeaderOrFollowerError(InvalidMetadataError, code=ErrorCode.NOT_LEADER_OR_FOLLOWER):
    """This broker is neither leader nor follower of the partition; refresh metadata and ask the broker it names."""


class RequestTimedOutError(TimeoutError, code=ErrorCode.REQUEST_TIMED_OUT):
    """The server did not finish within the request's timeout; try again, and note that the work may have been done."""


class BrokerNotAvailableError(ClientError, code=ErrorCode.BROKER_NOT_AVAILABLE):
    """No broker can be reached for this; check that the cluster is up."""


class ReplicaNotAvailableError(InvalidMetadataError, code=ErrorCode.REPLICA_NOT_AVAILABLE):
    """The replica asked for is not here or not ready; refresh metadata and try again."""


class RecordTooLargeError(ClientError, code=ErrorCode.MESSAGE_TOO_LARGE):
    """The batch is larger than the topic's max.message.bytes; send less at once or raise the setting."""


class NetworkError(InvalidMetadataError, code=ErrorCode.NETWORK_EXCEPTION):
    """The connection ended before the answer arrived; connect again and retry."""


class InvalidTopicError(InvalidConfigurationError, code=ErrorCode.INVALID_TOPIC_EXCEPTION):
    """The topic's name is not allowed, or the operation is not allowed on this topic."""


class RecordBatchTooLargeError(InvalidConfigurationError, code=ErrorCode.RECORD_LIST_TOO_LARGE):
    """The batch is larger than one log segment may be; send less at once or raise segment.bytes."""


class NotEnoughReplicasError(RetriableError, code=ErrorCode.NOT_ENOUGH_REPLICAS):
    """Fewer replicas are in sync than min.insync.replicas demands; nothing was written, try again when they are back."""


class NotEnoughReplicasAfterAppendError(RetriableError, code=ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND):
    """The batch was written, then too few replicas were in sync to confirm it; a retry can write it a second time."""


class InvalidRequiredAcksError(InvalidConfigurationError, code=ErrorCode.INVALID_REQUIRED_ACKS):
    """acks must be 0, 1 or -1 (all)."""


class InvalidTimestampError(ClientError, code=ErrorCode.INVALID_TIMESTAMP):
    """A record's timestamp is too far from the broker's clock, or the batch's timestamps contradict each other."""


class TopicExistsError(ClientError, code=ErrorCode.TOPIC_ALREADY_EXISTS):
    """A topic of this name exists already."""


class InvalidPartitionsError(ClientError, code=ErrorCode.INVALID_PARTITIONS):
    """The number of partitions is not allowed."""


class InvalidReplicationFactorError(InvalidConfigurationError, code=ErrorCode.INVALID_REPLICATION_FACTOR):
    """The replication factor is below 1 or above the number of brokers that can take replicas."""


class InvalidReplicaAssignmentError(ClientError, code=ErrorCode.INVALID_REPLICA_ASSIGNMENT):
    """The replica assignment is not allowed, for example because it names a broker twice or one that does not exist."""


class UnsupportedForMessageFormatError(InvalidConfigurationError, code=ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT):
    """The partition's message format is too old for this request."""


class KafkaStorageError(InvalidMetadataError, code=ErrorCode.KAFKA_STORAGE_ERROR):
    """A log directory failed on disk; refresh metadata, since its partitions move to other brokers or stay offline."""


class LogDirNotFoundError(ClientError, code=ErrorCode.LOG_DIR_NOT_FOUND):
    """The broker has no log directory of this path."""


class ReassignmentInProgressError(ClientError, code=ErrorCode.REASSIGNMENT_IN_PROGRESS):
    """A reassignment of this partition is under way; wait until it is done or cancel it."""


class FetchSessionIdNotFoundError(RetriableError, code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND):
    """The broker does not hold this fetch session; start a new one with a full fetch."""


class InvalidFetchSessionEpochError(RetriableError, code=ErrorCode.INVALID_FETCH_SESSION_EPOCH):
    """The fetch session's epoch is not the one expected next; start a new session with a full fetch."""


class ListenerNotFoundError(InvalidMetadataError, code=ErrorCode.LISTENER_NOT_FOUND):
    """The partition's leader does not have the listener this client came in on; refresh metadata, or add the listener."""


class TopicDeletionDisabledError(ClientError, code=ErrorCode.TOPIC_DELETION_DISABLED):
    """Topic deletion is switched off; set delete.topic.enable to true."""


class FencedLeaderEpochError(InvalidMetadataError, code=ErrorCode.FENCED_LEADER_EPOCH):
    """The client's leader epoch is older than the broker's; refresh metadata."""


class UnknownLeaderEpochError(RetriableError, code=ErrorCode.UNKNOWN_LEADER_EPOCH):
    """The client's leader epoch is newer than the broker's; try again when the broker has caught up."""


class UnsupportedCompressionTypeError(ClientError, code=ErrorCode.UNSUPPORTED_COMPRESSION_TYPE):
    """The client's version cannot read the batch's compression codec; use a newer client or another codec."""


class OffsetNotAvailableError(RetriableError, code=ErrorCode.OFFSET_NOT_AVAILABLE):
    """The leader cannot vouch for this offset yet, as its high watermark is still catching up; try again."""


class PreferredLeaderNotAvailableError(InvalidMetadataError, code=ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE):
    """The preferred leader is not in sync or not alive; try again when it is back."""


class EligibleLeadersNotAvailableError(InvalidMetadataError, code=ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE):
    """No replica is eligible to become leader; bring one back or allow an unclean election."""


class ElectionNotNeededError(InvalidMetadataError, code=ErrorCode.ELECTION_NOT_NEEDED):
    """The partition already has the leader that was asked for."""


class NoReassignmentInProgressError(ClientError, code=ErrorCode.NO_REASSIGNMENT_IN_PROGRESS):
    """There is no reassignment of this partition to work on."""


class InvalidRecordError(InvalidConfigurationError, code=ErrorCode.INVALID_RECORD):
    """A record breaks the broker's rules, for example a missing key on a compacted topic; the record errors say which."""


class ThrottlingQuotaExceededError(RetriableError, code=ErrorCode.THROTTLING_QUOTA_EXCEEDED):
    """A quota is used up; wait for the throttle time and try again."""


class SnapshotNotFoundError(ClientError, code=ErrorCode.SNAPSHOT_NOT_FOUND):
    """The snapshot asked for does not exist here; ask the leader for the newest one."""


class PositionOutOfRangeError(ClientError, code=ErrorCode.POSITION_OUT_OF_RANGE):
    """The position lies outside the snapshot file."""


class UnknownTopicIdError(InvalidMetadataError, code=ErrorCode.UNKNOWN_TOPIC_ID):
    """This broker does not know the topic id; refresh metadata, since the topic may have been deleted or be new."""


class InconsistentTopicIdError(InvalidMetadataError, code=ErrorCode.INCONSISTENT_TOPIC_ID):
    """The topic id does not belong to the topic's name in the log; refresh metadata."""


class FetchSessionTopicIdError(RetriableError, code=ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR):
    """The fetch session mixes requests with and without topic ids; start a new session."""


class IneligibleReplicaError(ClientError, code=ErrorCode.INELIGIBLE_REPLICA):
    """A replica named for the in-sync set is fenced, shutting down or otherwise not eligible."""


class NewLeaderElectedError(ClientError, code=ErrorCode.NEW_LEADER_ELECTED):
    """The change was made and led to the election of another leader; refresh metadata."""


class OffsetMovedToTieredStorageError(ClientError, code=ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE):
    """The offset has moved to tiered storage; the follower must build its state from there."""
