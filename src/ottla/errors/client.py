"""The errors of the clients themselves: no server sends them, so they have no code or share one."""

from collections.abc import Sequence

from ottla.errors.kinds import (
    AuthenticationError,
    ClientError,
    InvalidOffsetError,
    RetriableError,
    TimeoutError,
)
from ottla.errors.partitions import CorruptRecordError, OffsetOutOfRangeError


class SslAuthenticationError(AuthenticationError):
    """The TLS handshake failed: check the certificates, the host name and the versions of TLS."""


class UnreachableError(ClientError):
    """No broker can be reached, and another attempt would hardly help. Only clients that were asked not to wait raise it."""

    about = "No broker can be reached; check the addresses, and that the brokers are up."

    def __init__(self, text: str | None = None, *, is_absent: bool = False, is_refused: bool = False) -> None:
        super().__init__(text, is_unsent=is_absent)
        self.is_absent = is_absent
        """Whether none of the bootstrap addresses accepts connections."""
        self.is_refused = is_refused
        """Whether a broker has refused the login: no waiting helps."""


class BufferExhaustedError(TimeoutError):
    """A record found no room in the producer's buffer.memory within max.block.ms."""


class SerializationError(ClientError):
    """A key or a value could not be turned into bytes, or bytes into a key or a value."""

    about = "The key or the value could not be serialized."


class DeserializationError(SerializationError):
    """The key or the value of one fetched record could not be read.

    The record's raw form is kept, so that it can be stored elsewhere. To step past it, seek to `offset` + 1.
    """

    def __init__(
        self,
        text: str | None = None,
        *,
        topic: str,
        partition: int,
        offset: int,
        raw_key: bytes | None = None,
        raw_value: bytes | None = None,
        raw_headers: Sequence[tuple[str, bytes | None]] = (),
        timestamp: int = -1,
        is_key: bool = False,
    ) -> None:
        part = "key" if is_key else "value"
        super().__init__(
            text
            or f"the {part} of the record at offset {offset} of {topic}-{partition} cannot be deserialized; "
            f"seek to {offset + 1} to step past it"
        )
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.raw_key = raw_key
        self.raw_value = raw_value
        self.raw_headers = raw_headers
        self.timestamp = timestamp
        self.is_key = is_key


class CorruptBatchError(CorruptRecordError):
    """A fetched batch is damaged. `offset` is the first record that cannot be read; seek to `next_offset` to step past it."""

    def __init__(self, text: str | None = None, *, topic: str, partition: int, offset: int, next_offset: int) -> None:
        super().__init__(text)
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.next_offset = next_offset


class WakeupError(ClientError):
    """A blocked call ended because another thread called `wakeup`. The client is as usable as before."""

    about = "The call was ended by wakeup()."


class InterruptError(ClientError):
    """A blocked call ended because its thread was interrupted. The client is as usable as before."""

    about = "The call was interrupted."


class ConfigError(ClientError, ValueError):
    """A client's setting is unknown, has a value that is not valid, or contradicts another setting."""

    about = "The client's settings are not valid."

    def __init__(self, text: str | None = None, *, setting: str | None = None) -> None:
        super().__init__(text)
        self.setting = setting
        """Kafka's name of the setting, where one is to blame."""


class ArgumentError(ClientError, ValueError):
    """An argument of a call has a value that is not valid. Nothing was sent."""

    about = "An argument is not valid."


class IllegalStateError(ClientError, RuntimeError):
    """The call does not fit what the client is doing, such as a send on a closed producer or outside a transaction."""

    about = "The client is not in a state that allows this call."


class ConcurrentUseError(IllegalStateError):
    """Two threads or tasks use a consumer at the same time. Give each its own consumer, or lock around it."""

    about = "Two threads or tasks use this consumer at the same time; give each its own, or lock around it."


class TransactionAbortedError(ClientError):
    """A record was not sent, because its transaction was aborted first."""

    about = "The record was not sent, because its transaction was aborted."


class NoOffsetForPartitionError(InvalidOffsetError):
    """Partitions have no committed offset, and auto.offset.reset is none. `partitions` are (topic, partition)."""

    def __init__(self, text: str | None = None, *, partitions: Sequence[tuple[str, int]] = ()) -> None:
        super().__init__(text)
        self.partitions = tuple(partitions)


class LogTruncationError(OffsetOutOfRangeError):
    """Records that were read have been lost by the cluster: the leader's log ends before the consumer's position.

    `positions` has the consumer's position for each (topic, partition), and `diverging` the offset up to which its log and
    the leader's are the same, where the leader knows it.
    """

    def __init__(
        self,
        text: str | None = None,
        *,
        positions: dict[tuple[str, int], int] | None = None,
        diverging: dict[tuple[str, int], int] | None = None,
    ) -> None:
        super().__init__(text)
        self.positions = positions or {}
        self.diverging = diverging or {}


class CommitFailedError(ClientError):
    """Offsets were not committed, because the group has taken the partitions away from this consumer.

    Their new owner reads on from the last commit, so records come again. Go on with the next poll(). If it happens
    often, take fewer records at a time (max.poll.records), or raise max.poll.interval.ms.
    """

    about = (
        "Offsets were not committed, because the group has taken the partitions away from this consumer; go on with the next "
        "poll(). Records since the last commit are read again."
    )


class RetriableCommitFailedError(RetriableError):
    """An asynchronous commit failed for a reason that passes. Commit again, unless a later commit has been made since."""

    about = "The asynchronous commit failed for a reason that passes; commit again unless a later commit was made."
