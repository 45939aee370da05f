"""Decides what a replica fetcher does: the next Fetch request to one leader, and what each of its answers asks for. Pure.

The machine holds, per followed partition, the leader epoch and the place where this node's log ends. `request` returns the next
request, `answered` turns its answer into actions. The driver (`fetcher.py`) carries them out on the logs and reports the log's
new place with `done`, or `refused`. Until then no request names the partition and answers about it are ignored, so that no
later answer can overtake an action. The leader's session still has the old place, and counts it with every request.

An answer counts only for the place and the leader epoch that were sent. A partition that fails is left out of the session and
comes back after a pause, which doubles with every failure up to replica.fetch.backoff.ms.

Requests are incremental (KIP-227): they name only the partitions that changed since the last one, so a request costs what has
changed, not what is followed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from ottla.env.backoff import exponential
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition, Uuid
from ottla.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)

Key = tuple[Uuid, int]
"""Topic id and partition index: a topic that is created again under its old name is another one."""

NO_SESSION: Final = 0
FIRST_EPOCH: Final = 0
_EPOCH_MAX: Final = 0x7FFFFFFF
_SESSION_ERRORS: Final = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)
_BACKOFF_FIRST_S: Final = 0.05
"""The pause after a first failure. Most are over as soon as the leader has applied the same metadata."""


class Place(NamedTuple):
    """Where a follower's log ends, and where it starts."""

    offset: int
    epoch: int
    """The newest leader epoch in the log; -1 if it has none."""
    log_start_offset: int


class Append(NamedTuple):
    """Append the records of `data`, if any, and take over the leader's high watermark and log start offset."""

    key: Key
    name: TopicPartition
    leader_epoch: int
    data: PartitionData


class Truncate(NamedTuple):
    """The leader has other records: both logs agree at most up to `end_offset` in epoch `epoch`."""

    key: Key
    name: TopicPartition
    leader_epoch: int
    epoch: int
    end_offset: int


class Reset(NamedTuple):
    """The leader's log does not hold this place: ask where it starts and ends."""

    key: Key
    name: TopicPartition
    leader_epoch: int


Action = Append | Truncate | Reset


class Limits(NamedTuple):
    """The settings of the requests (replica.fetch.*)."""

    wait_max_ms: int
    min_bytes: int
    response_max_bytes: int
    partition_max_bytes: int
    backoff_max_s: float


class Throttle(NamedTuple):
    """What the quota of throttled replicas leaves for the next request."""

    allowance_bytes: int
    portion_bytes: int
    """The most bytes of one throttled partition."""
    is_throttled: Callable[[TopicPartition], bool]
    until_s: float
    """When partitions that have to wait may be fetched again."""


class Followed:
    """One partition that is fetched from the leader."""

    __slots__ = ("bytes_max", "failures", "leader_epoch", "leader_watermark", "name", "place", "sent", "turn")

    def __init__(self, name: TopicPartition, leader_epoch: int, place: Place) -> None:
        self.name = name
        self.leader_epoch = leader_epoch
        self.place = place
        self.sent: tuple[int, Place] | None = None
        """The leader epoch and place that the leader was last asked for; None if it was not asked since it was added."""
        self.failures = 0
        self.bytes_max: int | None = None
        """How much of it an answer may hold, if it is throttled."""
        self.turn = 0
        """When it was last fetched as a throttled partition, as a rising number."""
        self.leader_watermark = -1
        """The high watermark in the leader's last answer; -1 before the first."""

    @property
    def lag(self) -> int | None:
        """How many records this log lacks of what the leader has committed; None if it is not known yet."""
        return None if self.leader_watermark < 0 else max(0, self.leader_watermark - self.place.offset)


class FetchMachine:
    """The fetches of broker `node_id` from one leader."""

    def __init__(self, node_id: int) -> None:
        self._node_id = node_id
        self._followed: dict[Key, Followed] = {}
        self._active: dict[Key, None] = {}
        """Partitions to fetch: without an action under way and without a pause. A dict: requests name them in its order."""
        self._paused: dict[Key, float] = {}
        """Partition → when it may be fetched again."""
        self._throttled: set[Key] = set()
        """Partitions whose `bytes_max` is set."""
        self._turn = 0
        self._changed: dict[Key, None] = {}
        """Partitions of which the leader's session does not know the newest state."""
        self._known: set[Key] = set()
        """The partitions in the leader's session."""
        self._session_id = NO_SESSION
        self._session_epoch = FIRST_EPOCH

    def __len__(self) -> int:
        return len(self._followed)

    def __contains__(self, key: Key) -> bool:
        return key in self._followed

    @property
    def keys(self) -> Iterable[Key]:
        return self._followed.keys()

    @property
    def fetched(self) -> set[Key]:
        """The partitions that the leader's session has."""
        return self._known

    @property
    def lag_max(self) -> int:
        """The largest lag of a followed partition, of those whose lag is known."""
        return max((followed.lag or 0 for followed in self._followed.values()), default=0)

    # -- what to follow

    def follow(self, key: Key, name: TopicPartition, leader_epoch: int, place: Place, is_flushed: bool = True) -> bool:
        """Fetch a partition from now on, from `place` and in `leader_epoch`; returns whether that is new.

        Unless `is_flushed`, the flush is an action under way: no request names the partition before `done`.
        """
        known = self._followed.get(key)
        if known is not None and known.leader_epoch >= leader_epoch:
            return False
        self._followed[key] = Followed(name, leader_epoch, place)
        self._activate(key)
        if not is_flushed:
            self._active.pop(key)
        return True

    def unfollow(self, key: Key) -> None:
        """Fetch a partition no more."""
        self._followed.pop(key, None)
        self._active.pop(key, None)
        self._paused.pop(key, None)
        self._changed[key] = None

    def throttle(self, throttle: Throttle, now_s: float) -> None:
        """Fetch only so many throttled partitions as the allowance is for, in turns; the others wait."""
        self._end_pauses(now_s)
        held = [
            key for key in self._active if (followed := self._followed[key]).lag != 0 and throttle.is_throttled(followed.name)
        ]  # a lag of 0 is that of every replica in the ISR
        held.sort(key=lambda key: self._followed[key].turn)
        count = -(-throttle.allowance_bytes // throttle.portion_bytes)
        for key in held[count:]:
            self._active.pop(key, None)
            self._changed[key] = None
            self._paused[key] = throttle.until_s
        self.end_throttle(held[:count])
        for key in held[:count]:
            self._turn += 1
            followed = self._followed[key]
            followed.turn = self._turn
            if followed.bytes_max != throttle.portion_bytes:
                followed.bytes_max = throttle.portion_bytes
                self._throttled.add(key)
                self._changed[key] = None

    def end_throttle(self, still: Iterable[Key] = ()) -> None:
        """Fetch as much as ever of the partitions that were throttled, but of `still`."""
        for key in self._throttled.difference(still):
            self._throttled.discard(key)
            if (followed := self._followed.get(key)) is not None:
                followed.bytes_max = None
                self._changed[key] = None

    # -- what became of actions

    def done(self, key: Key, leader_epoch: int, place: Place) -> None:
        """An action is carried out: the log ends at `place` now."""
        followed = self._followed.get(key)
        if followed is None or followed.leader_epoch != leader_epoch:
            return
        followed.failures = 0
        is_unchanged = followed.place == place
        followed.place = place
        if is_unchanged and key in self._known and followed.sent == (leader_epoch, place):
            self._active[key] = None  # the leader's session knows this place: nothing to send
        else:
            self._activate(key)

    def refused(self, key: Key, leader_epoch: int, now_s: float, backoff_max_s: float) -> None:
        """An action failed, or changed nothing: ask again after a pause."""
        followed = self._followed.get(key)
        if followed is not None and followed.leader_epoch == leader_epoch:
            self._pause(key, followed, now_s, backoff_max_s)

    # -- requests and answers

    def request(self, broker_epoch: int, limits: Limits, now_s: float) -> FetchRequest | None:
        """The next request; None if there is nothing to fetch until `next_due_s`."""
        self._end_pauses(now_s)
        if not self._active:
            if self._known:
                self._restart(self._session_id)
            return None
        is_full = self._session_epoch == FIRST_EPOCH
        wanted = self._active if is_full else [key for key in self._changed if key in self._active]
        gone = [] if is_full else [key for key in self._changed if key in self._known and key not in self._active]
        self._changed.clear()
        self._known.update(wanted)
        self._known.difference_update(gone)
        return FetchRequest(
            replica_state=ReplicaState(replica_id=self._node_id, replica_epoch=broker_epoch),
            max_wait_ms=limits.wait_max_ms,
            min_bytes=limits.min_bytes,
            max_bytes=limits.response_max_bytes,
            session_id=self._session_id,
            session_epoch=self._session_epoch,
            topics=self._topics(wanted, limits.partition_max_bytes),
            forgotten_topics_data=self._forgotten(gone),
        )

    @property
    def next_due_s(self) -> float | None:
        """When the first paused partition may be fetched again; None if none is paused."""
        return min(self._paused.values(), default=None)

    def answered(self, response: FetchResponse, now_s: float, backoff_max_s: float) -> list[Action]:
        """What the answer to the last request asks for."""
        if response.error_code:
            is_gone = response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
            self._restart(NO_SESSION if is_gone else self._session_id)
            return []
        if response.session_id == NO_SESSION:
            self._restart(NO_SESSION)
        else:
            self._session_id = response.session_id
            self._session_epoch = self._session_epoch + 1 if self._session_epoch < _EPOCH_MAX else 1
        actions: list[Action] = []
        for topic in response.responses:
            for data in topic.partitions:
                key = (topic.topic_id, data.partition_index)
                followed = self._followed.get(key)
                if followed is None or key not in self._active or followed.sent != (followed.leader_epoch, followed.place):
                    continue  # about another place than the log's end now
                if (action := self._action(key, followed, data)) is None:
                    self._pause(key, followed, now_s, backoff_max_s)
                else:
                    self._active.pop(key, None)
                    actions.append(action)
        return actions

    @staticmethod
    def is_session_error(code: int) -> bool:
        """Whether a request failed only because its session is over: the next one is a full request."""
        return code in _SESSION_ERRORS

    def failed(self) -> None:
        """The last request was not answered: it is unknown what the leader's session holds."""
        self._restart(NO_SESSION)

    @staticmethod
    def _action(key: Key, followed: Followed, data: PartitionData) -> Action | None:
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            return Reset(key, followed.name, followed.leader_epoch)
        if data.error_code:
            return None
        diverging = data.diverging_epoch
        if diverging is not None and diverging.end_offset >= 0:
            return Truncate(key, followed.name, followed.leader_epoch, diverging.epoch, diverging.end_offset)
        followed.leader_watermark = data.high_watermark
        return Append(key, followed.name, followed.leader_epoch, data)

    def _end_pauses(self, now_s: float) -> None:
        for key in [key for key, due_s in self._paused.items() if due_s <= now_s]:
            self._activate(key)

    def _activate(self, key: Key) -> None:
        self._paused.pop(key, None)
        self._active[key] = None
        self._changed[key] = None

    def _pause(self, key: Key, followed: Followed, now_s: float, backoff_max_s: float) -> None:
        self._active.pop(key, None)
        self._changed[key] = None
        self._paused[key] = now_s + exponential(_BACKOFF_FIRST_S, followed.failures, backoff_max_s)
        followed.failures += 1

    def _restart(self, session_id: int) -> None:
        self._session_id = session_id
        self._session_epoch = FIRST_EPOCH
        self._known.clear()

    def _topics(self, wanted: Iterable[Key], partition_max_bytes: int) -> list[FetchTopic]:
        topics: dict[Uuid, FetchTopic] = {}
        for key in wanted:
            followed = self._followed[key]
            followed.sent = (followed.leader_epoch, followed.place)
            offset, epoch, log_start_offset = followed.place
            topic = topics.get(key[0])
            if topic is None:
                topic = topics[key[0]] = FetchTopic(topic=followed.name.topic, topic_id=key[0])
            topic.partitions.append(
                FetchPartition(
                    partition=key[1],
                    current_leader_epoch=followed.leader_epoch,
                    fetch_offset=offset,
                    last_fetched_epoch=epoch,
                    log_start_offset=log_start_offset,
                    partition_max_bytes=(
                        partition_max_bytes if followed.bytes_max is None else min(partition_max_bytes, followed.bytes_max)
                    ),
                )
            )
        return list(topics.values())

    @staticmethod
    def _forgotten(gone: Iterable[Key]) -> list[ForgottenTopic]:
        topics: dict[Uuid, ForgottenTopic] = {}
        for topic_id, index in gone:
            topics.setdefault(topic_id, ForgottenTopic(topic_id=topic_id)).partitions.append(index)
        return list(topics.values())
