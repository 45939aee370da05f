"""`Fetcher`: fetches the partitions of a consumer ahead of what is read, with one request per broker in flight.

A machine (`machine.py`). A request to a broker names every partition that can be fetched from it, also those with records
buffered, so that a request that the broker parks never keeps out a partition that runs empty. A broker is asked again when less
than half of the last answer is left, and a partition is left out while it has `max.partition.fetch.bytes` buffered.

A Fetch request is made only for a broker whose connection is open (`pending_connections.py`): until then a partition follows
its leader.

Answers become `Fetched` objects in `ready`, in the order of arrival. `FetchErrors` says what their errors mean.
Version notes: v13: topic ids in place of names; v16: hints about new leaders; v11: read from the nearest replica.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from ottla.client_core.consumer.fetch_session import FINAL_EPOCH, SESSION_ERRORS, FetchSession, Wanted
from ottla.client_core.consumer.fetched import Fetched, end_of_batches
from ottla.client_core.consumer.settings import NO_RESET, READ_COMMITTED, FetchSettings, Reset, isolation_code
from ottla.client_core.consumer.subscription import NO_EPOCH, PartitionState, Phase, Position, Subscription
from ottla.client_core.machine import Channel, Connect, Request
from ottla.client_core.metadata import Metadata, Node
from ottla.client_core.metrics.consumer import ConsumerMetrics
from ottla.client_core.metrics.registry import MetricsRegistry
from ottla.client_core.pending_connections import Connecting
from ottla.env.backoff import Backoff
from ottla.errors import KafkaError, OffsetOutOfRangeError, RecordTooLargeError, UnknownTopicIdError, exception_of
from ottla.errors.codes import ErrorCode, error_meaning, error_name
from ottla.ids import ZERO_UUID, TopicPartition, Uuid, uuid_text
from ottla.wire.messages.fetch import FetchRequest, FetchResponse, PartitionData

logger = logging.getLogger("ottla.client")


# `FetchErrors`: what the errors of Fetch responses mean for a partition: try again, ask another broker, reset, or tell.
#
# A position is moved or failed only when nothing of the partition is buffered (`subscription.py` has the thread rule): an
# error for what lies ahead waits until everything before it is read.

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


_NAMES_ONLY_VERSION_MAX = 12
_RANGE_SLACK_BYTES = 64 * 1024
"""Asked for beyond the estimate of a range's rest: a cut batch costs another request."""
_TELL_AGAIN_MS = 60_000
_STALE_RESPONSES_MAX = 5
"""After as many metadata responses without the epoch of a position, its topic was probably deleted and created again."""


class _Asked(NamedTuple):
    """What a request asked of a partition."""

    state: PartitionState
    generation: int
    offset: int

    @property
    def is_current(self) -> bool:
        """Whether the partition is still to be fetched from there.

        It is not after a jump. Nor if another broker was asked meanwhile, because the leader or the preferred replica changed,
        and has answered: its records would be handed out twice.
        """
        state = self.state
        if self.generation != state.generation or state.phase is not Phase.FETCH:
            return False
        return state.fetch_position is not None and state.fetch_position.offset == self.offset


class _Broker:
    """The fetches from one broker."""

    __slots__ = ("answer_bytes", "backoff", "is_in_flight", "not_before_ms", "sent_ms", "session")

    def __init__(self, backoff: Backoff) -> None:
        self.session = FetchSession()
        self.is_in_flight = False
        self.answer_bytes = 0
        self.not_before_ms = 0
        self.sent_ms = 0
        self.backoff = backoff


class Fetcher:
    """Keeps records of the assigned partitions ready."""

    def __init__(
        self,
        subscription: Subscription,
        metadata: Metadata,
        settings: FetchSettings,
        errors: FetchErrors,
        random_below: Callable[[int], int],
    ) -> None:
        self.ready: deque[Fetched] = deque()
        """Answers to take records from. The loop appends, the thread that reads takes from the left."""
        self.error: KafkaError | None = None
        """An error that concerns every partition and that no retry mends."""
        self.connecting = Connecting(metadata, settings.retry_backoff_max_ms, Channel.FETCH)
        self._subscription = subscription
        self._metadata = metadata
        self._settings = settings
        self._errors = errors
        self._random_below = random_below
        self._is_committed_only = settings.isolation_level == READ_COMMITTED
        self._brokers: dict[int, _Broker] = {}
        self._deadline_ms: int | None = None
        self._is_stopped = False
        self._closing: dict[int, int] = {}
        """Node → the session there that is to be closed."""
        self._closes_in_flight = 0
        self.metrics = ConsumerMetrics(MetricsRegistry("consumer"))
        """What it records; the owner sets its own."""
        self._received_offsets = 0
        self._told_ms: int | None = None

    # Machine

    def step(self, now_ms: int) -> list[Request]:
        self._deadline_ms = None
        if self._is_stopped:
            closing, self._closing = self._closing, {}
            self._closes_in_flight += len(closing)
            return [_close_request(node_id, session_id) for node_id, session_id in closing.items()]
        if self.error is not None:
            return []
        self.connecting.look(now_ms)
        by_node: dict[int, list[PartitionState]] = {}
        for state in self._subscription.partitions.values():
            node_id = self._node_of(state, now_ms)
            if node_id is not None:
                by_node.setdefault(node_id, []).append(state)
        requests: list[Request] = []
        for node_id, states in by_node.items():
            broker = self._brokers.get(node_id)
            if broker is None:
                backoff = Backoff(self._settings.retry_backoff_ms, self._settings.retry_backoff_max_ms, self._random_below)
                broker = self._brokers[node_id] = _Broker(backoff)
            if broker.is_in_flight:
                continue
            if broker.not_before_ms > now_ms:
                self._due_at(broker.not_before_ms)
                continue
            # One answer is read while the next one comes: else the broker waits for the reader, and the reader for the broker.
            if sum(state.buffered_bytes for state in states) > broker.answer_bytes:
                continue
            fetchable = [state for state in states if state.buffered_bytes < self._settings.max_partition_fetch_bytes]
            if fetchable and not self.connecting.is_open(node_id):
                requests += self.connecting.connect(node_id, now_ms)
            elif fetchable:
                broker.sent_ms = now_ms
                requests.append(self._request(node_id, broker, fetchable))
        return requests

    def next_deadline_ms(self) -> int | None:
        is_over = self._is_stopped or self.error is not None
        return self._deadline_ms if is_over else self.connecting.next_deadline_ms(self._deadline_ms)

    def close(self) -> None:
        """Fetch nothing more, and close the sessions: brokers have room for a limited number. `is_closed` says when."""
        self._is_stopped = True
        self._closing = {
            node_id: session_id for node_id, broker in self._brokers.items() if (session_id := broker.session.close())
        }

    @property
    def is_closed(self) -> bool:
        """Whether nothing is left to send after `close`."""
        return self._is_stopped and not self._closing and not self._closes_in_flight

    def answered(self, request: Request, response: Any, version: int, now_ms: int) -> None:
        if isinstance(request, Connect):
            self.connecting.answered(request)
            return
        if request.context is None:
            self._closes_in_flight -= 1
            return
        node_id, asked = request.context
        broker = self._brokers[node_id]
        broker.is_in_flight = False
        if not broker.session.answered(response):
            self.error = self._errors.fatal(response.error_code) or self.error
            if self._errors.session_refused(response.error_code):
                broker.not_before_ms = now_ms + broker.backoff.failed()
            return
        broker.backoff.succeeded()
        before = self._received_offsets
        received = self._take_response(node_id, asked, response, now_ms)
        if received:
            broker.answer_bytes = received
        records = self._received_offsets - before
        self.metrics.fetch_answered(now_ms - broker.sent_ms, records, received, response.throttle_time_ms, now_ms)

    def failed(self, request: Request, error: KafkaError, now_ms: int) -> None:
        if isinstance(request, Connect):
            self.connecting.failed(request, error)
        elif request.context is None:
            self._closes_in_flight -= 1  # the broker drops the session when it needs the room
            return
        else:
            broker = self._brokers[request.node]
            broker.is_in_flight = False
            broker.session.failed()
        self._unanswered(request.node, error, now_ms)

    def _unanswered(self, node_id: int, error: KafkaError, now_ms: int) -> None:
        """A broker cannot be fetched from now: fetch from the leaders, as the metadata will have them."""
        broker = self._brokers[node_id]
        broker.not_before_ms = now_ms + broker.backoff.failed()
        if not error.is_retriable:
            self.error = error
            return
        self._metadata.refresh(f"a fetch from node {node_id} failed: {error}")
        for state in self._subscription.partitions.values():
            if state.preferred_node == node_id:
                state.preferred_node = -1

    def end_offset(self, state: PartitionState) -> int | None:
        """The offset after the last record that the consumer may read, as the last answer had it; None before the first."""
        return state.last_stable_offset if self._is_committed_only else state.end_offset

    # Requests

    def _node_of(self, state: PartitionState, now_ms: int) -> int | None:
        """The broker to fetch the partition from; None if it cannot be fetched now."""
        if state.phase is not Phase.FETCH or state.is_paused:
            return None
        if state.not_before_ms > now_ms:
            self._due_at(state.not_before_ms)
            return None
        topic, partition = state.topic_partition
        leader = self._metadata.leader(topic, partition)
        info = self._metadata.topic(topic)
        if leader is None or info is None:
            self._metadata.refresh(f"the leader of {topic}-{partition} is not known")
            return None
        if self._errors.is_other_topic(state, info.id):
            self._hand_over(state, now_ms)
            return None
        position = state.fetch_position
        assert position is not None
        if state.until is not None and position.offset >= state.until:
            return None
        if position.epoch > leader[1] > NO_EPOCH and self._awaits_leader(state):
            return None
        if leader[1] > state.validated_epoch:
            # Wait until everything buffered is read, so that the position to validate is the caller's.
            if state.buffered_bytes == 0 and self._errors.new_leader(state, leader[1]):
                self._hand_over(state, now_ms)
                return None
            if state.buffered_bytes:
                return None
        if state.preferred_node >= 0:
            is_known = state.preferred_node in self._metadata.nodes
            if is_known and now_ms < state.preferred_until_ms:
                return state.preferred_node
            if not is_known:  # the leader names it at every fetch, and sends no records
                self._metadata.refresh(f"node {state.preferred_node}, to read {topic}-{partition} from, is not known")
            state.preferred_node = -1
        return leader[0]

    def _awaits_leader(self, state: PartitionState) -> bool:
        """The position, such as a committed one, is from a newer epoch than the known leader. True: wait for the next leader.

        The known one was deposed: it may not have the offset, and then the position would be reset.
        """
        responses = self._metadata.full_responses
        if state.stale_since < 0:
            state.stale_since = responses
        if responses - state.stale_since >= _STALE_RESPONSES_MAX:
            return False
        self._metadata.refresh(f"the leader of {state.topic_partition} has changed: a position is from a newer epoch")
        return True

    def _hand_over(self, state: PartitionState, now_ms: int) -> None:
        """If the partition is now `Positions`' business, have the driver ask that machine: its turn came before this one's."""
        if state.phase is not Phase.FETCH:
            self._due_at(now_ms)

    def _request(self, node_id: int, broker: _Broker, states: list[PartitionState]) -> Request:
        asked: dict[TopicPartition, _Asked] = {}
        wanted: dict[TopicPartition, Wanted] = {}
        settings = self._settings
        for state in states:
            position = state.fetch_position
            assert position is not None
            each = state.topic_partition
            asked[each] = _Asked(state, state.generation, position.offset)
            bytes_max = self._bytes_max(state, position.offset)
            wanted[each] = Wanted(state.topic_id, position.offset, state.validated_epoch, bytes_max)
        session = broker.session.request(wanted)
        broker.is_in_flight = True
        message = FetchRequest(
            max_wait_ms=settings.fetch_max_wait_ms,
            min_bytes=settings.fetch_min_bytes,
            max_bytes=settings.fetch_max_bytes,
            isolation_level=isolation_code(settings),
            session_id=session.session_id,
            session_epoch=session.epoch,
            topics=session.topics,
            forgotten_topics_data=session.forgotten,
            rack_id=settings.client_rack,
        )
        without_id = any(spec.topic_id == ZERO_UUID for spec in wanted.values())
        return Request(
            message,
            node_id,
            channel=Channel.FETCH,
            timeout_ms=settings.request_timeout_ms + settings.fetch_max_wait_ms,
            context=(node_id, asked),
            version_max=_NAMES_ONLY_VERSION_MAX if without_id else None,
        )

    def _bytes_max(self, state: PartitionState, offset: int) -> int:
        """What one answer may hold of the partition. Of a range, not much more than its rest."""
        most = self._settings.max_partition_fetch_bytes
        if state.until is None:
            return most
        return min(most, (state.until - offset) * state.offset_bytes + _RANGE_SLACK_BYTES)

    def _due_at(self, at_ms: int) -> None:
        if self._deadline_ms is None or at_ms < self._deadline_ms:
            self._deadline_ms = at_ms

    # Answers

    def _take_response(self, node_id: int, asked: dict[TopicPartition, _Asked], response: FetchResponse, now_ms: int) -> int:
        names = {each.state.topic_id: partition.topic for partition, each in asked.items()}
        nodes = [Node(each.node_id, each.host, each.port, each.rack) for each in response.node_endpoints]
        received, is_plain = 0, True
        found: list[Fetched] = []
        for topic in response.responses:
            name = topic.topic or names.get(topic.topic_id, "")
            bytes_before, offsets_before = received, self._received_offsets
            for data in topic.partitions:
                each = asked.get(TopicPartition(name, data.partition_index))
                if each is None or not each.is_current:
                    continue
                is_plain = is_plain and not data.error_code and data.preferred_read_replica < 0
                if data.error_code:
                    self._errors.partition_refused(each.state, data, node_id, nodes, now_ms)
                else:
                    received += self._take_partition(each.state, each.offset, data, now_ms, found)
            if received > bytes_before:
                self.metrics.topic_answered(name, self._received_offsets - offsets_before, received - bytes_before, now_ms)
        if found:
            found[-1].is_last = True
            self.ready.extend(found)
        # Incremental answers leave out partitions without news, so this holds for all that was asked.
        is_empty = is_plain and not received
        for each in asked.values():
            if each.generation == each.state.generation:
                each.state.nothing_from = each.offset if is_empty else -1
        return received

    def _take_partition(
        self, state: PartitionState, offset: int, data: PartitionData, now_ms: int, found: list[Fetched]
    ) -> int:
        """Add the records of a partition to `found`; returns their bytes."""
        state.end_offset = data.high_watermark
        state.last_stable_offset = data.last_stable_offset
        if data.log_start_offset >= 0:
            state.log_start_offset = data.log_start_offset
        if data.preferred_read_replica >= 0:
            state.preferred_node = data.preferred_read_replica
            state.preferred_until_ms = now_ms + self._settings.metadata_max_age_ms
        records = data.records
        if not records:
            return 0
        view = memoryview(records)  # type: ignore[arg-type]  # decoding gives a view, never a file range
        end, next_offset, epoch = end_of_batches(view)
        if end == 0:
            if not state.buffered_bytes:
                state.fail(_too_large(state, offset))
            return 0
        aborted = None
        if self._is_committed_only:
            aborted = [(each.first_offset, each.producer_id) for each in data.aborted_transactions or ()]
        state.fetch_position = Position(max(offset, next_offset), epoch)
        state.received_bytes += end
        if next_offset > offset:
            state.offset_bytes = end // (next_offset - offset) + 1
        if next_offset <= offset:
            self._no_progress(state, offset, next_offset, now_ms)
        self._received_offsets += max(0, next_offset - offset)
        found.append(Fetched(state, view, end, offset, aborted, check_crcs=self._settings.check_crcs))
        return end

    def _no_progress(self, state: PartitionState, offset: int, next_offset: int, now_ms: int) -> None:
        """Fetch the partition less often: its broker is broken, and would send the same at once, over and over."""
        state.not_before_ms = now_ms + self._settings.retry_backoff_max_ms
        if self._told_ms is None or now_ms - self._told_ms >= _TELL_AGAIN_MS:
            self._told_ms = now_ms
            logger.warning(
                "a fetch of %s from offset %d was answered with batches up to offset %d, none beyond it: its leader is broken. "
                "It is asked again every %d ms; restart that broker, or look at the partition with `ottla dump-log`",
                state.topic_partition, offset, next_offset, self._settings.retry_backoff_max_ms,
            )  # fmt: skip


def _close_request(node_id: int, session_id: int) -> Request:
    """Close a session. Not over the connection for fetches: there it would wait behind the fetch that the broker has parked."""
    message = FetchRequest(max_wait_ms=0, min_bytes=0, session_id=session_id, session_epoch=FINAL_EPOCH)
    return Request(message, node_id)


def _too_large(state: PartitionState, offset: int) -> RecordTooLargeError:
    return RecordTooLargeError(
        f"the batch at offset {offset} of {state.topic_partition} is larger than one answer may be: raise "
        "max.partition.fetch.bytes and fetch.max.bytes"
    )
