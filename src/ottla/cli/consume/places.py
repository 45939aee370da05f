"""Finds the partitions that `ottla consume` reads, and the offsets where it starts and ends in each, where it needs them."""

from __future__ import annotations

from ottla.cli.common.offsets import EARLIEST, LATEST, list_offsets
from ottla.cli.common.output import warn
from ottla.cli.consume.options import ConsumeOptions
from ottla.client.cluster import Cluster, topic_error
from ottla.errors import KafkaError, OttlaError
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition

Offsets = dict[TopicPartition, int]


async def find_partitions(cluster: Cluster, options: ConsumeOptions) -> list[TopicPartition]:
    """The partitions of the topics that are named or match. Raises if a topic or partition is missing."""
    topics = {name: await cluster.topic(name) for name in options.topics}
    if options.include is not None:
        topics |= {name: topic for name, topic in (await cluster.topics()).items() if options.include.fullmatch(name)}
        if not topics:
            raise OttlaError(f"no topic matches {options.include.pattern!r}: `ottla topics list` shows all topics")
    found = []
    for name, topic in topics.items():
        there = sorted(each.partition_index for each in topic.partitions)
        for missing in sorted((options.partitions or frozenset()) - set(there)):
            raise topic_error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name, missing)
        found += [TopicPartition(name, index) for index in there if options.partitions is None or index in options.partitions]
    return found


async def find_starts(cluster: Cluster, options: ConsumeOptions, partitions: list[TopicPartition]) -> Offsets:
    """The offset to start at, for each partition."""
    if options.offset is not None:
        return await _within_range(cluster, options, dict.fromkeys(partitions, options.offset))
    starts = await find_offsets(cluster, dict.fromkeys(partitions, options.start), options.read_committed)
    # -1: no record is that late. Such partitions are read from their end.
    late = [partition for partition, offset in starts.items() if offset < 0]
    return starts | (await find_offsets(cluster, dict.fromkeys(late, LATEST), options.read_committed) if late else {})


async def _within_range(cluster: Cluster, options: ConsumeOptions, starts: Offsets) -> Offsets:
    """`starts`, with the first or last offset where a partition does not have the one asked for."""
    firsts = await find_offsets(cluster, dict.fromkeys(starts, EARLIEST), False)
    ends = await find_offsets(cluster, dict.fromkeys(starts, LATEST), False)
    where, instead = ("first", firsts) if options.reset == EARLIEST else ("end", ends)
    for partition, offset in starts.items():
        if not firsts[partition] <= offset <= ends[partition]:
            warn(f"partition {partition} has no offset {offset}: going on from the {where}, {instead[partition]}")
            starts = starts | {partition: instead[partition]}
    return starts


async def find_ends(cluster: Cluster, options: ConsumeOptions, starts: Offsets) -> Offsets:
    """The end offsets of the partitions that have records to read before their end."""
    ends = await find_offsets(cluster, dict.fromkeys(starts, LATEST), options.read_committed)
    firsts = await find_offsets(cluster, dict.fromkeys(starts, EARLIEST), options.read_committed)
    return {partition: end for partition, end in ends.items() if max(starts[partition], firsts[partition]) < end}


async def find_offsets(cluster: Cluster, wanted: Offsets, read_committed: bool) -> Offsets:
    """The offsets of places or timestamps. Raises the first error."""
    offsets = {}
    for partition, found in (await list_offsets(cluster, wanted, read_committed)).items():
        if isinstance(found, KafkaError):
            raise found
        offsets[partition] = found.offset
    return offsets
