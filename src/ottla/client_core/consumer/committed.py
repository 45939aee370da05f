"""`CommittedOffsets`: finds the offsets that a group has committed (OffsetFetch).

A machine (`machine.py`). A query is retried until its owner drops it. Version notes: v10: topic ids in place of names; v9:
member epochs of the KIP-848 protocol; v8: several groups in one request; v7: require stable, so that offsets of an open
transaction are waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from ottla.client_core.backoff import Backoff
from ottla.client_core.consumer.commits import Member
from ottla.client_core.coordinators import BackoffSettings, CoordinatorFinder
from ottla.client_core.machine import Channel, Request
from ottla.client_core.metadata import Metadata
from ottla.client_core.offsets import OffsetAndMetadata
from ottla.errors import KafkaError, exception_of
from ottla.errors.codes import ErrorCode, error_meaning
from ottla.ids import ZERO_UUID, TopicPartition, Uuid
from ottla.wire.base import Message
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

_GROUPS_SINCE_VERSION: Final = 8
_NAMES_ONLY_VERSION_MAX: Final = 9
_LOST: Final = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR})
_WAITING: Final = frozenset({ErrorCode.UNSTABLE_OFFSET_COMMIT, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS})
_MEMBER_CHANGES: Final = frozenset({ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID})


class CommittedQuery:
    """A question for the committed offsets of partitions, and its answer."""

    def __init__(self, partitions: Iterable[TopicPartition]) -> None:
        self.partitions = list(partitions)
        self.found: dict[TopicPartition, OffsetAndMetadata | None] = {}
        """None: nothing was committed for the partition."""
        self.error: KafkaError | None = None
        self.is_done = not self.partitions
        self.retried: KafkaError | None = None
        """The last error that is being retried: why the query takes so long."""
        self.is_in_flight = False
        self.not_before_ms = 0


class CommittedOffsets:
    """Answers queries for committed offsets of one group."""

    def __init__(
        self,
        group_id: str,
        finder: CoordinatorFinder,
        metadata: Metadata,
        settings: BackoffSettings,
        random_below: Callable[[int], int],
    ) -> None:
        self.member: Member | None = None
        """The membership in a group of the KIP-848 protocol, which checks the member's epoch; else None."""
        self.free_channel: Callable[[], Channel] = lambda: Channel.GROUP
        """A connection to the coordinator on which nothing is parked (`Membership.free_channel`)."""
        self._group_id = group_id
        self._finder = finder
        self._metadata = metadata
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, random_below)
        self._queries: list[CommittedQuery] = []

    def ask(self, partitions: Iterable[TopicPartition]) -> CommittedQuery:
        """Start a query."""
        query = CommittedQuery(partitions)
        if not query.is_done:
            if self._finder.error is not None:
                self._finder.want()  # what refused an earlier search may have been mended since
            self._queries.append(query)
        return query

    def drop(self, query: CommittedQuery) -> None:
        """No longer look for an answer to `query`."""
        if query in self._queries:
            self._queries.remove(query)

    # Machine

    def step(self, now_ms: int) -> list[Request]:
        waiting = [query for query in self._queries if not query.is_in_flight]
        if not waiting:
            return []
        due = [query for query in waiting if query.not_before_ms <= now_ms]
        if self._finder.node() is None:
            error = self._finder.error
            if error is None:
                self._finder.want()
            for query in waiting:
                query.retried = self._finder.retried_error or query.retried
                if error is not None:
                    self._end(query, error)
            return []
        channel = self.free_channel()
        node_id = self._finder.connected(channel) if due else None
        if node_id is None:
            return []
        for query in due:
            query.is_in_flight = True
        return [self._request(query, node_id, channel) for query in due]

    def next_deadline_ms(self) -> int | None:
        times = [query.not_before_ms for query in self._queries if not query.is_in_flight and query.not_before_ms]
        return min(times) if times and self._finder.is_ready else None

    def answered(self, request: Request, response: Any, version: int, now_ms: int) -> None:
        query, names = request.context
        query.is_in_flight = False
        topics, code = response.topics, response.error_code
        if version >= _GROUPS_SINCE_VERSION:
            group = next((each for each in response.groups if each.group_id == self._group_id), None)
            topics, code = ([], ErrorCode.UNKNOWN_SERVER_ERROR) if group is None else (group.topics, group.error_code)
        found: dict[TopicPartition, OffsetAndMetadata | None] = {}
        for topic in topics:
            name = topic.name or names.get(topic.topic_id, "")
            for data in topic.partitions:
                if data.error_code in (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                    self._metadata.refresh(f"OffsetFetch does not know topic {name}")
                code = code or data.error_code
                epoch = None if data.committed_leader_epoch < 0 else data.committed_leader_epoch
                value = OffsetAndMetadata(data.committed_offset, data.metadata or "", epoch)
                found[TopicPartition(name, data.partition_index)] = value if data.committed_offset >= 0 else None
        if code:
            text = f"the committed offsets of group {self._group_id} cannot be read: {error_meaning(code)}"
            self._refused(query, exception_of(code, text), now_ms)
            return
        query.found = {each: found.get(each) for each in query.partitions}
        self._backoff.succeeded()
        self._end(query, None)

    def failed(self, request: Request, error: KafkaError, now_ms: int) -> None:
        query, _ = request.context
        query.is_in_flight = False
        if error.is_retriable:
            self._finder.lost(str(error))
        self._refused(query, error, now_ms)

    # Details

    def _request(self, query: CommittedQuery, node_id: int, channel: Channel) -> Request:
        by_topic: dict[str, list[int]] = {}
        for each in query.partitions:
            by_topic.setdefault(each.topic, []).append(each.partition)
        ids = {topic: self._topic_id(topic) for topic in by_topic}
        member, group_id = self.member, self._group_id

        def adapt(version: int) -> Message:
            if version < _GROUPS_SINCE_VERSION:
                old = [OffsetFetchRequestTopic(name=name, partition_indexes=indexes) for name, indexes in by_topic.items()]
                return OffsetFetchRequest(group_id=group_id, topics=old, require_stable=version >= 7)
            topics = [
                OffsetFetchRequestTopics(name=name, topic_id=ids[name], partition_indexes=indexes)
                for name, indexes in by_topic.items()
            ]
            group = OffsetFetchRequestGroup(group_id=group_id, topics=topics)
            if member is not None and member.generation_or_epoch >= 0:
                group.member_id, group.member_epoch = member.member_id, member.generation_or_epoch
            return OffsetFetchRequest(groups=[group], require_stable=True)

        version_max = _NAMES_ONLY_VERSION_MAX if ZERO_UUID in ids.values() else None
        # The names belong to the request: the metadata may have lost the topic when the answer comes.
        context = (query, {topic_id: name for name, topic_id in ids.items()})
        return Request(OffsetFetchRequest(), node_id, channel=channel, context=context, adapt=adapt, version_max=version_max)

    def _topic_id(self, name: str) -> Uuid:
        info = self._metadata.topic(name)
        return ZERO_UUID if info is None else info.id

    def _refused(self, query: CommittedQuery, error: KafkaError, now_ms: int) -> None:
        if error.code in _LOST:
            self._finder.lost(str(error))
        if error.is_retriable or error.code in _WAITING or error.code in _MEMBER_CHANGES:
            query.retried = error
            query.not_before_ms = now_ms + self._backoff.failed()
        else:
            self._end(query, error)

    def _end(self, query: CommittedQuery, error: KafkaError | None) -> None:
        query.error = error
        query.is_done = True
        self.drop(query)
