"""How many records topics have and how much space they take, from ListOffsets and DescribeLogDirs: one round per broker.

A topic about which a broker does not answer, in time or at all, has None: a listing must not fail for one of its topics.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Hashable, Iterable, Mapping
from typing import NamedTuple, TypeVar

from ottla.client.admin.log_dirs import describe_log_dirs
from ottla.client.admin.offsets import OffsetSpec, list_offsets
from ottla.client.admin.results import Results
from ottla.client.admin.topic_descriptions import TopicDescription
from ottla.client.cluster import Cluster
from ottla.errors import KafkaError
from ottla.ids import TopicPartition

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
ANSWER_S = 5.0


class TopicSize(NamedTuple):
    """The sums over a topic's partitions; None if one of them could not be learned."""

    records: int | None
    """End offsets minus first offsets: more than there are records, if some were compacted or transactions were ended."""
    size_bytes: int | None
    """The logs of the leaders: one copy."""


class _Found(NamedTuple):
    """What one broker knows of the partitions that it leads."""

    records: dict[TopicPartition, int]
    size_bytes: dict[TopicPartition, int]


async def find_sizes(cluster: Cluster, topics: Mapping[str, TopicDescription]) -> dict[str, TopicSize]:
    """The size of each topic."""
    by_leader: dict[int, list[TopicPartition]] = {}
    for name, topic in topics.items():
        for each in topic.partitions:
            if each.leader is not None:
                by_leader.setdefault(each.leader, []).append(TopicPartition(name, each.partition))
    answers = await asyncio.gather(*(_ask(cluster, leader, led) for leader, led in by_leader.items()))
    records = {each: count for answer in answers for each, count in answer.records.items()}
    size_bytes = {each: size for answer in answers for each, size in answer.size_bytes.items()}
    found = {}
    for name, topic in topics.items():
        partitions = [TopicPartition(name, each.partition) for each in topic.partitions]
        found[name] = TopicSize(_sum(records, partitions), _sum(size_bytes, partitions))
    return found


async def _ask(cluster: Cluster, broker_id: int, led: list[TopicPartition]) -> _Found:
    ends, starts, directories = await asyncio.gather(
        _learned(list_offsets(cluster, dict.fromkeys(led, OffsetSpec.LATEST))),
        _learned(list_offsets(cluster, dict.fromkeys(led, OffsetSpec.EARLIEST))),
        _learned(describe_log_dirs(cluster, [broker_id], wanted_partitions=led)),
    )
    size_bytes: dict[TopicPartition, int] = {}
    for paths in directories.values():
        for directory in paths.values():
            size_bytes |= {each: info.size_bytes for each, info in directory.replicas.items() if not info.is_future}
    return _Found({each: end.offset - starts[each].offset for each, end in ends.items() if each in starts}, size_bytes)


async def _learned(answer: Awaitable[Results[K, V]]) -> dict[K, V]:
    """The values of an answer. What failed is left out."""
    try:
        async with asyncio.timeout(ANSWER_S):
            results = await answer
    except (KafkaError, TimeoutError):
        return {}
    errors = results.errors
    return {key: results[key] for key in results if key not in errors}


def _sum(found: Mapping[TopicPartition, int], partitions: Iterable[TopicPartition]) -> int | None:
    try:
        return sum(found[each] for each in partitions)
    except KeyError:
        return None
