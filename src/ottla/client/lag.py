"""How far consumer groups are behind, in records and in seconds, on any cluster: `LagReader` asks, `LagMonitor` looks again and
again.

Lag in records is the end offset less the committed one, as Kafka's tools count it. Lag in seconds is the age of the first
record that is not read: its timestamp stands in the batch at the committed offset, which one small Fetch brings (with a limit
of one byte, brokers send one whole batch). Only partitions that are behind cost a Fetch, the largest lags first, at most
`times_max` for a call and `FETCHES_AT_ONCE` at a time. An answer is kept for as long as the committed offset stands still.

All else is asked in bulk: ListGroups of every broker, OffsetFetch for `GROUPS_PER_REQUEST` groups, ListOffsets for
`PARTITIONS_PER_REQUEST` partitions of a leader. `client_core/lag.py` says what the numbers mean.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from ottla.client.admin.group_descriptions import MemberDescription, describe_consumer_groups
from ottla.client.admin.group_offsets import list_consumer_group_offsets
from ottla.client.admin.groups import GroupListing, list_reachable_groups
from ottla.client.admin.offsets import FoundOffset, IsolationLevel, OffsetSpec, list_offsets
from ottla.client.cluster import Cluster
from ottla.client_core.lag import (
    SENSIBLE,
    WINDOW,
    History,
    Limits,
    Rates,
    Sample,
    Status,
    Steady,
    Window,
    evaluate,
    first_time_ms,
    worst,
)
from ottla.errors import CorruptRecords, KafkaError
from ottla.ids import TopicPartition, Uuid
from ottla.records.batch import iterate_batches
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic

GROUPS_PER_REQUEST = 1_000
PARTITIONS_PER_REQUEST = 2_000
FETCHES_AT_ONCE = 16
TIMES_MAX = 1_000
"""Small fetches of one call: what a cluster with 10,000 groups far behind costs is bounded."""
FETCH_BYTES = 1
STEPS_MAX = 8
"""Batches that one lookup steps over: markers of transactions, and what compaction has emptied."""
KEPT_MAX = 200_000
"""Timestamps that are kept."""


class PartitionLag(NamedTuple):
    """A group in one partition. None is not known, or that there is none."""

    topic: str
    partition: int
    offset: int | None
    """The committed offset."""
    start: int | None
    end: int | None
    time_ms: int | None = None
    """The timestamp of the first record that is not read; None if there is none, or it was not asked for."""
    lag_s: float | None = None
    member: MemberDescription | None = None

    @property
    def lag(self) -> int | None:
        """Records behind: never below 0, also if the topic was created again."""
        return None if self.offset is None or self.end is None else max(0, self.end - self.offset)

    @property
    def lost(self) -> int:
        """Records that were deleted before the group has read them."""
        return 0 if self.offset is None or self.start is None else max(0, self.start - self.offset)


class GroupLag(NamedTuple):
    """A group and its partitions."""

    group: str
    state: str
    type: str
    coordinator: int
    partitions: tuple[PartitionLag, ...] = ()
    members: tuple[MemberDescription, ...] | None = None
    """None if they were not asked for."""
    error: str | None = None
    """Why there are no partitions."""

    @property
    def lag(self) -> int:
        return sum(each.lag or 0 for each in self.partitions)

    @property
    def lag_s(self) -> float | None:
        """The largest of its partitions; None if one that is behind is not known."""
        if any(each.lag and each.lag_s is None for each in self.partitions):
            known = [each.lag_s for each in self.partitions if each.lag_s]
            return max(known) if known else None
        return max((each.lag_s or 0.0 for each in self.partitions), default=0.0)

    @property
    def lost(self) -> int:
        return sum(each.lost for each in self.partitions)


class _Place(NamedTuple):
    leader: int
    topic_id: Uuid


class _Unread(NamedTuple):
    """Where a group goes on reading: the committed offset, or the first one that is still there."""

    partition: TopicPartition
    offset: int


def _unread(each: PartitionLag) -> _Unread:
    return _Unread(TopicPartition(each.topic, each.partition), max(each.offset or 0, each.start or 0))


NOTHING = -1
"""In place of a timestamp: nothing that a consumer would get lies there."""


class LagReader:
    """Reads lags from one cluster. Keep it: it remembers timestamps."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        isolation_level: IsolationLevel | str = IsolationLevel.READ_UNCOMMITTED,
        times_max: int = TIMES_MAX,
    ) -> None:
        """With READ_COMMITTED the end of a partition is its last stable offset: what an open transaction holds is no lag."""
        self._cluster = cluster
        self._isolation = IsolationLevel[isolation_level.upper()] if isinstance(isolation_level, str) else isolation_level
        self._times_max = times_max
        self._times: dict[_Unread, int] = {}
        self._slots = asyncio.Semaphore(FETCHES_AT_ONCE)
        self.fetches = 0
        """Small fetches so far."""
        self.unreachable: dict[int, KafkaError] = {}
        """The brokers that did not list their groups the last time, and why."""

    def now_ms(self) -> int:
        """The wall clock that ages are counted by."""
        return self._cluster.world.clock.now_ms()

    async def listed(self) -> list[GroupListing]:
        """The groups that commit offsets: consumers of both protocols, simple groups, Kafka Streams."""
        found, self.unreachable = await list_reachable_groups(self._cluster)
        return [each for each in found if each.is_of_consumers or each.type == "Streams"]

    async def read(
        self,
        groups: Iterable[GroupListing] | None = None,
        *,
        with_times: bool = True,
        with_members: bool = False,
        members: Mapping[str, tuple[MemberDescription, ...]] | None = None,
    ) -> list[GroupLag]:
        """The lag of `groups`, or of all, in the order of their ids. `members` are those that are known already."""
        listed = {each.group_id: each for each in (await self.listed() if groups is None else groups)}
        ids = sorted(listed)
        committed: dict[str, Any] = {}
        for begin in range(0, len(ids), GROUPS_PER_REQUEST):
            answers = await list_consumer_group_offsets(self._cluster, ids[begin : begin + GROUPS_PER_REQUEST])
            committed |= answers.values_found | answers.errors
        if members is None:
            members = await self._members(ids) if with_members else {}
        wanted = {
            key for each in committed.values() if not isinstance(each, KafkaError) for key, offset in each.items() if offset
        }
        wanted |= {key for each in members.values() for member in each for key in member.assignment}
        places = await self._locate(wanted)
        starts, ends = await asyncio.gather(
            self._offsets(places, OffsetSpec.EARLIEST, IsolationLevel.READ_UNCOMMITTED),
            self._offsets(places, OffsetSpec.LATEST, self._isolation),
        )
        found = []
        for group_id in ids:
            each, offsets = listed[group_id], committed.get(group_id, {})
            if isinstance(offsets, KafkaError):
                lag = GroupLag(group_id, each.state, each.type, each.coordinator, error=str(offsets))
            else:
                owners = {key: one for one in members.get(group_id, ()) for key in one.assignment}
                known = {key: each.offset for key, each in offsets.items() if each is not None}
                rows = tuple(
                    PartitionLag(
                        key.topic, key.partition, known.get(key), starts.get(key), ends.get(key), member=owners.get(key)
                    )
                    for key in sorted(known.keys() | owners.keys())
                )
                lag = GroupLag(group_id, each.state, each.type, each.coordinator, rows, members.get(group_id))
            found.append(lag)
        return await self._with_times(found, places) if with_times else found

    async def ends(self) -> dict[TopicPartition, int]:
        """The end of every partition that has a leader, of topics that are not internal."""
        topics = await self._cluster.topics()
        wanted = {
            TopicPartition(name, each.partition_index)
            for name, topic in topics.items()
            if not topic.is_internal
            for each in topic.partitions
        }
        return await self._offsets(await self._locate(wanted), OffsetSpec.LATEST, self._isolation)

    async def _members(self, ids: Collection[str]) -> dict[str, tuple[MemberDescription, ...]]:
        described = await describe_consumer_groups(self._cluster, ids)
        _ = described.errors  # a group of another kind, or one that was deleted: it has no members to show
        return {group_id: each.members for group_id, each in described.values_found.items()}

    async def _locate(self, wanted: Collection[TopicPartition]) -> dict[TopicPartition, _Place]:
        """The partitions that exist and have a leader."""
        if not wanted:
            return {}
        response = await self._cluster.metadata(sorted({each.topic for each in wanted}))
        return {
            key: _Place(each.leader_id, topic.topic_id)
            for topic in response.topics
            if not topic.error_code and topic.name is not None
            for each in topic.partitions
            if each.leader_id >= 0 and (key := TopicPartition(topic.name, each.partition_index)) in wanted
        }

    async def _offsets(
        self, places: Mapping[TopicPartition, _Place], spec: OffsetSpec, isolation: IsolationLevel
    ) -> dict[TopicPartition, int]:
        found: dict[TopicPartition, int] = {}
        wanted = sorted(places)
        for begin in range(0, len(wanted), PARTITIONS_PER_REQUEST):
            some: dict[TopicPartition | tuple[str, int], OffsetSpec | str | int | datetime] = dict.fromkeys(
                wanted[begin : begin + PARTITIONS_PER_REQUEST], spec
            )
            answers = await list_offsets(self._cluster, some, isolation_level=isolation)
            _ = answers.errors  # a leader that is gone: the lag of its partitions is not known
            found |= {key: each.offset for key, each in answers.values_found.items() if isinstance(each, FoundOffset)}
        return found

    # Times

    async def _with_times(self, groups: list[GroupLag], places: Mapping[TopicPartition, _Place]) -> list[GroupLag]:
        behind: dict[_Unread, int] = {}
        for group in groups:
            behind |= {_unread(each): each.lag for each in group.partitions if each.lag}
        unknown = sorted((each for each in behind if each not in self._times), key=lambda each: (-behind[each], each))
        await asyncio.gather(*(self._find(each, places) for each in unknown[: self._times_max]))
        now_ms = self.now_ms()
        timed = [group._replace(partitions=tuple(self._timed(each, now_ms) for each in group.partitions)) for group in groups]
        if len(self._times) > KEPT_MAX:
            self._times = {key: time for key, time in self._times.items() if key in behind}
        for each in unknown:  # a record may come there later
            if self._times.get(each) == NOTHING:
                del self._times[each]
        return timed

    def _timed(self, each: PartitionLag, now_ms: int) -> PartitionLag:
        if each.lag == 0:
            return each._replace(lag_s=0.0)
        time_ms = None if each.lag is None else self._times.get(_unread(each))
        if time_ms is None:
            return each
        if time_ms == NOTHING:
            return each._replace(lag_s=0.0)
        return each._replace(time_ms=time_ms, lag_s=max(0.0, (now_ms - time_ms) / 1000))

    async def _find(self, unread: _Unread, places: Mapping[TopicPartition, _Place]) -> None:
        """Note the time of the first record from an offset on. What cannot be found out now stays unknown."""
        place, at = places.get(unread.partition), unread.offset
        if place is None:
            return
        async with self._slots:
            for _ in range(STEPS_MAX):
                try:
                    data, aborted = await self._fetch(unread.partition, at, place)
                    views = list(iterate_batches(data, allow_cut_end=True))
                    times = [first_time_ms(each, at, aborted) for each in views]
                except (KafkaError, CorruptRecords):
                    return
                if not views:
                    self._times[unread] = NOTHING  # only markers, up to the end
                    return
                time_ms = next((each for each in times if each is not None), None)
                if time_ms is not None:
                    if time_ms >= 0:  # records may have none: then nothing can be said
                        self._times[unread] = time_ms
                    return
                at = max(at, views[-1].next_offset)

    async def _fetch(self, key: TopicPartition, offset: int, place: _Place) -> tuple[bytes, dict[int, int]]:
        """The batch at an offset, and the aborted transactions in it: the first offset by producer."""
        self.fetches += 1
        partition = FetchPartition(partition=key.partition, fetch_offset=offset, partition_max_bytes=FETCH_BYTES)
        request = FetchRequest(
            max_bytes=FETCH_BYTES,
            isolation_level=self._isolation,
            topics=[FetchTopic(topic=key.topic, topic_id=place.topic_id, partitions=[partition])],
        )
        response: FetchResponse = await self._cluster.once(place.leader, request)
        for topic in response.responses:
            for each in topic.partitions:
                if each.error_code:
                    raise KafkaError(each.error_code, f"partition {key} from offset {offset} on")
                aborted: dict[int, int] = {}
                for one in each.aborted_transactions or ():
                    aborted[one.producer_id] = min(one.first_offset, aborted.get(one.producer_id, one.first_offset))
                data = each.records
                return bytes(data) if isinstance(data, bytes | bytearray | memoryview) else b"", aborted
        return b"", {}


class WatchedGroup(NamedTuple):
    """A group as a monitor sees it."""

    lag: GroupLag
    status: Status
    rates: Rates
    statuses: tuple[Status, ...]
    """Of its partitions, in their order."""

    @property
    def catch_up_s(self) -> float | None:
        """Seconds until it has read all; None if it falls behind further, or nothing is known yet."""
        return self.rates.catch_up_s(self.lag.lag)


class LagMonitor:
    """Looks at the groups of a cluster again and again: statuses, rates and the history of an hour.

    Only offsets can be asked for, not when they were committed. So an offset that has changed since the last look is a commit,
    and one that stands still in a group with members is a commit of the same offset: it reads nothing, but is there. A group
    without members commits nothing.
    """

    def __init__(self, reader: LagReader, limits: Limits = SENSIBLE, distance_ms: int = 0) -> None:
        self.reader = reader
        self.limits = limits
        self._distance_ms = distance_ms
        """Looks that are closer than this are one commit."""
        self.groups: dict[str, WatchedGroup] = {}
        """As of the last look, by id."""
        self._windows: dict[tuple[str, TopicPartition], Window] = {}
        self._ends: dict[TopicPartition, deque[int]] = {}
        self._steady: dict[str, Steady] = {}
        self._histories: dict[str, History] = {}

    def history(self, group: str) -> list[Sample]:
        """The samples of a group over the last hour, oldest first."""
        found = self._histories.get(group)
        return [] if found is None else found.samples

    async def look(
        self,
        groups: Iterable[GroupListing] | None = None,
        *,
        with_times: bool = True,
        members: Mapping[str, tuple[MemberDescription, ...]] | None = None,
    ) -> list[WatchedGroup]:
        """Look at `groups`, or at all. Groups that are gone from the list of all are forgotten."""
        found = await self.reader.read(groups, with_times=with_times, members=members)
        now_ms = self.reader.now_ms()
        seen: dict[TopicPartition, int] = {}
        for group in found:
            seen |= {TopicPartition(each.topic, each.partition): each.end for each in group.partitions if each.end is not None}
        for key, end in seen.items():
            self._ends.setdefault(key, deque(maxlen=WINDOW)).append(end)
        watched = {each.group: self._note(each, now_ms) for each in found}
        if groups is None:
            self.groups = watched
            self._forget()
        else:
            self.groups |= watched
        return list(watched.values())

    def _note(self, group: GroupLag, now_ms: int) -> WatchedGroup:
        if group.error is not None:
            history = self._histories.get(group.group)
            return WatchedGroup(group, Status.NOTFOUND, Rates(None, None) if history is None else history.rates(), ())
        has_members = group.state not in ("Empty", "Dead")
        statuses = []
        for each in group.partitions:
            key = TopicPartition(each.topic, each.partition)
            if each.offset is None or each.end is None or each.lag is None:
                statuses.append(Status.OK)
                continue
            window = self._windows.setdefault((group.group, key), Window())
            if has_members or window.offset != each.offset:
                window.committed(each.offset, each.end, now_ms, self._distance_ms)
            statuses.append(evaluate(window.commits, self._ends[key], each.lag, now_ms, self.limits, each.lag_s))
        status = self._steady.setdefault(group.group, Steady()).see(worst(statuses))
        known = [each for each in group.partitions if each.offset is not None and each.end is not None]
        history = self._histories.setdefault(group.group, History())
        offsets, ends = sum(each.offset or 0 for each in known), sum(each.end or 0 for each in known)
        history.add(Sample(now_ms / 1000, group.lag, group.lag_s, offsets, ends))
        if status == Status.OK and not has_members:
            status = Status.IDLE
        return WatchedGroup(group, status, history.rates(), tuple(statuses))

    def _forget(self) -> None:
        self._steady = {name: each for name, each in self._steady.items() if name in self.groups}
        self._histories = {name: each for name, each in self._histories.items() if name in self.groups}
        used = {
            (name, TopicPartition(each.topic, each.partition))
            for name, group in self.groups.items()
            for each in group.lag.partitions
        }
        self._windows = {key: each for key, each in self._windows.items() if key in used}
        partitions = {key for _, key in used}
        self._ends = {key: each for key, each in self._ends.items() if key in partitions}
