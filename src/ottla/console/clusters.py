"""Clusters as the console sees them: each question is asked once at a time, and its last answer kept.

A page never waits long. It gets the kept answer if that is fresh enough, else the old one while a new one is fetched; without
any, it waits up to `WAIT_S` and then says what is wrong. Nobody looks: nothing is asked.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from itertools import pairwise
from typing import Any, Generic, NamedTuple, TypeVar

from ottla.client.admin.group_offsets import GroupOffsets, list_consumer_group_offsets
from ottla.client.admin.groups import GroupListing, list_groups
from ottla.client.admin.log_dirs import LogDirDescription, describe_log_dirs
from ottla.client.admin.offsets import FoundOffset, OffsetSpec, list_offsets
from ottla.client.cluster import Cluster, open_cluster
from ottla.client.health import ClusterState, cluster_state
from ottla.client.world import ClientWorld
from ottla.config.client.settings import AdminSettings
from ottla.errors import KafkaError, OttlaError
from ottla.ids import TopicPartition

T = TypeVar("T")

WAIT_S = 1.8
"""How long a page waits for its first answer."""
FRESH_S = 3.0
ASKING_SHARE = 5
"""What takes a second to answer, because the cluster is large or busy, is asked every five seconds at most."""
OLD_S = 300.0
"""Answers older than this are not shown any more."""
SAMPLES = 120
OFFSETS_PER_REQUEST = 2_000


class NotAnswering(OttlaError):
    """The cluster has not answered in time; a page says so."""


async def soon(question: Awaitable[T], wait_s: float = WAIT_S) -> T:
    """The answer to a question that is asked for one page alone. Raises `NotAnswering` if it takes too long."""
    try:
        async with asyncio.timeout(wait_s):
            return await question
    except TimeoutError:
        raise NotAnswering(f"no answer within {wait_s:g} s") from None


class Kept(Generic[T]):
    """The newest answer to one question."""

    def __init__(self, ask: Callable[[], Awaitable[T]], fresh_s: float = FRESH_S) -> None:
        self._ask = ask
        self._fresh_s = fresh_s
        self._value: T | None = None
        self._at_s = -1e9
        self._took_s = 0.0
        self._task: asyncio.Task[None] | None = None
        self.failure: str | None = None
        """Why the last attempt failed; None if it succeeded."""

    @property
    def age_s(self) -> float:
        return time.monotonic() - self._at_s

    def forget(self) -> None:
        """After a change: the next page asks anew, and waits for the answer."""
        self._at_s = -1e9

    async def get(self, wait_s: float = WAIT_S) -> T:
        """The answer. Raises `NotAnswering` if there is none that is young enough."""
        if self._value is not None and self.age_s < max(self._fresh_s, ASKING_SHARE * self._took_s):
            return self._value
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._refresh())
        if self._value is not None and self.age_s < OLD_S:
            return self._value
        await asyncio.wait([self._task], timeout=wait_s)
        if self._value is not None and self.age_s < OLD_S:
            return self._value
        raise NotAnswering(self.failure or f"no answer within {wait_s:g} s")

    async def _refresh(self) -> None:
        began_s = time.monotonic()
        try:
            self._value = await self._ask()
            self._took_s = time.monotonic() - began_s
            self._at_s = time.monotonic()
            self.failure = None
        except (KafkaError, OttlaError, TimeoutError) as error:
            self.failure = str(error) or type(error).__name__


class Ends(NamedTuple):
    """The first and the next offset of every partition that has a leader, and when they were looked at."""

    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]
    at_s: float


class ClusterView:
    """One cluster, and what was asked of it."""

    def __init__(self, name: str, settings: AdminSettings, world: ClientWorld) -> None:
        self.name = name
        self.settings = settings
        self.world = world
        self.cluster: Cluster = open_cluster(world, settings, "ottla-console")
        self.background: Cluster = open_cluster(world, settings, "ottla-console")
        """What is kept is asked over connections of its own: a broker answers those of one connection in turn, and the answers
        about 10,000 topics would hold up the page that somebody waits for."""
        self.state: Kept[ClusterState] = Kept(lambda: cluster_state(self.background))
        self.ends: Kept[Ends] = Kept(self._ask_ends)
        self.groups: Kept[list[GroupListing]] = Kept(lambda: list_groups(self.background))
        self.log_dirs: Kept[dict[int, list[LogDirDescription]]] = Kept(self._ask_log_dirs, fresh_s=15.0)
        self.sizes: Mapping[str, int] = {}
        """Bytes on disk by topic, as `log_dirs` said last: of the largest replica of each partition."""
        self._samples: dict[str, deque[tuple[float, int]]] = {}
        """By topic: (time, sum of the end offsets) of the last looks."""

    @property
    def address(self) -> str:
        return ",".join(f"{host}:{port}" for host, port in self.settings.bootstrap_servers or ())

    def close(self) -> None:
        self.cluster.close()
        self.background.close()

    def another(self) -> Cluster:
        """Other connections to the same cluster, for one stream: who has it closes it."""
        return open_cluster(self.world, self.settings, "ottla-console")

    async def _ask_ends(self) -> Ends:
        state = await self.state.get(wait_s=30)
        wanted = [
            TopicPartition(topic.name, each.partition)
            for topic in state.topics.values()
            for each in topic.partitions
            if each.leader is not None
        ]
        starts, ends = await asyncio.gather(
            find_offsets(self.background, wanted, OffsetSpec.EARLIEST), find_offsets(self.background, wanted, OffsetSpec.LATEST)
        )
        now_s = time.monotonic()
        totals: dict[str, int] = {}
        for (topic, _), end in ends.items():
            totals[topic] = totals.get(topic, 0) + end
        for topic, total in totals.items():
            self._samples.setdefault(topic, deque(maxlen=SAMPLES)).append((now_s, total))
        for gone in self._samples.keys() - totals.keys():
            del self._samples[gone]
        return Ends(starts, ends, now_s)

    async def _ask_log_dirs(self) -> dict[int, list[LogDirDescription]]:
        results = await describe_log_dirs(self.background)
        found = {
            broker: list(each.values()) if isinstance(each, dict) else each for broker, each in results.values_found.items()
        }
        largest: dict[TopicPartition, int] = {}
        for directories in found.values():
            for directory in directories:
                for key, replica in directory.replicas.items():
                    largest[key] = max(largest.get(key, 0), replica.size_bytes)
        sizes: dict[str, int] = {}
        for key, size in largest.items():
            sizes[key.topic] = sizes.get(key.topic, 0) + size
        self.sizes = sizes
        return found

    def rate(self, topic: str) -> float | None:
        """Records a second that came into a topic lately; None until it was looked at twice."""
        samples = self._samples.get(topic)
        if samples is None or len(samples) < 2:
            return None
        (first_s, first), (last_s, last) = samples[0], samples[-1]
        for at_s, total in samples:
            if last_s - at_s <= 60:
                first_s, first = at_s, total
                break
        return max(0.0, (last - first) / (last_s - first_s)) if last_s > first_s else None

    def history(self, topic: str) -> list[float]:
        """Records a second between the last looks, oldest first: for a small chart."""
        samples = list(self._samples.get(topic, ()))
        pairs = pairwise(samples)
        return [
            max(0.0, (after - before) / (after_s - before_s))
            for (before_s, before), (after_s, after) in pairs
            if after_s > before_s
        ]

    async def committed(self, groups: list[str]) -> Mapping[str, GroupOffsets | KafkaError]:
        """The committed offsets of some groups: those that a page shows."""
        results = await list_consumer_group_offsets(self.cluster, groups)
        return {**results.values_found, **results.errors}

    def forget(self) -> None:
        """After a change."""
        for kept in (self.state, self.ends, self.groups, self.log_dirs):
            kept.forget()


async def find_offsets(cluster: Cluster, wanted: list[TopicPartition], spec: OffsetSpec) -> dict[TopicPartition, int]:
    """An offset of each partition that answers."""
    found: dict[TopicPartition, int] = {}
    for begin in range(0, len(wanted), OFFSETS_PER_REQUEST):
        results = await list_offsets(cluster, dict.fromkeys(wanted[begin : begin + OFFSETS_PER_REQUEST], spec))
        found.update({key: each.offset for key, each in results.values_found.items() if isinstance(each, FoundOffset)})
        _ = results.errors
    return found


def lag_of(committed: GroupOffsets, ends: Mapping[TopicPartition, int]) -> tuple[int, list[dict[str, Any]]]:
    """The lag of a group in records, and its partitions."""
    rows, total = [], 0
    for key, offset in committed.items():
        if offset is None:
            continue
        end = ends.get(key)
        lag = None if end is None else max(0, end - offset.offset)
        total += lag or 0
        rows.append({"topic": key.topic, "partition": key.partition, "offset": offset.offset, "end": end, "lag": lag})
    return total, rows
