"""`Positions`: gives every assigned partition a valid position.

A machine (`machine.py`). A new partition starts at the offset that its group has committed (`Committed` answers that), else
where `auto.offset.reset` says, which `OffsetLister` finds. When a partition gets a new leader, OffsetForLeaderEpoch tells where
the new leader's log ends in the epoch of the last record that was read: if that is before the position, records that were read
are gone, and the position is reset or the caller told (`LogTruncationError`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Protocol

from ottla.client_core.consumer.offset_lister import OffsetLister, OffsetQuery
from ottla.client_core.consumer.settings import LATEST, NO_RESET, OffsetSettings, Reset
from ottla.client_core.consumer.subscription import NO_EPOCH, PartitionState, Phase, Position, Subscription
from ottla.client_core.machine import Connect, Request
from ottla.client_core.metadata import Metadata
from ottla.client_core.pending_connections import Connecting
from ottla.errors import KafkaError, LogTruncationError, NoOffsetForPartitionError, UnsupportedVersionError, exception_of
from ottla.errors.codes import ErrorCode, error_meaning, error_name
from ottla.ids import TopicPartition
from ottla.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

logger = logging.getLogger("ottla.client")

AT_ONCE = 0
_FOR_CONSUMERS = -1
_REFRESHING = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)


class CommittedQuery(Protocol):
    """A question for committed offsets; `found` holds None for partitions without one."""

    found: dict[TopicPartition, Any]
    error: KafkaError | None
    is_done: bool


class Committed(Protocol):
    """Finds the offsets that the group has committed."""

    def ask(self, partitions: list[TopicPartition]) -> CommittedQuery: ...
    def drop(self, query: Any) -> None: ...


class Positions:
    """Resolves and validates the positions of a subscription."""

    def __init__(
        self,
        subscription: Subscription,
        metadata: Metadata,
        settings: OffsetSettings,
        lister: OffsetLister,
        reset: Reset,
        wall_ms: Callable[[], int],
        committed: Committed | None = None,
    ) -> None:
        self.connecting = Connecting(metadata, settings.retry_backoff_max_ms)
        self._subscription = subscription
        self._metadata = metadata
        self._settings = settings
        self._lister = lister
        self._reset = reset
        self._wall_ms = wall_ms
        self._committed = committed
        self._resets: list[tuple[OffsetQuery, dict[TopicPartition, tuple[PartitionState, int]]]] = []
        self._committed_query: tuple[CommittedQuery, dict[TopicPartition, tuple[PartitionState, int]]] | None = None
        self._deadline_ms: int | None = None

    # Machine

    def step(self, now_ms: int) -> list[Request]:
        self._deadline_ms = None
        self.connecting.look(now_ms)
        self._finish_committed()
        self._finish_resets()
        new: list[PartitionState] = []
        resets: list[PartitionState] = []
        validations: dict[int, list[PartitionState]] = {}
        for state in self._subscription.partitions.values():
            if state.is_in_flight or state.phase is Phase.FETCH or state.phase is Phase.FAILED:
                continue
            if state.not_before_ms > now_ms:
                self._deadline_ms = min(self._deadline_ms or state.not_before_ms, state.not_before_ms)
            elif state.phase is Phase.NEW:
                new.append(state)
            elif state.phase is Phase.RESET:
                resets.append(state)
            else:
                leader = self._metadata.leader(*state.topic_partition)
                if leader is None:
                    self._metadata.refresh(f"the leader of {state.topic_partition} is not known")
                else:
                    validations.setdefault(leader[0], []).append(state)
        if new and self._start_new(new):
            resets.extend(state for state in new if state.phase is Phase.RESET)
        if resets:
            self._start_resets(resets)
        requests: list[Request] = []
        for node_id, states in validations.items():
            if self.connecting.is_open(node_id):
                requests.append(self._validation(node_id, states))
            else:
                requests += self.connecting.connect(node_id, now_ms)
        return requests

    def next_deadline_ms(self) -> int | None:
        return AT_ONCE if self._has_outcomes() else self.connecting.next_deadline_ms(self._deadline_ms)

    def _has_outcomes(self) -> bool:
        """Whether a query has ended in the step of its own machine, which comes after ours."""
        if self._committed_query is not None and self._committed_query[0].is_done:
            return True
        return any(each in query.errors or each in query.found for query, states in self._resets for each in states)

    # New partitions

    def _start_new(self, states: list[PartitionState]) -> bool:
        """Ask for committed offsets. True: there is no group, so the partitions were sent on to a reset."""
        if self._committed is None:
            for state in states:
                self._without_offset(state)
            return True
        if self._committed_query is None:
            query = self._committed.ask([state.topic_partition for state in states])
            self._committed_query = (query, _marked(states))
        return False

    def _finish_committed(self) -> None:
        if self._committed_query is None or not self._committed_query[0].is_done:
            return
        query, states = self._committed_query
        self._committed_query = None
        for each, (state, generation) in states.items():
            if state.generation != generation or state.phase is not Phase.NEW:
                continue
            state.is_in_flight = False
            found = query.found.get(each)
            if query.error is not None:
                state.fail(query.error)
            elif found is None:
                self._without_offset(state)
            else:
                state.jump(Position(found.offset, NO_EPOCH if found.leader_epoch is None else found.leader_epoch))

    def _without_offset(self, state: PartitionState) -> None:
        if self._reset == NO_RESET:
            each = state.topic_partition
            has_group = self._committed is not None
            why = "its group has committed none" if has_group else "the consumer has no group"
            state.fail(
                NoOffsetForPartitionError(
                    f"{each} has no position: {why}, and auto.offset.reset is none. Seek to an offset, or set it to earliest "
                    "or latest",
                    partitions=[each],
                )
            )
        else:
            state.start_reset(self._reset)

    # Resets

    def _start_resets(self, states: list[PartitionState]) -> None:
        wall_ms = self._wall_ms()
        marked = _marked(states)
        query = self._lister.ask({each: state.reset.timestamp(wall_ms) for each, (state, _) in marked.items()})
        self._resets.append((query, marked))

    def _finish_resets(self) -> None:
        for entry in list(self._resets):
            query, states = entry
            for each in list(states):
                state, generation = states[each]
                if state.generation != generation:
                    del states[each]
                elif each in query.errors:
                    del states[each]
                    state.fail(query.errors[each])
                elif each in query.found:
                    del states[each]
                    found = query.found[each]
                    if found is None:  # no record of that time or later: read what comes
                        state.start_reset(LATEST)
                    else:
                        logger.info("%s starts at offset %d (%s)", each, found.offset, state.reset)
                        state.jump(Position(found.offset, found.leader_epoch))
            if not states:
                self._resets.remove(entry)
                self._lister.drop(query)

    # Validation

    def _validation(self, node_id: int, states: list[PartitionState]) -> Request:
        topics: dict[str, OffsetForLeaderTopic] = {}
        asked = {}
        for state in states:
            each = state.topic_partition
            leader = self._metadata.leader(*each)
            position = state.position
            assert leader is not None
            assert position is not None
            state.is_in_flight = True
            asked[each] = (state, state.generation, leader[1])
            topics.setdefault(each.topic, OffsetForLeaderTopic(topic=each.topic)).partitions.append(
                OffsetForLeaderPartition(partition=each.partition, current_leader_epoch=leader[1], leader_epoch=position.epoch)
            )
        message = OffsetForLeaderEpochRequest(replica_id=_FOR_CONSUMERS, topics=list(topics.values()))
        return Request(message, node_id, context=asked)

    def answered(self, request: Request, response: Any, version: int, now_ms: int) -> None:
        if isinstance(request, Connect):
            self.connecting.answered(request)
            return
        asked = dict(request.context)
        for topic in response.topics:
            for data in topic.partitions:
                found = asked.pop(TopicPartition(topic.topic, data.partition), None)
                if found is None or found[0].generation != found[1]:
                    continue
                found[0].is_in_flight = False
                self._validated(found[0], found[2], data, now_ms)
        self._retry(asked, now_ms)

    def failed(self, request: Request, error: KafkaError, now_ms: int) -> None:
        if isinstance(request, Connect):
            self.connecting.failed(request, error)
            self._unreachable(request.node, error, now_ms)
            return
        if error.is_retriable:
            self._metadata.refresh(f"OffsetForLeaderEpoch failed: {error}")
            self._retry(request.context, now_ms)
            return
        for state, generation, epoch in request.context.values():
            if state.generation != generation:
                continue
            if isinstance(error, UnsupportedVersionError):  # a broker too old to tell: read on, as its other clients do
                state.is_in_flight = False
                state.validated_epoch = epoch
                state.phase = Phase.FETCH
            else:
                state.fail(error)

    def _unreachable(self, node_id: int, error: KafkaError, now_ms: int) -> None:
        for state in self._subscription.partitions.values():
            if state.phase is Phase.VALIDATE and self._metadata.is_led_by(node_id, *state.topic_partition):
                if error.is_retriable:
                    state.not_before_ms = now_ms + self._settings.retry_backoff_ms
                else:
                    state.fail(error)

    def _retry(self, asked: dict[TopicPartition, tuple[PartitionState, int, int]], now_ms: int) -> None:
        for state, generation, _ in asked.values():
            if state.generation == generation:
                state.is_in_flight = False
                state.not_before_ms = now_ms + self._settings.retry_backoff_ms

    def _validated(self, state: PartitionState, epoch: int, data: EpochEndOffset, now_ms: int) -> None:
        if data.error_code:
            if data.error_code in _REFRESHING:
                self._metadata.refresh(f"OffsetForLeaderEpoch of {state.topic_partition}: {error_name(data.error_code)}")
                state.not_before_ms = now_ms + self._settings.retry_backoff_ms
            else:
                text = f"the position in {state.topic_partition} cannot be validated: {error_meaning(data.error_code)}"
                state.fail(exception_of(data.error_code, text))
            return
        position = state.position
        assert position is not None
        is_unknown = data.end_offset < 0 or data.leader_epoch < 0
        if is_unknown or data.end_offset < position.offset:
            self._truncated(state, None if is_unknown else data.end_offset)
            return
        state.validated_epoch = epoch
        state.phase = Phase.FETCH

    def _truncated(self, state: PartitionState, end_offset: int | None) -> None:
        each, position = state.topic_partition, state.position
        assert position is not None
        text = f"{each} has lost records that were read: the position is {position.offset}, and the new leader's log "
        text += "does not have their epoch" if end_offset is None else f"is the same only up to {end_offset}"
        reset = NO_RESET if state.is_strict else self._reset
        if end_offset is not None and reset != NO_RESET:
            logger.warning("%s; reading goes on at %d", text, end_offset)
            state.jump(Position(end_offset))
        elif reset != NO_RESET:
            logger.warning("%s; reading goes on as auto.offset.reset=%s says", text, reset)
            state.start_reset(reset)
        else:
            diverging: dict[tuple[str, int], int] = {} if end_offset is None else {each: end_offset}
            state.fail(
                LogTruncationError(
                    f"{text}. Seek to where reading shall go on",
                    positions={each: position.offset},
                    diverging=diverging,
                )
            )


def _marked(states: list[PartitionState]) -> dict[TopicPartition, tuple[PartitionState, int]]:
    for state in states:
        state.is_in_flight = True
    return {state.topic_partition: (state, state.generation) for state in states}
