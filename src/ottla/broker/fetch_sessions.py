"""Incremental fetch sessions: a consumer names its partitions once, then requests and responses carry only changes.

A session has an id that the broker chose and an epoch that rises by one with every request. The rules of the protocol:

    epoch 0                 a full request; the response may offer a new session. Ends the session it names, if any
    epoch -1                a full request without a session. Ends the session it names, if any
    any other               an incremental request: partitions it names are added or changed, those it forgets are dropped, and
                            the whole session is fetched. The response has only partitions with records, errors or changes

A session's partitions are read in order. Those that returned records move to the end, so that a full response starves none.

If all slots are taken, a new session evicts one that was not used for `EVICTION_MS`; or a consumer's session, if the new one is
a replica's; or one that is older than `EVICTION_MS` and has no more partitions than the new one. If there is none of these, the
consumer gets no session and is served by full requests.

A follower's session also keeps which partitions there is something to say about (`follower_sessions.py`): only they are read.

The same happens if all sessions together would hold more than `PARTITIONS_MAX` partitions: requests can name any number of
partitions that do not exist, so the slots alone do not bound memory. Parked requests without a session share another limit of
`PARTITIONS_MAX`; above it, such a request is answered at once with what there is.

Owns the sessions and what was last sent in each; reads no log. One event loop, plain calls.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ottla.broker.replication.follower_sessions import FollowerSession
from ottla.env import Clock, Randomness
from ottla.errors.codes import ErrorCode
from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.messages.fetch import FetchableTopicResponse, FetchPartition, FetchRequest, FetchResponse, PartitionData

if TYPE_CHECKING:
    from ottla.broker.partitions.in_sync import RemoteReplica
    from ottla.broker.partitions.partition import Partition
    from ottla.broker.purgatory.delayed_fetch import DelayedFetch
    from ottla.broker.settings import BrokerSettings

EVICTION_MS = 120_000
NO_SESSION = 0
FIRST_EPOCH = 0
LAST_EPOCH = -1
EPOCH_MAX = 2**31 - 1
SESSION_ID_MAX = 2**31 - 1
PARTITIONS_MAX = 100_000
"""Limit for all sessions together, and for all parked requests without one. A partition takes 0.7 to 1.4 kB."""
TOPIC_IDS_SINCE = 13

Key = tuple[str | Uuid, int]
"""Topic name (before version 13) or topic id, and the partition's index."""
EvictionKey = tuple[bool, int, int]
"""Whether it is a replica's, its number of partitions, its id. The session with the least key is evicted first."""


class FetchReader(NamedTuple):
    """Who fetches."""

    replica_id: int = -1
    """Negative: a consumer."""
    broker_epoch: int = -1

    @property
    def is_replica(self) -> bool:
        return self.replica_id >= 0


class FetchedPartition:
    """A partition of a fetch request or session: what the client asked for, and what was last sent in the session."""

    __slots__ = (
        "agreed_epoch",
        "fetch_offset",
        "follower",
        "index",
        "last_fetched_epoch",
        "leader_epoch",
        "log_start_offset",
        "max_bytes",
        "partition",
        "resting",
        "sent_high_watermark",
        "sent_log_start",
        "topic",
        "topic_id",
    )

    def __init__(self, topic: str | None, topic_id: Uuid, asked: FetchPartition) -> None:
        self.topic = topic
        """None until the topic id has been resolved to a name."""
        self.topic_id = topic_id
        self.index = asked.partition
        self.partition: Partition | None = None
        """The partition found at the last try, if its topic has this id."""
        self.follower: FollowerSession | None = None
        """The follower's session that it belongs to."""
        self.resting: RemoteReplica | None = None
        """The replica, while there is nothing to say to it about the partition."""
        self.sent_high_watermark = self.sent_log_start = -1
        self.ask(asked)

    def ask(self, asked: FetchPartition) -> None:
        self.fetch_offset = asked.fetch_offset
        self.max_bytes = asked.partition_max_bytes
        self.leader_epoch = asked.current_leader_epoch
        self.last_fetched_epoch = asked.last_fetched_epoch
        self.log_start_offset = asked.log_start_offset
        self.agreed_epoch = -1
        """The leader epoch in which the reader's log was found not to diverge: the leader only appends in it."""

    def look(self) -> DelayedFetch | None:
        """The partition has changed: look at it with the follower's next try. Returns the follower's parked fetch."""
        follower = self.follower
        if follower is None:
            return None
        follower.look_at(self)
        return follower.parked

    def recheck(self) -> None:
        """Find out whether the partition has changed unnoticed."""
        if self.follower is not None:
            self.follower.recheck(self)

    def leave_to(self, replica_id: int) -> None:
        """A newer session of that replica watches the partition: if this is an older one of it, it does not any more."""
        follower = self.follower
        if follower is not None and follower.replica_id == replica_id:
            follower.unwatch(self)
            self.partition = None

    def has_news(self, data: PartitionData) -> bool:
        """Whether `data` has to be sent; remembers it as sent."""
        is_news = bool(data.records) or data.diverging_epoch is not None or data.preferred_read_replica >= 0
        if self.sent_high_watermark != data.high_watermark or self.sent_log_start != data.log_start_offset:
            is_news = True
        self.note_sent(data)
        return is_news or data.error_code != 0

    def note_sent(self, data: PartitionData) -> None:
        # After an error the partition is sent again, even if its offsets have not changed.
        self.sent_high_watermark = data.high_watermark if data.error_code == 0 else -1
        self.sent_log_start = data.log_start_offset


Answers = list[tuple[FetchedPartition, PartitionData]]


class FetchSession:
    """One session: its partitions, its epoch and what its eviction depends on."""

    __slots__ = ("created_ms", "epoch", "eviction_key", "follower", "id", "is_old", "used_ms", "uses_topic_ids", "wanted")

    def __init__(
        self,
        id: int,
        wanted: dict[Key, FetchedPartition],
        follower: FollowerSession | None,
        uses_topic_ids: bool,
        now_ms: int,
    ) -> None:
        self.id = id
        self.epoch = next_epoch(FIRST_EPOCH)
        self.wanted = wanted
        self.follower = follower
        """None: it is a consumer's."""
        self.uses_topic_ids = uses_topic_ids
        self.created_ms = self.used_ms = now_ms
        self.is_old = False
        self.eviction_key: EvictionKey | None = None
        if follower is not None:
            for each in wanted.values():
                each.follower = follower
                follower.look_at(each)
                follower.watch(each)

    @property
    def is_replica(self) -> bool:
        return self.follower is not None

    def update(self, request: FetchRequest) -> None:
        follower = self.follower
        for key, topic, topic_id, asked in _asked_for(request, self.uses_topic_ids):
            known = self.wanted.get(key)
            if known is None:
                known = self.wanted[key] = FetchedPartition(topic, topic_id, asked)
                known.follower = follower
            else:
                known.ask(asked)
            if follower is not None:
                follower.look_at(known)
        for forgotten in request.forgotten_topics_data:
            name = forgotten.topic_id if self.uses_topic_ids else forgotten.topic
            for index in forgotten.partitions:
                gone = self.wanted.pop((name, index), None)
                if gone is not None and follower is not None:
                    follower.drop(gone)

    def is_fetched(self, broker_epoch: int, now_s: float) -> None:
        """A follower's request has come, and `update` has taken it over."""
        follower = self.follower
        if follower is not None:
            if broker_epoch != follower.broker_epoch:
                follower.broker_epoch = broker_epoch
                for each in self.wanted.values():
                    follower.look_at(each)
            follower.fetched_s = now_s

    def end(self) -> None:
        """The session is over."""
        if self.follower is not None:
            for each in self.wanted.values():
                self.follower.drop(each)


def next_epoch(epoch: int) -> int:
    """The epoch after `epoch`; the largest is followed by 1, since 0 and -1 have meanings of their own."""
    if epoch < 0:
        return LAST_EPOCH
    return 1 if epoch == EPOCH_MAX else epoch + 1


def _asked_for(request: FetchRequest, by_id: bool) -> Iterable[tuple[Key, str | None, Uuid, FetchPartition]]:
    for topic in request.topics:
        if by_id:
            for asked in topic.partitions:
                yield (topic.topic_id, asked.partition), None, topic.topic_id, asked
        else:
            for asked in topic.partitions:
                yield (topic.topic, asked.partition), topic.topic, ZERO_UUID, asked


def wanted_by(request: FetchRequest, by_id: bool) -> dict[Key, FetchedPartition]:
    """The partitions that a request names."""
    return {key: FetchedPartition(topic, topic_id, asked) for key, topic, topic_id, asked in _asked_for(request, by_id)}


class FetchContext:
    """The partitions of a request, and how its response is put together. This class: a full request without a session."""

    __slots__ = ("wanted",)

    is_incremental = False
    """Whether the response leaves out partitions without changes."""
    follower: FollowerSession | None = None
    """The follower's session, if the request is within one."""

    def __init__(self, wanted: dict[Key, FetchedPartition]) -> None:
        self.wanted = wanted

    @property
    def to_read(self) -> Collection[FetchedPartition]:
        """The partitions to look at."""
        return self.wanted.values()

    def finish(self, answers: Answers) -> FetchResponse:
        return _response(NO_SESSION, answers)

    def refused(self) -> FetchResponse:
        """The response without anything, to be asked for again: no session is made."""
        return FetchResponse()


class FullContext(FetchContext):
    """A full request whose response offers a session, if there is room."""

    __slots__ = ("_reader", "_sessions", "_uses_topic_ids")

    def __init__(
        self, wanted: dict[Key, FetchedPartition], sessions: FetchSessions, reader: FetchReader, uses_topic_ids: bool
    ) -> None:
        super().__init__(wanted)
        self._sessions = sessions
        self._reader = reader
        self._uses_topic_ids = uses_topic_ids

    def finish(self, answers: Answers) -> FetchResponse:
        for wanted, data in answers:
            wanted.note_sent(data)
        return _response(self._sessions.create(self.wanted, self._reader, self._uses_topic_ids), answers)


class IncrementalContext(FetchContext):
    """A request within a session."""

    __slots__ = ("_epoch", "_session")

    is_incremental = True

    def __init__(self, session: FetchSession) -> None:
        super().__init__(session.wanted)
        self._session = session
        self._epoch = session.epoch

    def finish(self, answers: Answers) -> FetchResponse:
        session = self._session
        if session.epoch != self._epoch:
            return self.refused()
        news = [answer for answer in answers if answer[0].has_news(answer[1])]
        partitions = session.wanted
        for wanted, data in news:
            if data.records:
                key = (wanted.topic_id if session.uses_topic_ids else wanted.topic or "", wanted.index)
                partitions[key] = partitions.pop(key)
        return _response(session.id, news)

    def refused(self) -> FetchResponse:
        session = self._session
        if session.epoch != self._epoch:  # another request of the session came while this one was parked
            return FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=session.id)
        return FetchResponse(session_id=session.id)


class FollowerContext(IncrementalContext):
    """A request within a follower's session: only the partitions about which there may be news are read."""

    __slots__ = ("follower",)

    def __init__(self, session: FetchSession, follower: FollowerSession) -> None:
        super().__init__(session)
        self.follower: FollowerSession = follower

    @property
    def to_read(self) -> Collection[FetchedPartition]:
        return self.follower.dirty

    def finish(self, answers: Answers) -> FetchResponse:
        dirty = self.follower.dirty
        for wanted, data in answers:
            if data.records and wanted in dirty:
                dirty[wanted] = dirty.pop(wanted)  # last: replicas far behind would fill every response before those in sync
        return super().finish(answers)


def _response(session_id: int, answers: Answers) -> FetchResponse:
    """The partitions in their order; consecutive ones of one topic share an entry."""
    response = FetchResponse()
    response.session_id = session_id
    entry: FetchableTopicResponse | None = None
    for wanted, data in answers:
        if entry is None or entry.topic_id != wanted.topic_id or entry.topic != (wanted.topic or ""):
            entry = FetchableTopicResponse()
            entry.topic = wanted.topic or ""
            entry.topic_id = wanted.topic_id
            response.responses.append(entry)
        entry.partitions.append(data)
    return response


class FetchSessions:
    """The sessions of one node."""

    def __init__(self, clock: Clock, randomness: Randomness, settings: BrokerSettings) -> None:
        self._clock = clock
        self._randomness = randomness
        self._settings = settings
        self._sessions: dict[int, FetchSession] = {}
        """By id, the least recently used first."""
        self._partition_count = 0
        self._waiting_count = 0
        self._evictable_by_all: list[EvictionKey] = []
        self._evictable_by_replicas: list[EvictionKey] = []

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(
        self, request: FetchRequest, version: int, reader: FetchReader, named: dict[Key, FetchedPartition] | None = None
    ) -> FetchContext | FetchResponse:
        """The partitions that the request fetches; or an error response, if its session is unknown or its epoch is wrong.

        `named` is `wanted_by(request)`, if that is made already.
        """
        uses_topic_ids = version >= TOPIC_IDS_SINCE
        if request.session_epoch in (FIRST_EPOCH, LAST_EPOCH):
            self._end(request.session_id)
            wanted = wanted_by(request, uses_topic_ids) if named is None else named
            if request.session_epoch == LAST_EPOCH:
                return FetchContext(wanted)
            return FullContext(wanted, self, reader, uses_topic_ids)
        session = self._sessions.get(request.session_id)
        if session is None:
            return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != request.session_epoch:
            return FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_topic_ids:
            return FetchResponse(error_code=ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.update(request)
        if not session.wanted:
            self._end(session.id)
            return FetchContext(wanted_by(request, uses_topic_ids))
        self._touch(session)
        if self._partition_count > PARTITIONS_MAX:
            self._end(session.id)
            return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        session.epoch = next_epoch(session.epoch)
        if session.follower is None:
            return IncrementalContext(session)
        session.is_fetched(reader.broker_epoch, self._clock.monotonic_s())
        return FollowerContext(session, session.follower)

    def may_wait(self, partition_count: int) -> bool:
        """Whether a request without a session may be parked with that many partitions; `has_waited` gives them back."""
        if self._waiting_count + partition_count > PARTITIONS_MAX:
            return False
        self._waiting_count += partition_count
        return True

    def has_waited(self, partition_count: int) -> None:
        self._waiting_count -= partition_count

    def wanted_in(self, session_id: int) -> Mapping[Key, FetchedPartition]:
        """The partitions of a session; none if there is no such session."""
        session = self._sessions.get(session_id)
        return {} if session is None else session.wanted

    def create(self, wanted: dict[Key, FetchedPartition], reader: FetchReader, uses_topic_ids: bool) -> int:
        """Create a session for `wanted`; returns its id, or `NO_SESSION` if there is no room."""
        now_ms = self._clock.now_ms()
        slots = self._settings.current.max_incremental_fetch_session_cache_slots
        if len(self._sessions) >= slots and not self._evict((reader.is_replica, len(wanted), 0), now_ms):
            return NO_SESSION
        while self._partition_count + len(wanted) > PARTITIONS_MAX:
            if not self._evict_unused(now_ms):
                return NO_SESSION
        session_id = 1 + self._randomness.below(SESSION_ID_MAX)
        while session_id in self._sessions:
            session_id = 1 + self._randomness.below(SESSION_ID_MAX)
        follower = None
        if reader.is_replica:
            follower = FollowerSession(reader.replica_id, reader.broker_epoch, self._clock.monotonic_s())
        session = FetchSession(session_id, wanted, follower, uses_topic_ids, now_ms)
        self._touch(session)
        return session_id

    # Eviction

    def _touch(self, session: FetchSession) -> None:
        """Note that the session was used; its number of partitions may have changed."""
        now_ms = self._clock.now_ms()
        self._sessions.pop(session.id, None)
        self._sessions[session.id] = session
        session.used_ms = now_ms
        is_old = now_ms - session.created_ms > EVICTION_MS
        key = (session.is_replica, len(session.wanted), session.id)
        if key == session.eviction_key and is_old == session.is_old:
            return
        self._unlist(session)
        if is_old:
            insort(self._evictable_by_all, key)
        if is_old or not session.is_replica:
            insort(self._evictable_by_replicas, key)
        session.eviction_key, session.is_old = key, is_old
        self._partition_count += len(session.wanted)

    def _evict(self, newcomer: EvictionKey, now_ms: int) -> bool:
        """Evict a session for a new one; False if none may be evicted."""
        if self._evict_unused(now_ms):
            return True
        evictable = self._evictable_by_replicas if newcomer[0] else self._evictable_by_all
        if not evictable or newcomer < evictable[0]:
            return False
        self._end(evictable[0][2])
        return True

    def _evict_unused(self, now_ms: int) -> bool:
        """Evict the least recently used session, if it was not used for `EVICTION_MS`; False if it was."""
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None or now_ms - oldest.used_ms <= EVICTION_MS:
            return False
        self._end(oldest.id)
        return True

    def _end(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._unlist(session)
            session.end()

    def _unlist(self, session: FetchSession) -> None:
        key = session.eviction_key
        if key is None:
            return
        self._partition_count -= key[1]
        for keys in (self._evictable_by_all, self._evictable_by_replicas):
            at = bisect_left(keys, key)
            if at < len(keys) and keys[at] == key:
                del keys[at]
