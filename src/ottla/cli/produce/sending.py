"""From input to the producer: reads records, finds their topics, and sends them in order."""

from __future__ import annotations

import asyncio
import sys

from ottla.cli.common.output import warn
from ottla.cli.produce.input import BadInput, Input, Lines
from ottla.cli.produce.ledger import Ledger
from ottla.cli.produce.options import ProduceOptions
from ottla.cli.produce.progress import STALLED_AFTER_S
from ottla.cli.produce.records import Bytes, Columns, Reader, Row
from ottla.client.cluster import Cluster, topic_error
from ottla.client.producer.asynchronous import Producer
from ottla.client.producer.deliveries import Deliveries
from ottla.client_core.backoff import Backoff
from ottla.client_core.metadata import leaderless_text
from ottla.errors import (
    InvalidTopicError,
    KafkaError,
    OttlaError,
    RecordTooLargeError,
    UnknownTopicOrPartitionError,
    exception_of,
)
from ottla.errors.codes import ErrorCode

FAULTS_OF_RECORDS = (ValueError, RecordTooLargeError, InvalidTopicError, UnknownTopicOrPartitionError)
"""Errors for which the input is to blame: they are shown with their place in it."""


class Topics:
    """Makes sure that a topic exists before a record is sent to it. Brokers create it if they are set so."""

    def __init__(self, cluster: Cluster, options: ProduceOptions) -> None:
        self._cluster = cluster
        self._options = options
        self._known: set[str] = set()

    async def of(self, row: Row) -> str:
        """The topic of a record: the command's, else the one that the record names."""
        topic = self._options.topic or row.topic
        if topic is None:
            raise ValueError("the record has no topic, and the command names none")
        if topic not in self._known:
            await self.find(topic)
        return topic

    async def find(self, topic: str) -> None:
        """Wait up to max.block.ms until the topic exists and has a leader. Raises why it has none."""
        waiting = f"waiting for topic {topic}: the brokers do not answer, or the topic has no leader"
        timer = asyncio.get_running_loop().call_later(STALLED_AFTER_S, warn, waiting)
        try:
            await self._find(topic)
        finally:
            timer.cancel()
        self._known.add(topic)

    async def _find(self, topic: str) -> None:
        cluster, settings = self._cluster, self._cluster.settings
        deadline_s = asyncio.get_running_loop().time() + self._options.max_block_ms / 1000
        backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, cluster.world.randomness.below)
        while (refusal := await self._look(topic)) is not None:
            if not refusal.is_retriable or not await cluster.wait(backoff, deadline_s):
                raise refusal

    async def _look(self, topic: str) -> KafkaError | None:
        found = (await self._cluster.metadata([topic], auto_create=True)).topics[0]
        if found.error_code:
            return topic_error(found.error_code, topic)
        if not any(each.leader_id >= 0 for each in found.partitions):
            numbers = [each.partition_index for each in found.partitions]
            return exception_of(ErrorCode.LEADER_NOT_AVAILABLE, leaderless_text(topic, numbers))
        wanted = self._options.partition
        if wanted is not None and wanted >= len(found.partitions):
            raise OttlaError(f"topic {topic} has no partition {wanted}, only 0 to {len(found.partitions) - 1}")
        return None


class Sending:
    """Gives the records of the input to the producer, in order."""

    def __init__(
        self, producer: Producer[Bytes, Bytes], options: ProduceOptions, reader: Reader, ledger: Ledger, topics: Topics
    ) -> None:
        self._producer = producer
        self._options = options
        self._reader = reader
        self._ledger = ledger
        self._topics = topics
        self._line = 0
        """Which of the lines that are being sent the record comes from that is sent next."""

    async def run(self, source: Input, prompt: str) -> None:
        """Read until the input ends, and wait until all records are stored or have failed."""
        _show(prompt)
        while (lines := await source.next_lines()) is not None:
            await self._send(lines)
            if self._reader.failure is not None:
                if not prompt:
                    raise self._reader.failure
                warn(str(self._reader.failure))  # a person at a prompt can type the line again
                self._reader.failure = None
            _show(prompt)
        _show("\n" if prompt else "")
        await self._producer.flush()

    async def _send(self, lines: Lines) -> None:
        records = self._reader.read(lines)
        self._line = 0
        try:
            if not isinstance(records, Columns):
                await self._send_rows(records)
            elif self._options.sync:
                await self._send_rows(records.rows())
            elif records.headers is not None:
                await self._send_with_headers(records)
            else:
                await self._send_columns(records)
        except FAULTS_OF_RECORDS as error:
            if error is self._ledger.failure:
                raise
            raise BadInput(f"{lines.place(self._line)}: {error}") from None

    async def _send_columns(self, records: Columns) -> None:
        """The fast path: records with a value, or a key and a value."""
        options = self._options
        assert options.topic is not None
        keys = records.keys if options.key is None else [options.key] * len(records.values)
        taken = Deliveries()
        self._ledger.read += len(records.values)
        try:
            await self._producer.send_many(
                options.topic,
                records.values,
                keys,
                partition=options.partition,
                timestamp=options.timestamp_ms,
                into=taken,
            )
        finally:
            self._line = len(taken)
            self._ledger.read -= len(records.values) - self._line  # those behind one that cannot be sent

    async def _send_with_headers(self, records: Columns) -> None:
        options = self._options
        assert options.topic is not None
        topic, partition, timestamp_ms = options.topic, options.partition, options.timestamp_ms
        send, ledger = self._producer.send, self._ledger
        for value, key, headers in records.each():
            await send(
                topic,
                value,
                key if options.key is None else options.key,
                partition=partition,
                timestamp=timestamp_ms,
                headers=headers,
            )
            ledger.read += 1
            self._line += 1

    async def _send_rows(self, rows: list[Row]) -> None:
        options = self._options
        for index, row in enumerate(rows):
            self._line = index if row.line is None else row.line
            await self._producer.send(
                await self._topics.of(row),
                row.value,
                row.key if options.key is None else options.key,
                partition=row.partition if options.partition is None else options.partition,
                timestamp=row.timestamp_ms if options.timestamp_ms is None else options.timestamp_ms,
                headers=row.headers,
            )
            self._ledger.read += 1
            if options.sync:
                await self._producer.flush()
                if self._ledger.failure is not None:
                    raise self._ledger.failure


def _show(prompt: str) -> None:
    if prompt:
        sys.stdout.write(prompt)
        sys.stdout.flush()
