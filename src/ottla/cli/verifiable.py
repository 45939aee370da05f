"""The `verifiable-producer` and `verifiable-consumer` verbs: clients whose every step is an event in JSON, for system tests.

The events and their fields are those of Kafka's VerifiableProducer and VerifiableConsumer; errors have the names of Python's
classes. The consumer commits after each poll, unless automatic commits are on. A signal ends the poll; a commit that it
interrupts is made again, since its records were shown.

SIGTERM or Ctrl-C ends both with their closing events. A second signal ends them at once, but only after a moment: `timeout`
and some supervisors send one to the process and one more to its group.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import click

from ottla.cli.common.clients import ClientConfig, client_logs_shown, consumer_config, producer_config
from ottla.cli.common.connection import client_world
from ottla.cli.common.options import cluster_options
from ottla.cli.common.output import escape_json
from ottla.cli.common.settings import ClientSettings, whole_number
from ottla.cli.perf.command import Pace, chosen_topic, topic_options
from ottla.client.consumer.asynchronous import Consumer
from ottla.client.consumer.record import ConsumerRecord
from ottla.client.producer.asynchronous import Producer
from ottla.client.world import ClientWorld
from ottla.client_core.producer.batch import RecordMetadata
from ottla.config.client.kinds import CONSUMER, PRODUCER
from ottla.errors import AuthenticationError, FencedInstanceIdError, KafkaError, WakeupError
from ottla.ids import TopicPartition


class Events:
    """Prints events, which leave together at the end of a turn of the loop. `on_closed`: the output has no reader any more."""

    def __init__(self, loop: AbstractEventLoop, on_closed: Callable[[], object]) -> None:
        self._loop = loop
        self._on_closed = on_closed
        self._is_flush_due = False
        self.is_closed = False
        """Whether the output has no reader any more."""

    def print(self, name: str, **fields: Any) -> None:
        """Print one event."""
        if self.is_closed:
            return
        event = {"timestamp": time.time_ns() // 1_000_000, "name": name, **fields}
        try:
            sys.stdout.write(escape_json(json.dumps(event, ensure_ascii=False, separators=(",", ":"))) + "\n")
        except BrokenPipeError:
            self._close()
            return
        if not self._is_flush_due:
            self._is_flush_due = True
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Let what was printed leave now."""
        self._is_flush_due = False
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            self._close()

    def _close(self) -> None:
        self.is_closed = True
        self._on_closed()


SIGNALS = (signal.SIGTERM, signal.SIGINT)
INTERRUPTED = 130
REPEATED_S = 1.0
"""For how long after the first signal more of them are ignored."""


class Stop:
    """Whether and why to stop."""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None

    @property
    def exit_code(self) -> int | None:
        """130 after Ctrl-C; SIGTERM is how these commands are meant to end."""
        return INTERRUPTED if self.signal is signal.SIGINT else None


@contextmanager
def stopping(on_stop: Callable[[], object]) -> Iterator[Stop]:
    """A `Stop` that a signal sets; `on_stop` is called once then."""
    loop, stop = asyncio.get_running_loop(), Stop()

    def received(number: signal.Signals) -> None:
        if stop.signal is None:
            stop.signal = number
            loop.call_later(REPEATED_S, restore)
            on_stop()

    def restore() -> None:
        for each in SIGNALS:
            loop.remove_signal_handler(each)

    for each in SIGNALS:
        loop.add_signal_handler(each, received, each)
    try:
        yield stop
    finally:
        restore()


TURN_RECORDS = 100
"""How many records are sent before the loop gets a turn."""


@dataclass(frozen=True, slots=True)
class ProducePlan:
    """What to send."""

    topic: str
    messages: int = -1
    """How many; negative: until a signal."""
    throughput: int = -1
    """Records per second; negative: no limit."""
    value_prefix: int | None = None
    repeating_keys: int | None = None


class VerifiableProducer:
    """One run."""

    def __init__(self, plan: ProducePlan, made: ClientConfig, world: ClientWorld) -> None:
        self._plan = plan
        self._producer: Producer[bytes, bytes] = Producer(config=made.config, world=world, **made.login)
        self._sending: asyncio.Task[None] | None = None
        self.sent = self.acked = 0

    async def run(self) -> int | None:
        """Send until all is sent or a signal comes; returns the exit code."""
        self._start_ms = _now_ms()
        with stopping(self._stop) as stop:
            self._events = Events(asyncio.get_running_loop(), self._stop)
            self._sending = asyncio.ensure_future(self._send_all())
            try:
                await asyncio.wait({self._sending})
                if not self._sending.cancelled():
                    self._sending.result()
            finally:
                await self._close()
        return stop.exit_code if stop.signal is not None else 1 if self.acked < self.sent else None

    def _stop(self) -> None:
        if self._sending is not None:
            self._sending.cancel()

    async def _send_all(self) -> None:
        plan = self._plan
        self._events.print("startup_complete")
        self._events.flush()
        start_s = time.monotonic()
        pace = Pace(plan.throughput, start_s)
        number = 0
        while plan.messages < 0 or number < plan.messages:
            due = pace.due(number, time.monotonic())
            if due == 0:
                await asyncio.sleep(pace.pause_s(number, time.monotonic()))
                continue
            await self._send(number)
            number += 1
            if number % TURN_RECORDS == 0:
                await asyncio.sleep(0)

    async def _send(self, number: int) -> None:
        plan = self._plan
        value = str(number) if plan.value_prefix is None else f"{plan.value_prefix}.{number}"
        key = None if plan.repeating_keys is None else str(number % plan.repeating_keys)
        self.sent += 1
        try:
            await self._producer.send(
                plan.topic,
                value.encode(),
                None if key is None else key.encode(),
                on_delivery=partial(self._delivered, key, value),
            )
        except KafkaError as error:
            self._failed(key, value, error)
            if isinstance(error, AuthenticationError):
                raise  # all others would fail as quickly, without end
        except asyncio.CancelledError:
            self.sent -= 1  # it was still waiting for metadata or memory
            raise

    def _delivered(self, key: str | None, value: str, metadata: RecordMetadata | None, error: KafkaError | None) -> None:
        if error is not None or metadata is None:
            self._failed(key, value, error or KafkaError(-1, "no result"))
            return
        self.acked += 1
        place = {"offset": metadata.offset, "topic": metadata.topic, "partition": metadata.partition}
        self._events.print("producer_send_success", key=key, value=value, **place)

    def _failed(self, key: str | None, value: str, error: KafkaError) -> None:
        what = {"exception": type(error).__name__, "message": str(error)}
        self._events.print("producer_send_error", topic=self._plan.topic, key=key, value=value, **what)

    async def _close(self) -> None:
        """Wait for what is on its way, then print the closing events."""
        await self._producer.close()
        self._events.print("shutdown_complete")
        elapsed_ms = max(1, _now_ms() - self._start_ms)
        self._events.print(
            "tool_data",
            sent=self.sent,
            acked=self.acked,
            target_throughput=self._plan.throughput,
            avg_throughput=1000 * (self.acked / elapsed_ms),
        )
        self._events.flush()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


PRODUCER_EXAMPLES = """\b
Examples:
  ottla verifiable-producer orders --max-messages 1000
  ottla verifiable-producer orders --throughput 100                until SIGTERM or Ctrl-C
  ottla verifiable-producer --topic orders --bootstrap-server localhost:9092 --acks 1 --repeating-keys 10
\b
Events: startup_complete, producer_send_success (key, value, offset, topic, partition), producer_send_error (topic, key, value,
exception, message), shutdown_complete, tool_data (sent, acked, target_throughput, avg_throughput).
\b
Exit codes: 0 done or ended by SIGTERM, 1 some records are not stored, 2 wrong usage, 130 ended by Ctrl-C.
"""


@click.command("verifiable-producer", epilog=PRODUCER_EXAMPLES)
@topic_options
@click.option("--max-messages", type=int, default=-1, show_default=True, help="How many records to send; -1: until a signal.")
@click.option("--throughput", type=int, default=-1, show_default=True, help="Records per second at most; negative: no limit.")
@click.option(
    "--acks", type=click.Choice(["-1", "0", "1"]), default="-1", show_default=True, help="Which replicas must have a record."
)
@click.option("--value-prefix", type=int, metavar="N", help="Send the values N.0, N.1, … in place of 0, 1, …")
@click.option(
    "--repeating-keys", type=click.IntRange(1), metavar="N", help="Send the keys 0 to N-1 in turn.  [default: no keys]"
)
@cluster_options(known=frozenset(PRODUCER.table), old_config_flag="producer")
def verifiable_producer(settings: ClientSettings, name: str | None, topic: str | None, acks: str, **flags: Any) -> int | None:
    """Send the numbers 0, 1, 2, … to TOPIC, and print a JSON event for each that was stored or failed.

    Made for system tests: nothing is retried (unless a setting says so), and SIGTERM ends it with the closing events.
    """
    if flags["throughput"] == 0:
        raise click.UsageError("--throughput 0 would never send anything: give records per second, or -1 for no limit")
    plan = ProducePlan(
        topic=chosen_topic(name, topic, "ottla verifiable-producer orders --max-messages 100"),
        messages=flags["max_messages"],
        throughput=flags["throughput"],
        value_prefix=flags["value_prefix"],
        repeating_keys=flags["repeating_keys"],
    )
    defaults = {"acks": acks, "retries": 0}
    if not {"retries", "enable.idempotence", "transactional.id"} & set(settings.properties):
        defaults["enable.idempotence"] = "false"  # which Kafka's client concludes from retries=0
    made = producer_config(settings, defaults, {})

    async def run() -> int | None:
        return await VerifiableProducer(plan, made, client_world()).run()

    with client_logs_shown():
        return asyncio.run(run())


Bytes = bytes | None
Records: TypeAlias = "dict[TopicPartition, list[ConsumerRecord[Bytes, Bytes]]]"


@dataclass(frozen=True, slots=True)
class ConsumePlan:
    """What to read."""

    topic: str
    messages: int = -1
    """How many; negative: until a signal."""
    poll_records: int = 500
    """max.poll.records."""
    is_verbose: bool = False
    commits: bool = True
    """Whether to commit after each poll."""


class VerifiableConsumer:
    """One run."""

    def __init__(self, plan: ConsumePlan, made: ClientConfig, world: ClientWorld) -> None:
        self._plan = plan
        self._consumer: Consumer[Bytes, Bytes] = Consumer(config=made.config, world=world, **made.login)
        self._consumed = 0

    async def run(self) -> int | None:
        """Read until enough was read or a signal comes; returns the exit code."""
        with stopping(self._requested) as stop:
            self._events = Events(asyncio.get_running_loop(), self._consumer.wakeup)
            try:
                await self._read_all()
            except WakeupError:
                pass  # a signal, or an output without a reader
            finally:
                await self._consumer.close()
                self._events.print("shutdown_complete")
                self._events.flush()
        return stop.exit_code

    def _requested(self) -> None:
        self._events.print("shutdown_requested")
        self._consumer.wakeup()

    async def _read_all(self) -> None:
        plan, events = self._plan, self._events
        events.print("startup_complete")
        events.flush()
        self._consumer.subscribe(
            [plan.topic],
            on_assigned=lambda partitions: events.print("partitions_assigned", partitions=_places(partitions)),
            on_revoked=lambda partitions: events.print("partitions_revoked", partitions=_places(partitions)),
        )
        while plan.messages < 0 or self._consumed < plan.messages:
            left = plan.poll_records if plan.messages < 0 else min(plan.poll_records, plan.messages - self._consumed)
            found = await self._consumer.batches(None, left)
            if not found:
                continue
            offsets = self._show(found)
            if plan.commits:
                await self._commit(offsets)

    def _show(self, found: Records) -> dict[TopicPartition, int]:
        """Print the events of a poll; returns the offsets to commit."""
        summaries: list[dict[str, Any]] = []
        for (topic, partition), records in found.items():
            place = {"topic": topic, "partition": partition}
            if self._plan.is_verbose:
                for each in records:
                    self._events.print("record_data", key=_text(each.key), value=_text(each.value), **place, offset=each.offset)
            offsets = {"minOffset": records[0].offset, "maxOffset": records[-1].offset}
            summaries.append({**place, "count": len(records), **offsets})
        count = sum(map(len, found.values()))
        self._consumed += count
        self._events.print("records_consumed", count=count, partitions=summaries)
        return {each: records[-1].offset + 1 for each, records in found.items()}

    async def _commit(self, offsets: dict[TopicPartition, int]) -> None:
        error = None
        try:
            await self._consumer.commit(offsets)
        except WakeupError:
            await self._commit(offsets)  # there is one wakeup at most
            raise
        except FencedInstanceIdError:
            raise
        except KafkaError as failure:
            error = failure
        shown = [{"topic": topic, "partition": index, "offset": offset} for (topic, index), offset in offsets.items()]
        failed = {} if error is None else {"error": str(error)}
        self._events.print("offsets_committed", offsets=shown, **failed, success=error is None)


def _places(partitions: Iterable[TopicPartition]) -> list[dict[str, Any]]:
    return [{"topic": topic, "partition": index} for topic, index in sorted(partitions)]


def _text(data: Bytes) -> str | None:
    return None if data is None else data.decode("utf-8", "replace")


CONSUMER_EXAMPLES = """\b
Examples:
  ottla verifiable-consumer orders --group-id billing --max-messages 1000
  ottla verifiable-consumer orders --group-id billing --verbose              until SIGTERM or Ctrl-C
  ottla verifiable-consumer orders --group-id billing --group-protocol consumer --group-remote-assignor uniform
\b
Events: startup_complete, partitions_assigned and partitions_revoked (partitions), record_data (with --verbose: key, value,
topic, partition, offset), records_consumed (count, partitions), offsets_committed (offsets, error, success),
shutdown_requested, shutdown_complete.
\b
Exit codes: 0 done or ended by SIGTERM, 1 failed, 2 wrong usage, 130 ended by Ctrl-C.
"""

RANGE = "org.apache.kafka.clients.consumer.RangeAssignor"


@click.command("verifiable-consumer", epilog=CONSUMER_EXAMPLES)
@topic_options
@click.option("--group-id", "--group", "group_id", required=True, metavar="ID", help="The consumer group.")
@click.option(
    "--group-protocol",
    type=click.Choice(["classic", "consumer"], case_sensitive=False),
    default="classic",
    show_default=True,
    help="The group's protocol; consumer is that of KIP-848.",
)
@click.option("--group-remote-assignor", metavar="NAME", help="The broker's assignor, with --group-protocol consumer.")
@click.option("--group-instance-id", metavar="ID", help="Makes a static member.")
@click.option("--max-messages", type=int, default=-1, show_default=True, help="How many records to read; -1: until a signal.")
@click.option("--session-timeout", type=click.IntRange(1), metavar="MS", help="session.timeout.ms, for the classic protocol.")
@click.option("--verbose", is_flag=True, help="Print an event for each record.")
@click.option("--enable-autocommit", is_flag=True, help="Commit automatically, not after each poll.")
@click.option(
    "--reset-policy",
    default="earliest",
    show_default=True,
    metavar="earliest|latest|none",
    help="Where to start without a committed offset.",
)
@click.option(
    "--assignment-strategy", default=RANGE, metavar="CLASS", help="The assignor of the classic protocol.  [default: range]"
)
@cluster_options(known=frozenset(CONSUMER.table), old_config_flag="consumer")
def verifiable_consumer(settings: ClientSettings, name: str | None, topic: str | None, **flags: Any) -> int | None:
    """Read TOPIC as a member of a group, and print a JSON event for each step: assignments, records, commits.

    Made for system tests. SIGTERM ends it with the closing events.
    """
    chosen = chosen_topic(name, topic, "ottla verifiable-consumer orders --group-id billing")
    is_classic = flags["group_protocol"].lower() == "classic"
    given = {
        "group.id": flags["group_id"],
        "group.instance.id": flags["group_instance_id"],
        "enable.auto.commit": "true" if flags["enable_autocommit"] else "false",
        "auto.offset.reset": flags["reset_policy"],
        "session.timeout.ms": flags["session_timeout"],
    }
    if is_classic:
        given["partition.assignment.strategy"] = flags["assignment_strategy"]
    else:
        given |= {"group.protocol": "consumer", "group.remote.assignor": flags["group_remote_assignor"]}
    made = consumer_config(settings, {}, given)
    plan = ConsumePlan(
        topic=chosen,
        messages=flags["max_messages"],
        poll_records=whole_number("max.poll.records", str(made.config.get("max.poll.records", 500)), 1),
        is_verbose=flags["verbose"],
        commits=not flags["enable_autocommit"],
    )

    async def run() -> int | None:
        return await VerifiableConsumer(plan, made, client_world()).run()

    with client_logs_shown():
        return asyncio.run(run())
