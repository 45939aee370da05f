"""Records from the leaders of partitions, by long-polling fetches in incremental sessions, one broker apart from the other.

While one answer is being shown the next is on its way. Leaders that move and brokers that go away are looked for again, for as
long as it takes; an offset that is not there is replaced by the first or last there is, and the user told.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Coroutine, Sequence
from typing import Any, NamedTuple

from ottla.cli.common.cluster import Cluster, NoBroker, is_retriable, refusal, topic_refusal
from ottla.cli.common.offsets import EARLIEST, list_offsets
from ottla.cli.common.output import warn
from ottla.cli.consume.options import ConsumeOptions
from ottla.cli.consume.records import next_offset, whole_batches
from ottla.cli.consume.session import FetchSession, PartitionFetch
from ottla.errors import CorruptRecords, KafkaError, OttlaError
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition, Uuid
from ottla.link import LinkError
from ottla.records.batch import BatchView
from ottla.wire.messages.fetch import AbortedTransaction, FetchRequest, FetchResponse, PartitionData

NO_LEADER = -1
ANSWERS_AHEAD_MAX = 4
"""Answers of one partition that may wait to be shown before no more are fetched."""

MOVED = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INCONSISTENT_TOPIC_ID,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.OFFSET_NOT_AVAILABLE,
)
SESSION_LOST = (
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
)


class Fetched(NamedTuple):
    """Batches of one partition, fetched from `offset`; the next to fetch is `next_offset`."""

    partition: TopicPartition
    offset: int
    next_offset: int
    views: Sequence[BatchView]
    aborted: list[AbortedTransaction] | None


class Position:
    """Where one partition is being read."""

    __slots__ = ("leader", "leader_epoch", "offset", "partition", "topic_id")

    def __init__(self, partition: TopicPartition, offset: int) -> None:
        self.partition = partition
        self.offset = offset
        self.topic_id = Uuid(bytes(16))
        self.leader = -1
        self.leader_epoch = -1


class Fetcher:
    """Reads partitions from the offsets given until it is closed. `next` hands out what has come."""

    def __init__(self, cluster: Cluster, options: ConsumeOptions, offsets: dict[TopicPartition, int]) -> None:
        self._cluster = cluster
        self._options = options
        self._loop = asyncio.get_running_loop()
        self._positions = {partition: Position(partition, offset) for partition, offset in offsets.items()}
        self._answers: asyncio.Queue[Fetched | Exception] = asyncio.Queue(ANSWERS_AHEAD_MAX * len(offsets))
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._failures = 0
        self._has_warned = False
        self._telling: asyncio.Task[None] | None = None

    async def next(self) -> Fetched:
        """The next batches of some partition; raises what has made going on impossible."""
        if not self._tasks:
            self._start(NO_LEADER, self._look_for_leaders())
        answer = await self._answers.get()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def add(self, offsets: dict[TopicPartition, int]) -> None:
        """Read these partitions, too."""
        self._positions |= {partition: Position(partition, offset) for partition, offset in offsets.items()}
        if offsets and self._tasks and NO_LEADER not in self._tasks:
            self._start(NO_LEADER, self._look_for_leaders())

    async def close(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # Tasks: one for each broker that leads something, and one, under NO_LEADER, that looks for leaders

    def _start(self, key: int, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks[key] = task
        task.add_done_callback(lambda done: self._ended(key, done))

    def _ended(self, key: int, task: asyncio.Task[None]) -> None:
        del self._tasks[key]
        if task.cancelled():
            return
        failure = task.exception()
        if isinstance(failure, Exception):
            self._telling = self._loop.create_task(self._answers.put(failure))
            return
        for leader in sorted({each.leader for each in self._positions.values()} - set(self._tasks)):
            self._start(leader, self._fetch_from(leader) if leader >= 0 else self._look_for_leaders())

    async def _look_for_leaders(self) -> None:
        """One attempt, after a wait if the last one failed."""
        await self._cluster.wait(self._failures, math.inf)
        names = sorted({each.partition.topic for each in self._positions.values() if each.leader < 0})
        try:
            response = await self._cluster.metadata(names)
        except (LinkError, NoBroker) as error:
            self._failed(error)
            return
        self._failures += 1  # until a fetch succeeds
        for topic in response.topics:
            if topic.error_code and not is_retriable(KafkaError(topic.error_code, "")):
                raise topic_refusal(topic.error_code, topic.name or "")
            leaders = {each.partition_index: each for each in topic.partitions}
            for position in self._positions.values():
                found = leaders.get(position.partition.partition) if position.partition.topic == topic.name else None
                if found is not None:
                    position.topic_id = topic.topic_id
                    position.leader, position.leader_epoch = found.leader_id, found.leader_epoch

    def _failed(self, error: Exception) -> None:
        self._failures += 1
        if not self._has_warned:
            warn(f"{error}. Trying again until it works")
            self._has_warned = True

    async def _fetch_from(self, leader: int) -> None:
        """Fetch what this broker leads, until it leads nothing of it any more."""
        session = FetchSession()
        while True:
            positions = {each.partition: each for each in self._positions.values() if each.leader == leader}
            if not positions:
                return
            request = self._request()
            limit = self._options.fetch.partition_bytes_max
            session.fill(
                request,
                {
                    name: PartitionFetch(each.topic_id, each.offset, each.leader_epoch, limit)
                    for name, each in positions.items()
                },
            )
            try:
                link = await self._cluster.link_to(leader)
                timeout_ms = self._cluster.settings.request_timeout_ms + self._options.fetch.max_wait_ms
                response: FetchResponse = await link.request(request, timeout_ms)
            except (LinkError, KafkaError) as error:
                if not is_retriable(error) and not isinstance(error, KafkaError):
                    raise
                self._failed(error)
                for position in positions.values():
                    position.leader = -1
                return
            await self._take(session, positions, response)

    def _request(self) -> FetchRequest:
        limits = self._options.fetch
        return FetchRequest(
            max_wait_ms=limits.max_wait_ms,
            min_bytes=limits.min_bytes,
            max_bytes=limits.max_bytes,
            isolation_level=1 if self._options.read_committed else 0,
        )

    async def _take(self, session: FetchSession, positions: dict[TopicPartition, Position], response: FetchResponse) -> None:
        if response.error_code:
            session.restart()
            if response.error_code not in SESSION_LOST:
                raise refusal(response.error_code, "the broker refused to be read from")
            return
        session.answered(response)
        self._failures, self._has_warned = 0, False
        names = {each.topic_id: each.partition.topic for each in positions.values()}
        for topic in response.responses:
            name = topic.topic or names.get(topic.topic_id, "")
            for data in topic.partitions:
                position = positions.get(TopicPartition(name, data.partition_index))
                if position is not None:
                    await self._take_partition(position, data)

    async def _take_partition(self, position: Position, data: PartitionData) -> None:
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            await self._reset(position)
        elif data.error_code in MOVED:
            position.leader = -1
        elif data.error_code:
            raise refusal(data.error_code, f"partition {position.partition} cannot be read")
        elif data.records is not None and len(data.records):
            assert isinstance(data.records, memoryview), "decoding gives views"
            try:
                views = list(whole_batches(data.records))
            except CorruptRecords as damage:
                raise OttlaError(
                    f"partition {position.partition} cannot be read on from offset {position.offset}: {damage}"
                ) from None
            after = next_offset(views, position.offset)
            fetched = Fetched(position.partition, position.offset, after, views, data.aborted_transactions)
            position.offset = after
            await self._answers.put(fetched)

    async def _reset(self, position: Position) -> None:
        place = self._options.reset
        found = (await list_offsets(self._cluster, {position.partition: place}, self._options.read_committed))[
            position.partition
        ]
        if isinstance(found, KafkaError):
            raise found
        where = "first" if place == EARLIEST else "end"
        warn(f"partition {position.partition} has no offset {position.offset}: going on from the {where}, {found.offset}")
        position.offset = found.offset
