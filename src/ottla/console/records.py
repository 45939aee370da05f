"""Reads records for pages: some from a place on, with what their batches say of them.

A read is bounded: by the number of records, by bytes and by time. Aborted transactions and control records are shown as such;
it reads uncommitted.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from typing import NamedTuple

from ottla.client.admin.offsets import OffsetSpec, list_offsets
from ottla.client.cluster import Cluster
from ottla.console.clusters import find_offsets
from ottla.errors import CorruptRecords, KafkaError, exception_of
from ottla.ids import TopicPartition, Uuid
from ottla.records.batch import iterate_batches
from ottla.records.reader import read_records
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic

PARTITION_BYTES = 1024 * 1024
FETCH_BYTES = 4 * 1024 * 1024
NO_SESSION = -1
DECOMPRESSED_BYTES_MAX = 64 * 1024 * 1024


class Shown(NamedTuple):
    """A record and what its batch says of it."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    codec: str
    producer_id: int
    producer_epoch: int
    sequence: int
    leader_epoch: int
    is_transactional: bool
    is_control: bool
    is_append_time: bool


class Topic(NamedTuple):
    """Where a topic's partitions are."""

    name: str
    id: Uuid
    leaders: Mapping[int, int]


async def find_topic(cluster: Cluster, name: str) -> Topic:
    found = await cluster.topic(name)
    return Topic(
        name, found.topic_id, {each.partition_index: each.leader_id for each in found.partitions if each.leader_id >= 0}
    )


async def fetch(
    cluster: Cluster, topic: Topic, positions: Mapping[int, int], wait_ms: int = 0
) -> tuple[list[Shown], dict[int, int]]:
    """The records from `positions` on, in one request to each leader, and the next position of each partition."""
    by_leader: dict[int, list[int]] = {}
    for partition in positions:
        if partition in topic.leaders:
            by_leader.setdefault(topic.leaders[partition], []).append(partition)
    answers = await asyncio.gather(
        *(
            _fetch_from(cluster, leader, topic, {each: positions[each] for each in some}, wait_ms)
            for leader, some in by_leader.items()
        )
    )
    records: list[Shown] = []
    after: dict[int, int] = {}
    for some, places in answers:
        records += some
        after.update(places)
    return records, after


async def _fetch_from(
    cluster: Cluster, leader: int, topic: Topic, positions: Mapping[int, int], wait_ms: int
) -> tuple[list[Shown], dict[int, int]]:
    asked = [
        FetchPartition(partition=each, fetch_offset=at, partition_max_bytes=PARTITION_BYTES) for each, at in positions.items()
    ]
    request = FetchRequest(max_wait_ms=wait_ms, min_bytes=1, max_bytes=FETCH_BYTES, session_epoch=NO_SESSION)
    request.topics = [FetchTopic(topic=topic.name, topic_id=topic.id, partitions=asked)]
    response: FetchResponse = await cluster.once(leader, request)
    if response.error_code:
        raise exception_of(response.error_code)
    records: list[Shown] = []
    after: dict[int, int] = {}
    for data in (each for one in response.responses for each in one.partitions):
        if data.error_code:
            raise exception_of(data.error_code, f"partition {topic.name}-{data.partition_index} cannot be read")
        at = positions[data.partition_index]
        content = bytes(data.records or b"")  # type: ignore[arg-type]  # decoding gives bytes, never a file range
        some, after[data.partition_index] = await asyncio.to_thread(_decoded, data.partition_index, at, content)
        records += some
    return records, after


def _decoded(partition: int, at: int, content: bytes) -> tuple[list[Shown], int]:
    records = []
    next_offset = at
    for view in iterate_batches(content, allow_cut_end=True):
        if view.next_offset <= at:
            continue
        try:
            view.check()
            found = read_records(view, decompressed_bytes_max=DECOMPRESSED_BYTES_MAX)
        except CorruptRecords as problem:
            raise KafkaError(2, f"partition {partition} is damaged at offset {view.base_offset}: {problem}") from None
        for each in found:
            if each.offset >= at:
                sequence = view.base_sequence + each.offset - view.base_offset if view.base_sequence >= 0 else -1
                records.append(
                    Shown(
                        partition,
                        each.offset,
                        each.timestamp,
                        each.key,
                        each.value,
                        tuple(each.headers),
                        view.codec.name.lower(),
                        view.producer_id,
                        view.producer_epoch,
                        sequence,
                        view.leader_epoch,
                        view.is_transactional,
                        view.is_control,
                        view.is_append_time,
                    )
                )
        next_offset = view.next_offset
    return records, next_offset


class Range(NamedTuple):
    """What to read: from an offset to an offset, by partition."""

    begins: dict[int, int]
    ends: dict[int, int]


async def whole_range(cluster: Cluster, topic: Topic, partitions: list[int]) -> Range:
    """The first and the next offset of partitions."""
    keys = [TopicPartition(topic.name, each) for each in partitions if each in topic.leaders]
    begins, ends = await asyncio.gather(
        find_offsets(cluster, keys, OffsetSpec.EARLIEST), find_offsets(cluster, keys, OffsetSpec.LATEST)
    )
    both = begins.keys() & ends.keys()
    return Range({each.partition: begins[each] for each in both}, {each.partition: ends[each] for each in both})


async def since(cluster: Cluster, topic: Topic, found: Range, timestamp_ms: int) -> Range:
    """The part of a range that begins with the first record at or after a time."""
    results = await list_offsets(cluster, {(topic.name, each): timestamp_ms for each in found.begins})
    at = {key.partition: each.offset for key, each in results.values_found.items()}
    begins = {each: found.ends[each] if at.get(each, -1) < 0 else at[each] for each in found.begins}
    return Range(begins, found.ends)


async def forward(cluster: Cluster, topic: Topic, wanted: Range, limit: int, seconds: float) -> AsyncIterator[list[Shown]]:
    """The records of a range in pieces, each partition in order, until there are `limit` or the time is over."""
    positions = {each: at for each, at in wanted.begins.items() if at < wanted.ends[each]}
    deadline_s = time.monotonic() + seconds
    given = 0
    while positions and given < limit and time.monotonic() < deadline_s:
        records, after = await fetch(cluster, topic, positions)
        found = [each for each in records if each.offset < wanted.ends[each.partition]]
        given += len(found)
        yield found
        stuck = all(after.get(each, at) == at for each, at in positions.items())
        positions = {each: after.get(each, at) for each, at in positions.items() if after.get(each, at) < wanted.ends[each]}
        if stuck:
            break


async def newest(cluster: Cluster, topic: Topic, found: Range, limit: int, seconds: float = 2.0) -> list[Shown]:
    """The last records, the newest first. Looks further back while compaction or markers leave too few."""
    step = limit
    begins = dict(found.ends)
    records: dict[tuple[int, int], Shown] = {}
    deadline_s = time.monotonic() + seconds
    while True:
        ends = begins
        begins = {each: max(found.begins[each], end - step) for each, end in ends.items()}
        async for some in forward(cluster, topic, Range(begins, ends), 1 << 30, max(0.1, deadline_s - time.monotonic())):
            records.update({(each.partition, each.offset): each for each in some})
        if (
            len(records) >= limit
            or time.monotonic() > deadline_s
            or all(at <= found.begins[each] for each, at in begins.items())
        ):
            break
        step *= 4
    return sorted(records.values(), key=lambda each: (-each.timestamp, each.partition, -each.offset))[:limit]
