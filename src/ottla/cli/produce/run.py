"""The loop of `ottla produce`: reads input, gives its records to a `Producer`, and waits until all of them are stored.

Reading and the first failure of a record are awaited together, so that a refused record ends the command also while no input
comes. However it ends, what was read before gets a few seconds to be stored.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from ottla.cli.common.clients import client_logs_shown
from ottla.cli.common.output import warn
from ottla.cli.produce.lines import BadInput, Bytes, Columns, Input, Lines, Reader, Row
from ottla.cli.produce.options import ProduceOptions
from ottla.client.cluster import Cluster, topic_error
from ottla.client.producer.asynchronous import Producer
from ottla.client.producer.deliveries import Deliveries
from ottla.client_core.metadata import leaderless_text
from ottla.client_core.producer.batch import ProducerBatch
from ottla.env.backoff import Backoff
from ottla.errors import (
    InvalidTopicError,
    KafkaError,
    OttlaError,
    RecordTooLargeError,
    UnknownTopicOrPartitionError,
    exception_of,
)
from ottla.errors.codes import ErrorCode
from ottla.errors.texts import counted, sized

GRACE_S = 5.0
"""After Ctrl-C or a failure, how long the records that were read before may take to be stored."""
ENDING_SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


class Terminated(OttlaError):
    """A signal has ended the command."""

    def __init__(self, number: int) -> None:
        super().__init__(f"ended by {signal.Signals(number).name}")
        self.exit_code = 128 + number


async def produce(
    cluster: Cluster, options: ProduceOptions, reader: Reader, source: Input, ledger: Ledger, prompt: str = ""
) -> None:
    """Send all records of `source`, and return when all are stored. `ledger` has what is stored, also after a failure."""
    topics = Topics(cluster, options)
    if options.topic is not None:
        await topics.find(options.topic)
    producer: Producer[Bytes, Bytes] = Producer(config=options.client, world=cluster.world, **options.login)
    producer.watch_batches(ledger.finished)
    progress = Progress(ledger, source, has_prompt=bool(prompt))
    sending = Sending(producer, options, reader, ledger, topics)
    ticking = asyncio.create_task(progress.run())
    try:
        with client_logs_shown(show=progress.client_says), ended_by_signals():
            try:
                await _until_failure(sending.run(source, prompt), ledger)
            except asyncio.CancelledError:
                progress.interrupted(GRACE_S)
                raise
            finally:
                progress.is_ending = True
                await producer.close(GRACE_S)
    finally:
        ticking.cancel()
        progress.clear()
        source.close()


async def _until_failure(work: Awaitable[None], ledger: Ledger) -> None:
    """Await `work`, or the first failure of a record, which is raised."""
    running = asyncio.ensure_future(work)
    failing = asyncio.create_task(ledger.failed.wait())
    try:
        await asyncio.wait((running, failing), return_when=asyncio.FIRST_COMPLETED)
    finally:
        failing.cancel()
        if not running.done():
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running
    if ledger.failure is not None:
        raise ledger.failure
    await running


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Cancel the running task on signals that end processes, and raise `Terminated` then."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None
    received: list[int] = []

    def end(number: int) -> None:
        received.append(number)
        task.cancel()

    handled = []
    for number in ENDING_SIGNALS:
        if signal.getsignal(number) is signal.SIG_IGN:
            continue  # as nohup asks for
        with suppress(ValueError, RuntimeError, NotImplementedError):  # not the main thread, or a system without them
            loop.add_signal_handler(number, end, number)
            handled.append(number)
    try:
        yield
    except asyncio.CancelledError:
        if not received:
            raise
        task.uncancel()
        raise Terminated(received[0]) from None
    finally:
        for number in handled:
            loop.remove_signal_handler(number)


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


@dataclass(slots=True)
class Stored:
    """What one partition has acknowledged. Offsets are -1 if the broker has told none."""

    records: int = 0
    first_offset: int = -1
    last_offset: int = -1


class Ledger:
    """What was read, and what is stored. It outlives the event loop, so that the total can be shown however that ends."""

    def __init__(self) -> None:
        self.read = 0
        """How many records were read and given to the producer, or are about to be."""
        self.stored = 0
        self.refused = 0
        """How many a broker has refused for good."""
        self.lost = 0
        """How many have failed in another way: they may be stored."""
        self.partitions: dict[tuple[str, int], Stored] = {}
        self.failure: KafkaError | None = None
        """Why the first record that was not stored was not."""
        self.failed = asyncio.Event()

    @property
    def pending(self) -> int:
        """How many records are neither stored nor given up."""
        return self.read - self.stored - self.refused - self.lost

    def finished(self, batch: ProducerBatch) -> None:
        """The producer is done with a batch. It says so of the parts of a split batch, too."""
        if batch.parts:
            return
        if batch.error is not None:
            self._count_failed(batch, batch.error)
            return
        self.stored += batch.count
        stored = self.partitions.setdefault(batch.key, Stored())
        stored.records += batch.count
        if batch.base_offset >= 0:
            first = stored.first_offset
            stored.first_offset = batch.base_offset if first < 0 else min(first, batch.base_offset)
            stored.last_offset = max(stored.last_offset, batch.base_offset + batch.count - 1)

    def _count_failed(self, batch: ProducerBatch, error: KafkaError) -> None:
        if error.code > 0 and not error.is_retriable and not batch.is_uncertain:
            self.refused += batch.count
        else:
            self.lost += batch.count
        if self.failure is None:
            # What is wrong with the first bad record of the batch says more than that there is one.
            self.failure = batch.error_of(min(batch.record_errors)) if batch.record_errors else error
        self.failed.set()

    def total(self, topic: str, verb: str = "stored in") -> str:
        """`5 records stored in orders, 2 refused, 3 not known to be stored`."""
        unknown = self.read - self.stored - self.refused
        parts = [f"{counted(self.stored, 'record')} {verb} {topic}"]
        parts += [f"{self.refused:,} refused"] if self.refused else []
        parts += [f"{unknown:,} not known to be stored"] if unknown > 0 else []
        return ", ".join(parts)


EVERY_S = 0.5
STALLED_AFTER_S = 5.0
"""Records that wait this long without one being stored are worth a message."""


class Progress:
    """Shows how far the records of `source` are."""

    def __init__(self, ledger: Ledger, source: Input, has_prompt: bool = False) -> None:
        self._ledger = ledger
        self._source = source
        self._has_line = sys.stderr is not None and sys.stderr.isatty() and not has_prompt
        self._width = 0
        self._start_s = self._moved_s = time.monotonic()
        self._stored = 0
        self._is_disturbed = False
        self.is_ending = False
        """Whether the client's messages are no longer of interest: what became of the records is said at the end."""

    async def run(self) -> None:
        """Show what is new, until cancelled."""
        while True:
            await asyncio.sleep(EVERY_S)
            self.look(time.monotonic())

    def look(self, now_s: float) -> None:
        """Show the state now."""
        ledger = self._ledger
        if ledger.stored > self._stored or not ledger.pending:
            self._moved_s = now_s
            if self._is_disturbed and ledger.stored > self._stored:
                self._is_disturbed = False
                self._message("records are being stored again")
        elif not self._is_disturbed and now_s - self._moved_s >= STALLED_AFTER_S:
            self._is_disturbed = True
            self._message(
                f"no answer for {now_s - self._moved_s:.0f} s to {counted(ledger.pending, 'record')}: the brokers are slow, or "
                "cannot be reached"
            )
        self._stored = ledger.stored
        if self._has_line:
            self._draw(self._line(now_s))

    def client_says(self, text: str) -> None:
        """Show a message of the client, such as that a broker is lost."""
        if not self.is_ending:
            self._is_disturbed = True
            self._stored = self._ledger.stored  # what was stored before does not mean that the broker is back
            self._message(text)

    def interrupted(self, grace_s: float) -> None:
        """Say why the command does not end at once, if it does not."""
        pending = self._ledger.pending
        if pending:
            self._message(f"ending: up to {grace_s:g} s for {counted(pending, 'record')} to be stored; Ctrl-C ends at once")

    def clear(self) -> None:
        """Take the progress line away."""
        if self._width:
            sys.stderr.write(f"\r{' ' * self._width}\r")
            sys.stderr.flush()
            self._width = 0

    def _message(self, text: str) -> None:
        self.clear()
        warn(text)

    def _line(self, now_s: float) -> str:
        ledger, source = self._ledger, self._source
        seconds = max(now_s - self._start_s, 0.001)
        # Of what was read, that part is stored that its records are.
        share = min(1.0, ledger.stored / ledger.read) if ledger.read else 0.0
        stored_bytes = source.read_bytes * share
        percent = f"{100 * stored_bytes / source.size_bytes:3.0f} %  " if source.size_bytes else ""
        waiting = f"  waiting for {now_s - self._moved_s:.0f} s" if self._is_disturbed else ""
        speed = f"{ledger.stored / seconds:,.0f}/s, {sized(int(stored_bytes / seconds))}/s"
        return f"{percent}{counted(ledger.stored, 'record')} stored, {speed}{waiting}"

    def _draw(self, line: str) -> None:
        sys.stderr.write(f"\r{line.ljust(self._width)}")
        sys.stderr.flush()
        self._width = len(line)
