"""`Commits`: commits offsets to the group's coordinator (OffsetCommit), in the order in which they were asked for.

A machine (`machine.py`). One request is in flight at a time, so an older commit never overwrites a newer one. A commit with
retries is tried again until its deadline; one without fails with the first error. Version notes: v10: topic ids in place of
names; v9: member epochs of the KIP-848 protocol; v6: leader epochs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol

from ottla.client_core.coordinators import BackoffSettings, CoordinatorFinder
from ottla.client_core.machine import Channel, Request
from ottla.client_core.metadata import Metadata
from ottla.client_core.offsets import OffsetAndMetadata
from ottla.env.backoff import Backoff
from ottla.errors import (
    CommitFailedError,
    FencedInstanceIdError,
    KafkaError,
    RetriableCommitFailedError,
    TimeoutError,
    exception_of,
)
from ottla.errors.codes import ErrorCode, error_meaning
from ottla.ids import ZERO_UUID, TopicPartition, Uuid
from ottla.wire.base import Message
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

TOPIC_IDS_SINCE_VERSION: Final = 10

_LOST: Final = frozenset(
    {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NETWORK_EXCEPTION}
)
"""Errors after which the coordinator is looked for again."""
_MEMBER_GONE: Final = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.STALE_MEMBER_EPOCH,
    }
)

_OUTDATED: Final = frozenset({ErrorCode.ILLEGAL_GENERATION, ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.REBALANCE_IN_PROGRESS})
"""The coordinator has gone on to a generation or epoch that the member had not heard of, or is about to."""
_NAMED_MAX: Final = 5


class Member(Protocol):
    """What a commit says of the member that makes it (`group/membership.py`)."""

    @property
    def group_instance_id(self) -> str | None: ...
    @property
    def member_id(self) -> str: ...
    @property
    def generation_or_epoch(self) -> int: ...
    @property
    def losses(self) -> int: ...
    @property
    def assigned(self) -> frozenset[TopicPartition]: ...
    @property
    def free_channel(self) -> Channel: ...
    def commit_refused(self, error: KafkaError, generation_or_epoch: int, now_ms: int) -> None: ...


class Commit:
    """One commit and its outcome."""

    def __init__(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], deadline_ms: int, *, is_retried: bool) -> None:
        self.offsets = dict(offsets)
        self.deadline_ms = deadline_ms
        self.is_retried = is_retried
        self.losses: int | None = None
        """How often the member had lost its membership before: a later membership does not own these partitions."""
        self.is_done = False
        self.error: KafkaError | None = None
        self.retried: KafkaError | None = None
        """The last error that is being retried: why the commit takes so long."""

    def end(self, error: KafkaError | None) -> None:
        """The outcome is known."""
        self.is_done = True
        self.error = error


class Commits:
    """Sends commits, one after the other."""

    def __init__(
        self,
        group_id: str,
        finder: CoordinatorFinder,
        metadata: Metadata,
        settings: BackoffSettings,
        random_below: Callable[[int], int],
    ) -> None:
        self.member: Member | None = None
        """The membership, where partitions come from the group."""
        self.group_id = group_id
        self._finder = finder
        self._metadata = metadata
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, random_below)
        self._queue: deque[Commit] = deque()
        self._in_flight: Commit | None = None
        self._not_before_ms = 0

    @property
    def is_idle(self) -> bool:
        """Whether every commit has its outcome."""
        return not self._queue and self._in_flight is None

    def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], deadline_ms: int, *, is_retried: bool) -> Commit:
        """Commit `offsets` after all that was asked for before. Nothing to commit is done at once."""
        made = Commit(offsets, deadline_ms, is_retried=is_retried)
        if not offsets:
            made.end(None)
        else:
            if self._finder.error is not None:
                self._finder.want()  # what refused an earlier search may have been mended since
            made.losses = None if self.member is None else self.member.losses
            self._queue.append(made)
        return made

    def give_up(self, commit: Commit) -> None:
        """Nobody waits for `commit` any more: do not send it, or not again."""
        commit.is_retried = False
        if commit in self._queue:
            self._queue.remove(commit)

    # Machine

    def step(self, now_ms: int) -> list[Request]:
        while self._queue and self._queue[0].deadline_ms <= now_ms and self._in_flight is None:
            commit = self._queue.popleft()
            why = commit.retried or self._finder.error or self._finder.retried_error
            commit.end(TimeoutError(f"offsets of group {self.group_id} were not committed in time{f': {why}' if why else ''}"))
        if self._in_flight is None and self.member is not None and self.member.generation_or_epoch < 0:
            # Without a generation it would be taken for a commit from outside, which an empty group accepts.
            while self._queue:
                self._fail(self._queue.popleft(), "this consumer is not in the group now")
        while self._queue and self._in_flight is None and self._is_of_lost_membership(self._queue[0]):
            self._fail(self._queue.popleft(), "this consumer lost its partitions, and has joined again")
        if not self._queue or self._in_flight is not None or now_ms < self._not_before_ms:
            return []
        if self._finder.node() is None:
            self._await_coordinator()
        channel = Channel.GROUP if self.member is None else self.member.free_channel
        node_id = self._finder.connected(channel)
        if node_id is None:
            return []
        commit = self._in_flight = self._queue.popleft()
        return [self._request(commit, node_id, channel)]

    def next_deadline_ms(self) -> int | None:
        if not self._queue or self._in_flight is not None:
            return None
        deadline_ms = self._queue[0].deadline_ms
        return min(deadline_ms, self._not_before_ms) if self._not_before_ms and self._finder.is_ready else deadline_ms

    def answered(self, request: Request, response: Any, version: int, now_ms: int) -> None:
        commit, generation = request.context
        self._in_flight = None
        first: tuple[TopicPartition, int] | None = None
        for topic in response.topics:
            for data in topic.partitions:
                if data.error_code and first is None:
                    name = topic.name or self._name_of(topic.topic_id)
                    first = (TopicPartition(name, data.partition_index), data.error_code)
        if first is None:
            self._backoff.succeeded()
            commit.end(None)
        else:
            partition, code = first
            text = f"the offset of {partition} was not committed for group {self.group_id}: {error_meaning(code)}"
            self._refused(commit, exception_of(code, text), generation, now_ms)

    def failed(self, request: Request, error: KafkaError, now_ms: int) -> None:
        commit, generation = request.context
        self._in_flight = None
        if error.is_retriable:
            self._finder.lost(str(error))
        self._refused(commit, error, generation, now_ms)

    # Details

    def _is_of_lost_membership(self, commit: Commit) -> bool:
        return self.member is not None and commit.losses is not None and commit.losses != self.member.losses

    def _await_coordinator(self) -> None:
        error = self._finder.error
        if error is not None:
            while self._queue:
                self._queue.popleft().end(error)
        else:
            self._finder.want()

    def _request(self, commit: Commit, node_id: int, channel: Channel) -> Request:
        member = self.member
        generation = -1 if member is None else member.generation_or_epoch
        ids = {each.topic: self._topic_id(each.topic) for each in commit.offsets}
        topics: dict[str, OffsetCommitRequestTopic] = {}
        for each, value in commit.offsets.items():
            topic = topics.setdefault(each.topic, OffsetCommitRequestTopic(name=each.topic, topic_id=ids[each.topic]))
            topic.partitions.append(
                OffsetCommitRequestPartition(
                    partition_index=each.partition,
                    committed_offset=value.offset,
                    committed_leader_epoch=-1 if value.leader_epoch is None else value.leader_epoch,
                    committed_metadata=value.metadata,
                )
            )
        message = OffsetCommitRequest(
            group_id=self.group_id,
            generation_id_or_member_epoch=generation,
            member_id="" if member is None else member.member_id,
            group_instance_id=None if member is None else member.group_instance_id,
            topics=list(topics.values()),
        )
        return Request(
            message,
            node_id,
            channel=channel,
            context=(commit, generation),
            version_max=TOPIC_IDS_SINCE_VERSION - 1 if ZERO_UUID in ids.values() else None,
        )

    def _topic_id(self, name: str) -> Uuid:
        info = self._metadata.topic(name)
        return ZERO_UUID if info is None else info.id

    def _name_of(self, topic_id: Uuid) -> str:
        info = self._metadata.topic_of_id(topic_id)
        return "" if info is None else info.name

    def _refused(self, commit: Commit, error: KafkaError, generation: int, now_ms: int) -> None:
        code = error.code
        if code in _LOST:
            self._finder.lost(str(error))
        if self.member is not None and not isinstance(error, TimeoutError):
            self.member.commit_refused(error, generation, now_ms)
        if code in _OUTDATED and self._still_holds(commit):
            if commit.is_retried or (self.member is not None and self.member.generation_or_epoch > generation):
                self._retry(commit, error, now_ms)
            else:
                commit.end(_commit_again(error))
        elif code in _OUTDATED or code in _MEMBER_GONE:
            self._fail(commit, error_meaning(code))
        elif not error.is_retriable or isinstance(error, FencedInstanceIdError):
            commit.end(error)
        elif not commit.is_retried:
            commit.end(_commit_again(error))
        else:
            self._retry(commit, error, now_ms)

    def _still_holds(self, commit: Commit) -> bool:
        """Whether the member that made the commit has its partitions still: it may commit when the rebalance is over."""
        member = self.member
        if member is None or self._is_of_lost_membership(commit) or member.generation_or_epoch < 0:
            return False
        return member.assigned.issuperset(commit.offsets)

    def _fail(self, commit: Commit, why: str) -> None:
        commit.end(not_committed(self.group_id, commit.offsets, why))

    def _retry(self, commit: Commit, error: KafkaError, now_ms: int) -> None:
        commit.retried = error
        self._not_before_ms = now_ms + self._backoff.failed()
        self._queue.appendleft(commit)


def _commit_again(error: KafkaError) -> RetriableCommitFailedError:
    return RetriableCommitFailedError(f"{error} Commit again, unless a later commit was made")


def not_committed(group_id: str, partitions: Iterable[TopicPartition], why: str) -> CommitFailedError:
    """The error of a commit for partitions that the group may have given to another member."""
    named, why = sorted(partitions), why.removeprefix(f"group {group_id}: ").rstrip(".")
    listed = ", ".join(map(str, named[:_NAMED_MAX])) + (f" and {len(named) - _NAMED_MAX} more" * (len(named) > _NAMED_MAX))
    return CommitFailedError(
        f"the offsets of {listed} were not committed for group {group_id}: {why}. Go on with the next poll(). "
        "Their new owner reads on from the last commit, so records come again"
    )


# `CommittedOffsets`: finds the offsets that a group has committed (OffsetFetch).
#
# A machine (`machine.py`). A query is retried until its owner drops it. Version notes: v10: topic ids in place of names; v9:
# member epochs of the KIP-848 protocol; v8: several groups in one request; v7: require stable, so that offsets of an open
# transaction are waited for.

_GROUPS_SINCE_VERSION: Final = 8
_NAMES_ONLY_VERSION_MAX: Final = 9
_MOVED: Final = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR})
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
        if error.code in _MOVED:
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
