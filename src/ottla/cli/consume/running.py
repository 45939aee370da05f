"""The loop of `ottla consume`: fetches partitions, formats and prints their records."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ottla.cli.common.cluster import Cluster, topic_refusal
from ottla.cli.common.offsets import EARLIEST, LATEST, list_offsets
from ottla.cli.common.output import warn
from ottla.cli.consume.fetcher import Fetched, Fetcher
from ottla.cli.consume.formatters import CannotShow, Formatter
from ottla.cli.consume.options import ConsumeOptions
from ottla.cli.consume.records import read_batches
from ottla.errors import KafkaError, OttlaError
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition


class Counter:
    """The number of records shown. Outside the loop, so that it can be printed however the loop ends."""

    def __init__(self) -> None:
        self.records = 0


async def consume(
    cluster: Cluster, options: ConsumeOptions, formatter: Formatter, write: Callable[[bytes], object], counter: Counter
) -> None:
    """Show records until `max_messages` were shown, none has arrived for `timeout_ms`, or the end is reached."""
    partitions = await _partitions(cluster, options)
    offsets = await _starts(cluster, options, partitions)
    ends = await _ends(cluster, options, partitions, offsets)
    if options.max_messages == 0 or (options.until_end and not ends):
        return
    fetcher = Fetcher(cluster, options, offsets)
    watching = asyncio.create_task(_watch(cluster, options, fetcher, set(offsets))) if options.takes_new_partitions else None
    try:
        while True:
            try:
                async with asyncio.timeout(None if options.timeout_ms is None else options.timeout_ms / 1000):
                    fetched = await fetcher.next()
            except TimeoutError:
                return
            _show(fetched, options, formatter, write, counter, ends)
            if options.max_messages is not None and counter.records >= options.max_messages:
                return
            if options.until_end:
                if fetched.next_offset >= ends.get(fetched.partition, 0):
                    ends.pop(fetched.partition, None)
                if not ends:
                    return
    finally:
        if watching is not None:
            watching.cancel()
        await fetcher.close()


async def _watch(cluster: Cluster, options: ConsumeOptions, fetcher: Fetcher, known: set[TopicPartition]) -> None:
    """Look for new partitions every `metadata_age_ms_max`. They are read from their first record."""
    while True:
        await asyncio.sleep(options.metadata_age_ms_max / 1000)
        try:
            added = [each for each in await _partitions(cluster, options) if each not in known]
            offsets = await _find(cluster, options, dict.fromkeys(added, EARLIEST)) if added else {}
        except OttlaError:
            continue  # if the failure lasts, the fetcher reports it
        for each in offsets:
            warn(f"partition {each} is new: reading it from its first record")
        known.update(offsets)
        fetcher.add(offsets)


def _show(
    fetched: Fetched,
    options: ConsumeOptions,
    formatter: Formatter,
    write: Callable[[bytes], object],
    counter: Counter,
    ends: dict[TopicPartition, int],
) -> None:
    end = ends.get(fetched.partition, -1) if options.until_end else None
    for batch in read_batches(fetched.views, fetched.offset, fetched.aborted):
        records = batch.records
        if end is not None and records[-1].offset >= end:
            records = [record for record in records if record.offset < end]
        if options.max_messages is not None:
            records = records[: options.max_messages - counter.records]
        if not records:
            continue
        try:
            output = formatter.format(fetched.partition, batch._replace(records=records))
        except CannotShow as problem:
            counter.records += problem.records
            write(problem.before)
            raise
        counter.records += len(records)
        if output:
            write(output)


async def _partitions(cluster: Cluster, options: ConsumeOptions) -> list[TopicPartition]:
    if options.include is not None:
        topics = [topic for name, topic in (await cluster.topics()).items() if options.include.fullmatch(name)]
        if not topics:
            raise OttlaError(f"no topic matches {options.include.pattern!r}: `ottla topics list` shows all topics")
    else:
        topics = [await cluster.topic(options.topic or "")]
    found = []
    for topic in topics:
        name = topic.name or ""
        there = sorted(each.partition_index for each in topic.partitions)
        for missing in sorted((options.partitions or frozenset()) - set(there)):
            raise topic_refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name, missing)
        found += [TopicPartition(name, index) for index in there if options.partitions is None or index in options.partitions]
    return found


async def _starts(cluster: Cluster, options: ConsumeOptions, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
    if options.offset is not None:
        return dict.fromkeys(partitions, options.offset)
    starts = await _find(cluster, options, dict.fromkeys(partitions, options.start))
    # -1: no record is that late. Such partitions are read from their end.
    late = [partition for partition, offset in starts.items() if offset < 0]
    return starts | (await _find(cluster, options, dict.fromkeys(late, LATEST)) if late else {})


async def _ends(
    cluster: Cluster, options: ConsumeOptions, partitions: list[TopicPartition], starts: dict[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """The end offsets of the partitions that have records to read before their end."""
    if not options.until_end:
        return {}
    ends = await _find(cluster, options, dict.fromkeys(partitions, LATEST))
    firsts = await _find(cluster, options, dict.fromkeys(partitions, EARLIEST))
    return {partition: end for partition, end in ends.items() if max(starts[partition], firsts[partition]) < end}


async def _find(cluster: Cluster, options: ConsumeOptions, wanted: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
    offsets = {}
    for partition, found in (await list_offsets(cluster, wanted, options.read_committed)).items():
        if isinstance(found, KafkaError):
            raise found
        offsets[partition] = found.offset
    return offsets
