"""`OffsetLister`: finds offsets by time, first and last offsets included, at the leaders of the partitions (ListOffsets).

A machine (`machine.py`). A query is answered partition by partition; what a leader refuses with a retriable error is asked
again until the owner gives the query up. Version notes: v2: isolation level; v4: leader epochs; v10: a time limit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from ottla.client_core.consumer.settings import OffsetSettings, isolation_code
from ottla.client_core.machine import Connect, Request
from ottla.client_core.metadata import Metadata
from ottla.client_core.pending_connections import Connecting
from ottla.env.backoff import Backoff
from ottla.errors import KafkaError, exception_of
from ottla.errors.codes import ErrorCode, error_meaning
from ottla.ids import TopicPartition
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic


class OffsetAndTimestamp(NamedTuple):
    """An offset found by time. `leader_epoch` is -1 where the broker does not tell it."""

    offset: int
    timestamp: int
    leader_epoch: int = -1


class OffsetQuery:
    """A question for the offsets of partitions at given times, and what is known of its answer."""

    def __init__(self, timestamps: Mapping[TopicPartition, int]) -> None:
        self.timestamps = dict(timestamps)
        self.found: dict[TopicPartition, OffsetAndTimestamp | None] = {}
        """None: the partition has no record of that time or later."""
        self.errors: dict[TopicPartition, KafkaError] = {}
        """Errors that no retry mends."""
        self.retried: KafkaError | None = None
        """The last error that is being retried: why the query takes so long."""
        self.waiting = set(timestamps)

    @property
    def is_done(self) -> bool:
        """Whether every partition has its answer."""
        return len(self.found) + len(self.errors) == len(self.timestamps)


class _Round(NamedTuple):
    query: OffsetQuery
    partitions: list[TopicPartition]


class OffsetLister:
    """Answers queries for offsets."""

    def __init__(self, metadata: Metadata, settings: OffsetSettings, random_below: Callable[[int], int]) -> None:
        self.connecting = Connecting(metadata, settings.retry_backoff_max_ms)
        self._metadata = metadata
        self._settings = settings
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, random_below)
        self._queries: list[OffsetQuery] = []
        self._not_before_ms = 0
        self._seen_version = -1

    def ask(self, timestamps: Mapping[TopicPartition, int]) -> OffsetQuery:
        """Start a query. Its topics must be wanted in the metadata."""
        query = OffsetQuery(timestamps)
        if query.timestamps:
            self._queries.append(query)
        return query

    def drop(self, query: OffsetQuery) -> None:
        """No longer look for answers to `query`."""
        if query in self._queries:
            self._queries.remove(query)

    # Machine

    def step(self, now_ms: int) -> list[Request]:
        self.connecting.look(now_ms)
        if now_ms >= self._not_before_ms:
            self._not_before_ms = 0  # what still has no leader waits for metadata: a deadline in the past would spin the driver
        elif self._seen_version == self._metadata.version:
            return []
        self._seen_version = self._metadata.version
        requests: list[Request] = []
        for query in list(self._queries):
            by_leader: dict[int, list[TopicPartition]] = {}
            for each in sorted(query.waiting):
                leader = self._leader(query, each)
                if leader is not None:
                    by_leader.setdefault(leader, []).append(each)
            for node_id, partitions in by_leader.items():
                if not self.connecting.is_open(node_id):
                    requests += self.connecting.connect(node_id, now_ms)
                    continue
                query.waiting.difference_update(partitions)
                context = _Round(query, partitions)
                requests.append(Request(self._message(query, partitions), node_id, context=context))
            self._check_done(query)
        return requests

    def next_deadline_ms(self) -> int | None:
        is_retrying = self._not_before_ms and any(query.waiting for query in self._queries)
        return self.connecting.next_deadline_ms(self._not_before_ms if is_retrying else None)

    def answered(self, request: Request, response: Any, version: int, now_ms: int) -> None:
        if isinstance(request, Connect):
            self.connecting.answered(request)
            return
        query, partitions = request.context
        left = set(partitions)
        for topic in response.topics:
            for data in topic.partitions:
                each = TopicPartition(topic.name, data.partition_index)
                if each not in left:
                    continue
                left.discard(each)
                if data.error_code:
                    self._refused(query, each, data.error_code, now_ms)
                elif data.offset < 0:
                    query.found[each] = None
                else:
                    query.found[each] = OffsetAndTimestamp(data.offset, data.timestamp, data.leader_epoch)
        for each in left:
            self._refused(query, each, ErrorCode.UNKNOWN_SERVER_ERROR, now_ms)
        if not query.waiting:
            self._backoff.succeeded()
        self._check_done(query)

    def failed(self, request: Request, error: KafkaError, now_ms: int) -> None:
        if isinstance(request, Connect):
            self.connecting.failed(request, error)
            for query in list(self._queries):
                led = [each for each in query.waiting if self._metadata.is_led_by(request.node, *each)]
                self._unanswered(query, led, error, now_ms)
        else:
            query, partitions = request.context
            self._unanswered(query, partitions, error, now_ms)

    def _unanswered(self, query: OffsetQuery, partitions: list[TopicPartition], error: KafkaError, now_ms: int) -> None:
        if not partitions:
            return
        if error.is_retriable:
            self._metadata.refresh(f"ListOffsets failed: {error}")
            self._retry(query, partitions, error, now_ms)
        else:
            query.waiting.difference_update(partitions)
            query.errors.update(dict.fromkeys(partitions, error))
            self._check_done(query)

    def _leader(self, query: OffsetQuery, each: TopicPartition) -> int | None:
        leader = self._metadata.leader(each.topic, each.partition)
        if leader is not None:
            return leader[0]
        info, error = self._metadata.topic(each.topic), self._metadata.topic_error(each.topic)
        if info is not None and each.partition >= len(info.partitions):
            text = f"topic {each.topic} has no partition {each.partition}; it has {len(info.partitions)}"
            error = exception_of(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
        query.retried = error or query.retried
        if error is not None and not error.is_retriable:
            query.waiting.discard(each)
            query.errors[each] = error
        else:
            self._metadata.refresh(f"the leader of {each} is not known")
        return None

    def _message(self, query: OffsetQuery, partitions: Collection[TopicPartition]) -> ListOffsetsRequest:
        topics: dict[str, ListOffsetsTopic] = {}
        for each in partitions:
            leader = self._metadata.leader(each.topic, each.partition)
            topics.setdefault(each.topic, ListOffsetsTopic(name=each.topic)).partitions.append(
                ListOffsetsPartition(
                    partition_index=each.partition,
                    current_leader_epoch=leader[1] if leader is not None else -1,
                    timestamp=query.timestamps[each],
                )
            )
        return ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation_code(self._settings),
            topics=list(topics.values()),
            timeout_ms=self._settings.request_timeout_ms,
        )

    def _refused(self, query: OffsetQuery, each: TopicPartition, code: int, now_ms: int) -> None:
        error = exception_of(code, f"the offsets of {each} cannot be listed: {error_meaning(code)}")
        if error.is_retriable or code == ErrorCode.UNKNOWN_SERVER_ERROR:
            self._metadata.refresh(f"ListOffsets of {each} was refused: {error.name}")
            self._retry(query, [each], error, now_ms)
        else:
            query.errors[each] = error

    def _retry(self, query: OffsetQuery, partitions: Collection[TopicPartition], error: KafkaError, now_ms: int) -> None:
        query.retried = error
        query.waiting.update(partitions)
        self._not_before_ms = now_ms + self._backoff.failed()
        self._seen_version = self._metadata.version

    def _check_done(self, query: OffsetQuery) -> None:
        if query.is_done:
            self.drop(query)
