"""The loop of `ottla consume`: polls a `Consumer`, formats and prints its records.

Without a group the partitions are assigned, and a second task looks for partitions that are added and topics that are deleted.
With a group they are subscribed to. What was shown is committed at the end and, as enable.auto.commit says, on the way; after a
record that cannot be shown, only what came before its poll is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from ottla.cli.common.clients import client_logs_shown
from ottla.cli.common.offsets import EARLIEST, LATEST, list_offsets
from ottla.cli.common.output import warn
from ottla.cli.consume.formatters import CannotShow, Formatter, group_records
from ottla.cli.consume.options import ConsumeOptions
from ottla.client.cluster import Cluster, is_worth_retrying, topic_error
from ottla.client.consumer.asynchronous import Consumer
from ottla.client.consumer.record import ConsumerRecord
from ottla.errors import CorruptBatchError, KafkaError, OttlaError, WakeupError, exception_of
from ottla.errors.codes import ErrorCode, error_name
from ottla.ids import TopicPartition

POLL_S = 1.0
POLL_TO_END_S = 0.1
"""The end may be reached without a record, so positions are looked at this often."""
LEAVE_S = 5.0
"""After Ctrl-C, how long the last commit and leaving the group may take."""

Bytes = bytes | None
Records = Sequence["ConsumerRecord[Bytes, Bytes]"]


class Counter:
    """The number of records shown. Outside the loop, so that it can be printed however the loop ends."""

    def __init__(self) -> None:
        self.records = 0


async def consume(
    cluster: Cluster, options: ConsumeOptions, formatter: Formatter, write: Callable[[bytes], object], counter: Counter
) -> None:
    """Show records until `max_messages` were shown, none has arrived for `timeout_ms`, or the end is reached."""
    partitions = await find_partitions(cluster, options)
    is_in_group = options.group is not None
    # Else the consumer finds the offsets: a partition whose leader is down must not hold up the others, nor --timeout-ms.
    needs_offsets = not is_in_group and (options.until_end or options.offset is not None)
    starts = await find_starts(cluster, options, partitions) if needs_offsets else {}
    ends = await find_ends(cluster, options, starts) if options.until_end and not is_in_group else {}
    if options.max_messages == 0 or (options.until_end and not is_in_group and not ends):
        return
    consumer: Consumer[Bytes, Bytes] = Consumer(config=options.client, world=cluster.world, **options.login)
    loop = _Loop(consumer, options, _Printer(formatter, write, counter), ends)
    async with consumer:
        try:
            if is_in_group:
                consumer.subscribe(options.subscription)
                with client_logs_shown():
                    await loop.run()
            else:
                if needs_offsets:
                    _assign(consumer, starts)
                else:
                    _assign_at(consumer, partitions, options.start)
                watch = Watch(cluster, options, consumer, set(partitions))
                with client_logs_shown(watch.look_now):
                    await watch.beside(loop.run())
        except asyncio.CancelledError:  # Ctrl-C: everything that was handed out has been shown
            await consumer.close(LEAVE_S)
            raise


def _assign(consumer: Consumer[Any, Any], starts: Offsets) -> None:
    consumer.assign([*consumer.assignment(), *starts])
    for partition, offset in starts.items():
        consumer.seek(partition, offset)


def _assign_at(consumer: Consumer[Any, Any], partitions: Sequence[TopicPartition], start: int) -> None:
    """Assign partitions, to be read from a place or timestamp on."""
    consumer.assign(partitions)
    if start == EARLIEST:
        consumer.seek_to_beginning()
    elif start == LATEST:
        consumer.seek_to_end()
    else:
        consumer.seek_to_time(start)


class _Printer:
    """Writes records and counts them."""

    def __init__(self, formatter: Formatter, write: Callable[[bytes], object], counter: Counter) -> None:
        self._formatter = formatter
        self._write = write
        self.counter = counter

    def check(self) -> None:
        """Raise if the output has no reader any more: while no record comes, no write would tell."""
        self._write(b"")

    def show(self, partition: TopicPartition, records: Records) -> None:
        for group in group_records(records):
            try:
                output = self._formatter.format(partition, group)
            except CannotShow as problem:
                self.counter.records += problem.records
                self._write(problem.before)
                raise
            self.counter.records += len(group.records)
            if output:
                self._write(output)


class _Loop:
    """Polls until a limit is reached."""

    def __init__(self, consumer: Consumer[Bytes, Bytes], options: ConsumeOptions, printer: _Printer, ends: Offsets) -> None:
        self._consumer = consumer
        self._options = options
        self._printer = printer
        self._ends = ends
        self._loop = asyncio.get_running_loop()

    async def run(self) -> None:
        options = self._options
        limit_s = None if options.timeout_ms is None else options.timeout_ms / 1000
        last_s = self._loop.time()
        while True:
            left_s = POLL_S if limit_s is None else max(0.0, last_s + limit_s - self._loop.time())
            found = await self._poll(min(left_s, POLL_TO_END_S if options.until_end else POLL_S))
            for partition, records in found.items():
                self._show(partition, records)
            now_s = self._loop.time()
            if found:
                last_s = now_s
            else:
                self._printer.check()
            if options.max_messages is not None and self._printer.counter.records >= options.max_messages:
                return
            if options.until_end and await self._is_at_end():
                return
            if limit_s is not None and now_s - last_s >= limit_s:
                return

    async def _poll(self, timeout_s: float) -> dict[TopicPartition, list[ConsumerRecord[Bytes, Bytes]]]:
        limit = self._options.max_messages
        count = None if limit is None else limit - self._printer.counter.records
        try:
            return await self._consumer.batches(timeout_s, count)
        except CorruptBatchError as damage:
            partition = TopicPartition(damage.topic, damage.partition)
            raise OttlaError(f"partition {partition} cannot be read on from offset {damage.offset}: {damage}") from None
        except WakeupError:
            raise
        except KafkaError as error:
            name = error_name(error.code)
            raise error if name in str(error) else exception_of(error.code, f"{error} ({name})") from None

    def _show(self, partition: TopicPartition, records: Records) -> None:
        end = self._ends.get(partition) if self._options.until_end else None
        if end is not None and records[-1].offset >= end:
            records = [record for record in records if record.offset < end]
            self._consumer.seek(partition, end)  # what is not shown must not be committed
            self._consumer.pause(partition)
        if records:
            self._printer.show(partition, records)

    async def _is_at_end(self) -> bool:
        assigned = self._consumer.assignment()
        new = assigned - set(self._ends) if self._options.group is not None else set()
        if new:
            self._ends |= await self._consumer.end_offsets(*new)
        for partition, end in self._ends.items():
            if partition in assigned and await self._consumer.position(partition) < end:
                return False
        return bool(assigned)


class Watch:
    """Looks for partitions that are added, which are read from their first record, and for topics that are deleted."""

    def __init__(
        self, cluster: Cluster, options: ConsumeOptions, consumer: Consumer[Any, Any], known: set[TopicPartition]
    ) -> None:
        self._cluster = cluster
        self._options = options
        self._consumer = consumer
        self._known = known
        self._now = asyncio.Event()
        self._failure: OttlaError | None = None

    def look_now(self) -> None:
        """Something is wrong: find out whether a topic is gone."""
        self._now.set()

    async def beside(self, reading: Any) -> None:
        """Run until `reading` ends, or until a topic is gone."""
        watching = asyncio.create_task(self._run())
        try:
            await reading
        except WakeupError:
            if self._failure is None:
                raise
            raise self._failure from None
        finally:
            watching.cancel()

    async def _run(self) -> None:
        while True:
            try:
                async with asyncio.timeout(self._options.metadata_age_ms_max / 1000):
                    await self._now.wait()
            except TimeoutError:
                pass
            self._now.clear()
            try:
                await self._look()
            except KafkaError as error:
                if not is_worth_retrying(error) and not getattr(error, "is_absent", False):
                    self._failure = error
                    self._consumer.wakeup()
                    return

    async def _look(self) -> None:
        found = await find_partitions(self._cluster, self._options)
        added = [each for each in found if each not in self._known] if self._options.takes_new_partitions else []
        if not added:
            return
        offsets = await find_offsets(self._cluster, dict.fromkeys(added, EARLIEST), False)
        for each in offsets:
            warn(f"partition {each} is new: reading it from its first record")
        self._known.update(offsets)
        _assign(self._consumer, offsets)


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
