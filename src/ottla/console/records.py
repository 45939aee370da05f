"""Reads records for pages: from a place on or from the end, those that a search wants, with what their batches say of them.

Scans go on step by step and can be left at any of them, so that callers bound them by records, bytes and time. They read
uncommitted: records of transactions and control records are shown as such.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from itertools import islice
from typing import NamedTuple

from ottla.client.admin.offsets import OffsetSpec, list_offsets
from ottla.client.cluster import Cluster
from ottla.console.clusters import find_offsets
from ottla.console.expression import Search
from ottla.console.formats import Candidate, Reader
from ottla.console.masking import Mask, mask_of
from ottla.errors import CorruptRecords, KafkaError, exception_of
from ottla.ids import TopicPartition, Uuid
from ottla.records.batch import BatchView, iterate_batches
from ottla.records.compression import Codec, decompress
from ottla.records.kernels import Record
from ottla.records.reader import iterate_records
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic

PARTITION_BYTES = 1024 * 1024
FETCH_BYTES = 4 * 1024 * 1024
NO_SESSION = -1
DECOMPRESSED_BYTES_MAX = 64 * 1024 * 1024
WINDOW = 64
"""How many partitions a scan reads at a time."""
TAIL_BYTES = 256 * 1024
TAIL_PAUSE_S = 0.05
TAIL_WAIT_MS = 500
TAIL_ROWS = 20
TAIL_BEHIND = 1_000
"""A live tail that is further behind goes on at the end."""
FOUND_BYTES_MAX = 16 * 1024 * 1024
"""How much a page holds of keys and values; it says where there is more."""
STEP_S = 0.5
"""How long a window of a scan from the end should take."""


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
    partition_count: int
    """All partitions, those without a leader too."""
    mask: Mask | None = None
    """Takes out what nobody may see, before anything else looks at records."""


async def find_topic(cluster: Cluster, name: str) -> Topic:
    found = await cluster.topic(name)
    leaders = {each.partition_index: each.leader_id for each in found.partitions if each.leader_id >= 0}
    return Topic(name, found.topic_id, leaders, len(found.partitions), mask_of(name))


class Chunk(NamedTuple):
    """Bytes of batches as a leader sent them."""

    partition: int
    at: int
    """The first offset that was asked for."""
    data: bytes
    high_watermark: int


async def fetch(
    cluster: Cluster, topic: Topic, positions: Mapping[int, int], *, partition_bytes: int = PARTITION_BYTES
) -> tuple[list[Chunk], dict[int, int]]:
    """What lies at `positions`, from all leaders, and the next position of each partition."""
    by_leader: dict[int, list[int]] = {}
    for partition in positions:
        if partition in topic.leaders:
            by_leader.setdefault(topic.leaders[partition], []).append(partition)
    answers = await asyncio.gather(
        *(
            fetch_from(cluster, leader, topic, {each: positions[each] for each in some}, partition_bytes=partition_bytes)
            for leader, some in by_leader.items()
        )
    )
    chunks = [each for one in answers for each in one]
    return chunks, {each.partition: next_offset(each) for each in chunks}


async def fetch_from(
    cluster: Cluster,
    leader: int,
    topic: Topic,
    positions: Mapping[int, int],
    *,
    wait_ms: int = 0,
    partition_bytes: int = PARTITION_BYTES,
    fetch_bytes: int = FETCH_BYTES,
) -> list[Chunk]:
    """What lies at `positions`, from their leader. Waits up to `wait_ms` on the broker for the first record."""
    asked = [
        FetchPartition(partition=each, fetch_offset=at, partition_max_bytes=partition_bytes) for each, at in positions.items()
    ]
    request = FetchRequest(max_wait_ms=wait_ms, min_bytes=1, max_bytes=fetch_bytes, session_epoch=NO_SESSION)
    request.topics = [FetchTopic(topic=topic.name, topic_id=topic.id, partitions=asked)]
    response: FetchResponse = await cluster.once(leader, request)
    if response.error_code:
        raise exception_of(response.error_code)
    found = []
    for data in (each for one in response.responses for each in one.partitions):
        if data.error_code:
            raise exception_of(data.error_code, f"partition {topic.name}-{data.partition_index} cannot be read")
        content = bytes(data.records or b"")  # type: ignore[arg-type]  # decoding gives bytes, never a file range
        found.append(Chunk(data.partition_index, positions[data.partition_index], content, data.high_watermark))
    return found


def next_offset(chunk: Chunk) -> int:
    """Where to read on after a chunk: from the headers of its batches alone."""
    after = chunk.at
    for view in iterate_batches(chunk.data, allow_cut_end=True):
        after = max(after, view.next_offset)
    return after


class Look(NamedTuple):
    """What a search found in some chunks."""

    found: list[Shown]
    records: int
    """How many were looked at."""
    size: int
    """Their bytes, compressed as they were."""


def look(
    chunks: Sequence[Chunk],
    ends: Mapping[int, int],
    search: Search | None,
    reader: Reader | None,
    mask: Mask | None,
    limit: int = 1 << 60,
) -> Look:
    """The records of chunks that a search wants, before `ends`. Batches that hold none of its needles are not decoded.

    `reader` is None where keys and values are searched as they are; only then the needles count.
    """
    found: list[Shown] = []
    count = size = 0
    needles = search.needles if search is not None and reader is None and mask is None else None
    test = search.test if search is not None else None
    for chunk in chunks:
        size += len(chunk.data)
        end = ends.get(chunk.partition, 1 << 62)
        for view in iterate_batches(chunk.data, allow_cut_end=True):
            if view.next_offset <= chunk.at or view.base_offset >= end:
                continue
            count += min(view.next_offset, end) - max(view.base_offset, chunk.at)
            if view.is_control and test is not None:
                continue
            try:
                view.check()
                if needles is not None and not _holds(view, needles):
                    continue
                for one in iterate_records(view, decompressed_bytes_max=DECOMPRESSED_BYTES_MAX):
                    each = one if mask is None or view.is_control else mask.masked(one)
                    if chunk.at <= each.offset < end and (test is None or test(Candidate(each, chunk.partition, reader))):
                        found.append(_shown(chunk.partition, view, each))
                        if len(found) >= limit:
                            return Look(found, count, size)
            except CorruptRecords as problem:
                text = f"partition {chunk.partition} is damaged at offset {view.base_offset}: {problem}"
                raise KafkaError(2, text) from None
    return Look(found, count, size)


def _holds(view: BatchView, needles: frozenset[bytes]) -> bool:
    """Whether a batch holds one of the needles, compressed or not."""
    if view.codec == Codec.NONE and isinstance(view.buffer, bytes):
        start, end = view.position, view.position + view.size
        return any(view.buffer.find(each, start, end) >= 0 for each in needles)
    if view.count == 0:
        return False
    data = decompress(view.codec, view.payload, DECOMPRESSED_BYTES_MAX)
    return any(each in data for each in needles)


def _shown(partition: int, view: BatchView, each: Record) -> Shown:
    sequence = view.base_sequence + each.offset - view.base_offset if view.base_sequence >= 0 else -1
    return Shown(
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


class Step(NamedTuple):
    """A part of a scan: what was found, how much was looked at, and where the scan goes on."""

    found: list[Shown]
    records: int
    size: int
    positions: dict[int, int]
    """What is left, by partition: the next offset of a scan forward, the end of what is left of one backward."""


async def forward(
    cluster: Cluster, topic: Topic, wanted: Range, search: Search | None = None, reader: Reader | None = None
) -> AsyncGenerator[Step, None]:
    """The records of a range that a search wants, in pieces, each partition in order.

    The next piece is fetched while one is looked at: so at most two are in memory. Partitions are read `WINDOW` at a time.
    """
    left = {each: at for each, at in sorted(wanted.begins.items()) if at < wanted.ends[each]}
    fetching: asyncio.Task[tuple[list[Chunk], dict[int, int]]] | None = None
    try:
        while left:
            positions = dict(islice(left.items(), WINDOW))
            chunks, after = await (fetching or fetch(cluster, topic, positions))
            fetching = None
            is_stuck = all(after.get(each, at) == at for each, at in positions.items())
            for each in positions:
                left[each] = after.get(each, left[each])
                if left[each] >= wanted.ends[each] or is_stuck:
                    del left[each]
            if left:
                fetching = asyncio.create_task(fetch(cluster, topic, dict(islice(left.items(), WINDOW))))
            seen = await asyncio.to_thread(look, chunks, wanted.ends, search, reader, topic.mask)
            yield Step(seen.found, seen.records, seen.size, dict(left))
    finally:
        if fetching is not None:
            fetching.cancel()
            await asyncio.gather(fetching, return_exceptions=True)


async def backward(
    cluster: Cluster, topic: Topic, wanted: Range, search: Search | None = None, reader: Reader | None = None, first: int = 200
) -> AsyncGenerator[Step, None]:
    """The same from the end: windows of offsets, the newest first, each a scan forward. They grow while they are quick.

    Of a window that takes too long, or finds more than `FOUND_BYTES_MAX`, the next one looks again at what is left out.
    """
    ends = {each: end for each, end in wanted.ends.items() if end > wanted.begins[each]}
    width = first
    while ends:
        begins = {each: max(wanted.begins[each], end - width) for each, end in ends.items()}
        after = dict(begins)
        began_s = time.monotonic()
        found: list[Shown] = []
        records = size = 0
        async with aclosing(forward(cluster, topic, Range(begins, ends), search, reader)) as steps:
            async for step in steps:
                found += step.found
                records, size = records + step.records, size + step.size
                found, dropped = _lightest(found)
                for one in dropped:
                    after[one.partition] = max(after[one.partition], one.offset + 1)
                if time.monotonic() - began_s > 2 * STEP_S and 0 < len(step.positions) < len(ends):
                    found = [one for one in found if one.partition not in step.positions]
                    after.update({each: ends[each] for each in step.positions})
                    break
        found.sort(key=newest_first)
        took_s = time.monotonic() - began_s
        if after != begins:
            width = max(1, width // 4)
        else:
            width = width * 4 if took_s < STEP_S / 4 else width * 2 if took_s < STEP_S / 2 else max(50, width // 2)
        ends = {each: at for each, at in after.items() if at > wanted.begins[each]}
        yield Step(found, records, size, dict(ends))


def weight_of(found: Sequence[Shown]) -> int:
    """The bytes of keys and values."""
    return sum(len(each.key or b"") + len(each.value or b"") for each in found)


def _lightest(found: list[Shown]) -> tuple[list[Shown], list[Shown]]:
    """The newest records whose keys and values are not too many bytes, and the others."""
    if weight_of(found) <= FOUND_BYTES_MAX:
        return found, []
    found.sort(key=newest_first)
    weight = 0
    for index, each in enumerate(found):
        weight += len(each.key or b"") + len(each.value or b"")
        if weight > FOUND_BYTES_MAX and index:
            return found[:index], found[index:]
    return found, []


def newest_first(each: Shown) -> tuple[int, int, int]:
    return -each.timestamp, each.partition, -each.offset


async def newest(cluster: Cluster, topic: Topic, wanted: Range, limit: int, seconds: float = 2.0) -> list[Shown]:
    """The last records, the newest first. Looks further back while compaction or markers leave too few."""
    found: list[Shown] = []
    deadline_s = time.monotonic() + seconds
    async with aclosing(backward(cluster, topic, wanted, first=limit)) as steps:
        async for step in steps:
            found += step.found
            if len(found) >= limit or time.monotonic() > deadline_s:
                break
    return sorted(found, key=newest_first)[:limit]


class Tailed(NamedTuple):
    """Some new records of a live tail, how many more there were, and where it goes on."""

    found: list[Shown]
    skipped: int
    positions: dict[int, int]


async def tail(
    cluster: Cluster, topic: Topic, begins: Mapping[int, int], search: Search | None, reader: Reader | None, is_replay: bool
) -> AsyncGenerator[Tailed, None]:
    """New records as they come. Of a fast topic it shows a sample: it reads at most `TAIL_BYTES` each `TAIL_PAUSE_S` from a
    leader, and leaves out what has come meanwhile. `is_replay`: nothing is left out until it has caught up.
    """
    positions = dict(begins)
    arrived: asyncio.Queue[Tailed | BaseException] = asyncio.Queue(maxsize=4)

    async def follow(leader: int, partitions: list[int]) -> None:
        caught_up = not is_replay
        try:
            while True:
                began_s = time.monotonic()
                own = {each: positions[each] for each in partitions}
                chunks = await fetch_from(
                    cluster, leader, topic, own, wait_ms=TAIL_WAIT_MS, partition_bytes=TAIL_BYTES, fetch_bytes=TAIL_BYTES
                )
                seen = await asyncio.to_thread(look, chunks, {}, search, reader, topic.mask)
                found, skipped = seen.found, 0
                for chunk in chunks:
                    own[chunk.partition] = next_offset(chunk)
                if len(found) > TAIL_ROWS and caught_up:
                    skipped, found = len(found) - TAIL_ROWS, found[-TAIL_ROWS:]
                elif len(found) > TAIL_ROWS:
                    found, rest = found[:TAIL_ROWS], found[TAIL_ROWS:]
                    for one in reversed(rest):  # read again with the next fetch
                        own[one.partition] = one.offset
                behind = {chunk.partition: chunk.high_watermark - own[chunk.partition] for chunk in chunks}
                caught_up = caught_up or all(by <= TAIL_ROWS for by in behind.values())
                if caught_up:
                    for partition, by in behind.items():
                        if by > TAIL_BEHIND:
                            skipped, own[partition] = skipped + by, own[partition] + by
                positions.update(own)
                if found or skipped:
                    await arrived.put(Tailed(found, skipped, dict(positions)))
                await asyncio.sleep(max(0.0, began_s + TAIL_PAUSE_S - time.monotonic()))
        except Exception as problem:
            await arrived.put(problem)

    by_leader: dict[int, list[int]] = {}
    for partition in positions:
        by_leader.setdefault(topic.leaders[partition], []).append(partition)
    tasks = [asyncio.create_task(follow(leader, some)) for leader, some in by_leader.items()]
    try:
        while True:
            each = await arrived.get()
            if isinstance(each, BaseException):
                raise each
            yield each
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
