"""`FetchErrors`: what the errors of Fetch responses mean for a partition: try again, ask another broker, reset, or tell.

A position is moved or failed only when nothing of the partition is buffered (`subscription.py` has the thread rule): an error
for what lies ahead waits until everything before it is read.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from ottla.client_core.consumer.fetch_session import SESSION_ERRORS
from ottla.client_core.consumer.reset import NO_RESET, Reset
from ottla.client_core.consumer.settings import FetchSettings
from ottla.client_core.consumer.subscription import NO_EPOCH, PartitionState, Phase
from ottla.client_core.metadata import Metadata, Node
from ottla.errors import KafkaError, OffsetOutOfRangeError, UnknownTopicIdError, exception_of
from ottla.errors.codes import ErrorCode, error_meaning, error_name
from ottla.ids import ZERO_UUID, Uuid, uuid_text
from ottla.wire.messages.fetch import PartitionData

logger = logging.getLogger("ottla.client")

_LEADER_MOVED: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)
"""Errors after which metadata is refreshed and the fetch tried again."""

_TRY_AGAIN: Final = frozenset({ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.UNKNOWN_SERVER_ERROR})


class FetchErrors:
    """Handles what a fetch can meet."""

    def __init__(self, metadata: Metadata, settings: FetchSettings, reset: Reset) -> None:
        self._metadata = metadata
        self._settings = settings
        self._reset = reset

    def fatal(self, code: int) -> KafkaError | None:
        """The error that ends reading, if a whole response was one that asking again cannot change."""
        if code != ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            return None
        return exception_of(code, f"the broker refuses to be fetched from: {error_meaning(code)}")

    def session_refused(self, code: int) -> bool:
        """A whole response was an error. True: wait before the next request."""
        if code in SESSION_ERRORS:
            logger.debug("a fetch session ended: %s", error_name(code))
            return False
        if code in (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID):
            self._metadata.refresh(f"a fetch was refused: {error_name(code)}")
        return True

    def new_leader(self, state: PartitionState, epoch: int) -> bool:
        """A leader with a newer epoch was elected. True: the position has to be validated against its log first."""
        position = state.position
        if position is not None and position.epoch != NO_EPOCH and position.epoch < epoch:
            state.phase = Phase.VALIDATE
            return True
        state.validated_epoch = epoch
        return False

    def is_other_topic(self, state: PartitionState, topic_id: Uuid) -> bool:
        """Whether the topic was deleted and created again: offsets of the old one mean nothing, and the partition resets."""
        if state.topic_id in (topic_id, ZERO_UUID):
            state.topic_id = topic_id
            return False
        if state.buffered_bytes:
            return True
        old = state.topic_id
        state.topic_id = topic_id
        state.validated_epoch = NO_EPOCH
        topic, partition = state.topic_partition
        text = (
            f"topic {topic} was deleted and created again (its id was {uuid_text(old)} and is {uuid_text(topic_id)}): position "
            f"{state.position.offset if state.position else '-'} of partition {partition} belongs to the old topic"
        )
        if state.is_strict or self._reset == NO_RESET:
            state.fail(UnknownTopicIdError(f"{text}. Seek to where reading shall go on"))
        else:
            logger.warning("%s; reading starts over as auto.offset.reset=%s says", text, self._reset)
            state.start_reset(self._reset)
        return True

    def partition_refused(
        self, state: PartitionState, data: PartitionData, node_id: int, nodes: Iterable[Node], now_ms: int
    ) -> None:
        """The answer for a partition is an error."""
        code = data.error_code
        topic, partition = state.topic_partition
        was_preferred = state.preferred_node == node_id
        state.preferred_node = -1
        state.not_before_ms = now_ms + self._settings.retry_backoff_ms
        if code in _LEADER_MOVED:
            hint = data.current_leader
            leader_id, epoch = (-1, -1) if hint is None else (hint.leader_id, hint.leader_epoch)
            info = self._metadata.topic(topic)
            # The epochs of a topic that was made again start over: a late hint about the former one would outlast later news.
            is_same_topic = info is not None and info.id == state.topic_id
            if leader_id >= 0 and is_same_topic and self._metadata.learn_leader(topic, partition, leader_id, epoch, nodes):
                state.not_before_ms = now_ms
            self._metadata.refresh(f"a fetch of {topic}-{partition} was refused: {error_name(code)}")
        elif code in _TRY_AGAIN:
            logger.debug("a fetch of %s-%d is tried again: %s", topic, partition, error_name(code))
        elif code == ErrorCode.OFFSET_OUT_OF_RANGE:
            if was_preferred:
                state.not_before_ms = now_ms  # the follower may lag: the leader knows
            elif not state.buffered_bytes:
                self._out_of_range(state, data)
        elif not state.buffered_bytes:
            state.fail(_told(code, state))

    def _out_of_range(self, state: PartitionState, data: PartitionData) -> None:
        offset = state.fetch_position.offset if state.fetch_position is not None else -1
        text = f"offset {offset} of {state.topic_partition} is not in the log: it was deleted, or lies after the end"
        if state.is_strict or self._reset == NO_RESET:
            state.fail(OffsetOutOfRangeError(f"{text}. Seek to another, or set auto.offset.reset to earliest or latest"))
        else:
            logger.warning("%s; reading goes on as auto.offset.reset=%s says", text, self._reset)
            state.start_reset(self._reset)


def _told(code: int, state: PartitionState) -> KafkaError:
    return exception_of(code, f"{state.topic_partition} cannot be fetched: {error_meaning(code)}")
