"""`ottla perf produce`: sends records, and measures how many per second are stored and how long that takes."""

from __future__ import annotations

import random
import re
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import click

from ottla.cli.common.clients import ClientConfig, client_logs_shown, producer_config
from ottla.cli.common.connection import client_world
from ottla.cli.common.options import cluster_options
from ottla.cli.common.output import print_json, warn
from ottla.cli.common.settings import ClientSettings
from ottla.cli.perf.command import (
    INTERRUPTED,
    MB,
    Pace,
    Progress,
    check_topic,
    chosen_topic,
    finite,
    finite_metrics,
    interval_option,
    metrics_option,
    output_options,
    percentile,
    print_figures,
    print_metrics,
    ratio,
    topic_options,
)
from ottla.client.producer.deliveries import Deliveries
from ottla.client.producer.sync import Producer
from ottla.client_core.producer.batch import ProducerBatch
from ottla.config.client.kinds import PRODUCER
from ottla.errors import OttlaError
from ottla.errors.texts import counted

EXAMPLES = """\b
Examples:
  ottla perf produce load                                        1,000,000 records of 100 bytes, as fast as possible
  ottla perf produce load --num-records 50000 --record-size 1000 --throughput 10000
  ottla perf produce load --payload-file orders.txt --command-property compression.type=zstd linger.ms=20
  ottla perf produce load --transaction-duration-ms 500          in transactions
  ottla perf produce --topic load --num-records 1000 --record-size 100 --throughput -1 \\
      --producer-props bootstrap.servers=localhost:9092 acks=1   Kafka's spelling
\b
Exit codes: 0 all records are stored, 1 some are not, 2 wrong usage, 130 interrupted.
"""

CLIENT_ID = "perf-producer-client"
TRANSACTION_MS = 3000
RECORD_SIZE = 100
_CLOSE_S = 5.0
_ERRORS_SHOWN_MAX = 5


@click.command("produce", epilog=EXAMPLES)
@topic_options
@click.option("--num-records", type=click.IntRange(1), default=1_000_000, show_default=True, help="How many records to send.")
@click.option(
    "--record-size", type=click.IntRange(1), metavar="BYTES", help=f"Size of random values.  [default: {RECORD_SIZE}]"
)
@click.option("--payload-file", metavar="FILE", help="Choose each value at random from the parts of this file.")
@click.option(
    "--payload-delimiter",
    default="\\n",
    show_default=True,
    metavar="REGEX",
    help="What is between the parts of --payload-file.",
)
@click.option("--payload-monotonic", is_flag=True, help="Send the numbers 0, 1, 2, … as values.")
@click.option(
    "--throughput", type=float, default=-1, show_default=True, metavar="N", help="Records per second at most; -1: no limit."
)
@click.option("--transactional-id", metavar="ID", help="Send in transactions, with this id.  [default: a random one]")
@click.option(
    "--transaction-duration-ms",
    type=click.IntRange(1),
    metavar="MS",
    help=f"Send in transactions, and commit each after this time.  [default: {TRANSACTION_MS}]",
)
@click.option(
    "--warmup-records",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Leave the first records out of a second summary, that of the steady state.",
)
@interval_option
@metrics_option
@output_options
@cluster_options(known=frozenset(PRODUCER.table), old_config_flag="producer", property_flags=("--producer-props",))
def produce(settings: ClientSettings, name: str | None, topic: str | None, as_json: bool, **flags: Any) -> int | None:
    """Send records to TOPIC, and show how many per second were stored and how long that took.

    A latency is the time from `send` until the record is acknowledged: waiting in the producer is part of it, so without
    --throughput it mostly shows how long records wait for those before them. All producer settings of Kafka are taken by
    --command-property and --command-config.
    """
    chosen = chosen_topic(name, topic, "ottla perf produce load --num-records 100000")
    transaction_ms = _transaction_ms(settings, flags)
    if flags["warmup_records"] >= flags["num_records"]:
        raise click.UsageError("--warmup-records must be less than --num-records, or no record is left for the steady state")
    if flags["throughput"] == 0:
        raise click.UsageError("--throughput 0 would never send anything: give records per second, or -1 for no limit")
    plan = SendPlan(
        topic=chosen,
        records=flags["num_records"],
        payloads=_payloads(flags),
        throughput=flags["throughput"],
        warmup=flags["warmup_records"],
        transaction_ms=transaction_ms,
    )
    made = _config(settings, flags, transaction_ms is not None)
    check_topic(settings, chosen)
    return _run(plan, made, as_json, flags["interval_ms"], flags["print_metrics"])


def _payloads(flags: Mapping[str, Any]) -> Payloads:
    given = [flag for flag in ("record_size", "payload_file", "payload_monotonic") if flags[flag]]
    if len(given) > 1:
        named = " and ".join(f"--{flag.replace('_', '-')}" for flag in given)
        raise click.UsageError(f"{named} both say what to send: choose one")
    if flags["payload_monotonic"]:
        return Counted()
    if flags["payload_file"] is None:
        return random_payloads(flags["record_size"] or RECORD_SIZE, flags["num_records"])
    return file_payloads(flags["payload_file"], flags["payload_delimiter"], flags["num_records"])


def _transaction_ms(settings: ClientSettings, flags: Mapping[str, Any]) -> int | None:
    given: int | None = flags["transaction_duration_ms"]
    is_wanted = given is not None or flags["transactional_id"] is not None or "transactional.id" in settings.properties
    return (given or TRANSACTION_MS) if is_wanted else None


def _config(settings: ClientSettings, flags: Mapping[str, Any], is_transactional: bool) -> ClientConfig:
    defaults = {"client.id": CLIENT_ID}
    if is_transactional:
        defaults["transactional.id"] = f"performance-producer-{uuid.uuid4()}"
    return producer_config(settings, defaults, {"transactional.id": flags["transactional_id"]})


def _run(plan: SendPlan, made: ClientConfig, as_json: bool, interval_ms: int, with_metrics: bool) -> int | None:
    progress = Progress(plan.records, not as_json, time.monotonic(), interval_ms)
    interrupted: BaseException | None = None
    with client_logs_shown():
        producer: Producer[bytes, bytes] = Producer(config=made.config, world=client_world(), **made.login)
        try:
            producer.partitions_for(plan.topic)
            if plan.transaction_ms is not None:
                producer.init_transactions()
            sending = Sending(producer, plan, progress.show)
            try:
                sending.run()
            except (KeyboardInterrupt, OttlaError) as error:
                interrupted = error  # what was stored before is shown all the same
            progress.clear()
            _print_results(sending, plan, as_json, producer.metrics() if with_metrics else None)
        finally:
            progress.clear()
            producer.close(None if interrupted is None else _CLOSE_S)
    if isinstance(interrupted, OttlaError):
        raise interrupted
    return INTERRUPTED if interrupted is not None else _failed(sending)


def _failed(sending: Sending) -> int | None:
    for text, count in sending.failures.most_common(_ERRORS_SHOWN_MAX):
        warn(f"{counted(count, 'record')} {'was' if count == 1 else 'were'} not stored: {text}")
    return 1 if sending.failures else None


def _print_results(sending: Sending, plan: SendPlan, as_json: bool, metrics: Mapping[str, Mapping[str, float]] | None) -> None:
    now_s = time.monotonic()
    statistics = [each for each in (sending.all, sending.steady) if each is not None]
    if as_json:
        found: dict[str, Any] = {"topic": plan.topic, **sending.all.as_json(now_s), "failed": sending.failures.total()}
        if sending.steady is not None:
            found["steadyState"] = sending.steady.as_json(now_s)
        print_json(found | ({} if metrics is None else {"metrics": finite_metrics(metrics)}))
        return
    print_figures(f"Sent to {plan.topic}", HEADINGS, [each.row(now_s) for each in statistics])
    if metrics is not None:
        print_metrics(metrics)


POOL_BYTES = 8 * 1024 * 1024
POOL_VALUES_MAX = 50_000
_LETTERS = bytes(ord("A") + number % 26 for number in range(256))


class Payloads(Protocol):
    """A source of values."""

    @property
    def average_bytes(self) -> int:
        """About how long a value is."""
        ...

    def take(self, count: int) -> Sequence[bytes]:
        """The next values: at least one, at most `count`."""
        ...


class Pool:
    """Values that are taken in turn, from the first again after the last.

    They are made before the clock starts. The pool is much larger than a batch, so that compression finds no more repetition
    than if each value were random.
    """

    def __init__(self, values: Sequence[bytes]) -> None:
        self._values = values
        self._next = 0
        self.average_bytes = sum(map(len, values)) // len(values)

    def take(self, count: int) -> Sequence[bytes]:
        start = self._next
        taken = self._values[start : start + count]
        self._next = (start + len(taken)) % len(self._values)
        return taken


class Counted:
    """Numbers from 0 on, as text."""

    average_bytes = 8

    def __init__(self) -> None:
        self._next = 0

    def take(self, count: int) -> Sequence[bytes]:
        first = self._next
        self._next += count
        return [b"%d" % number for number in range(first, first + count)]


def random_payloads(size: int, count: int) -> Pool:
    """Values of `size` random capital letters, for sending `count` records. The same in every run, as Kafka's."""
    chance = random.Random(0)
    values = min(count, POOL_VALUES_MAX, max(1, POOL_BYTES // size))
    letters = chance.randbytes(values * size).translate(_LETTERS)
    return Pool([letters[start : start + size] for start in range(0, len(letters), size)])


def file_payloads(path: str, delimiter: str, count: int) -> Pool:
    """Values chosen at random from the parts of a file.

    `delimiter` is a regular expression, as in Kafka's tool. Empty parts at the end are left out, and bytes stay as they are.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise click.UsageError(f"--payload-file {path} cannot be read: {error.strerror}") from None
    if not content:
        raise click.UsageError(f"--payload-file {path} is empty: write payloads into it, one a line")
    try:
        parts = re.split(delimiter.encode(), content)
    except re.error as error:
        raise click.UsageError(f"--payload-delimiter {delimiter!r} is not a regular expression: {error}") from None
    while parts and not parts[-1]:
        parts.pop()
    if not parts:
        raise click.UsageError(f"--payload-file {path} has only delimiters: write payloads between them")
    chosen = random.Random(0).choices(parts, k=min(count, POOL_VALUES_MAX))
    return Pool(chosen)


SHARES = (0.5, 0.95, 0.99, 0.999)
HEADINGS = ("Records", "#Count", "#Records/s", "#MB/s", "#Avg ms", "#Max", "#p50", "#p95", "#p99", "#p99.9")


class SendStatistics:
    """Records, bytes and latencies of a run, or of its steady state. Pure.

    A latency is that of many records at once: those of one batch that were sent together. Percentiles are exact, from a
    histogram of milliseconds.
    """

    def __init__(self, start_s: float, is_steady: bool = False) -> None:
        self.start_s = start_s
        self.is_steady = is_steady
        self.records = 0
        self.size_bytes = 0
        self.histogram: Counter[int] = Counter()
        """How many records had which latency, in milliseconds."""

    def add(self, records: int, size_bytes: int, latency_ms: int) -> None:
        """Count records that were stored `latency_ms` after they were sent."""
        self.records += records
        self.size_bytes += size_bytes
        self.histogram[latency_ms] += records

    def rates(self, now_s: float) -> tuple[float, float]:
        """(records, megabytes) per second."""
        seconds = now_s - self.start_s
        return ratio(self.records, seconds), ratio(self.size_bytes / MB, seconds)

    def latencies_ms(self) -> tuple[float, int, list[int]]:
        """The average, the maximum and the percentiles of `SHARES`."""
        average = ratio(sum(latency * count for latency, count in self.histogram.items()), self.records)
        return average, max(self.histogram, default=0), [percentile(self.histogram, share) for share in SHARES]

    def row(self, now_s: float) -> tuple[object, ...]:
        """The cells of a table, under `HEADINGS`."""
        records_s, mb_s = self.rates(now_s)
        average, largest, percentiles = self.latencies_ms()
        name = "steady state" if self.is_steady else "all"
        return (name, f"{self.records:,}", f"{records_s:,.0f}", f"{mb_s:,.1f}", f"{average:.1f}", largest, *percentiles)

    def as_json(self, now_s: float) -> dict[str, Any]:
        records_s, mb_s = self.rates(now_s)
        average, largest, (p50, p95, p99, p999) = self.latencies_ms()
        return {
            "records": self.records,
            "bytes": self.size_bytes,
            "seconds": finite(now_s - self.start_s),
            "recordsPerSec": finite(records_s),
            "mbPerSec": finite(mb_s),
            "latencyMs": {"avg": finite(average), "max": largest, "p50": p50, "p95": p95, "p99": p99, "p999": p999},
        }


GROUP_RECORDS_MAX, GROUP_BYTES_MAX = 500, 64 * 1024
_BATCH_OF = attrgetter("batch")

BytesProducer = Producer[bytes, bytes]


@dataclass(frozen=True, slots=True)
class SendPlan:
    """What to send, and how fast."""

    topic: str
    records: int
    payloads: Payloads
    throughput: float = -1
    """Records per second; negative for no limit."""
    warmup: int = 0
    """How many of the first records do not belong to the steady state."""
    transaction_ms: int | None = None
    """How long a transaction lasts; None: no transactions."""


class _Part(NamedTuple):
    """Records of one group in one batch."""

    records: int
    size_bytes: int
    start_s: float
    is_steady: bool


class Sending:
    """The loop: sends values in groups, and learns from each batch when its records were stored.

    `progress` gets (records, bytes, now) after each group. No Python code runs per record: `send_many` encodes a group, all
    records of a group have the time of its call as their start, and a batch is looked at once, when it is done. Groups are
    small, so that the start of none is off by a millisecond. The producer's thread only notes when a batch was done;
    everything else here runs in the calling thread.
    """

    def __init__(
        self,
        producer: BytesProducer,
        plan: SendPlan,
        progress: Callable[[int, int, float], object],
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._producer = producer
        self._plan = plan
        self._progress = progress
        self._now_s = now_s
        self._parts: dict[ProducerBatch, list[_Part]] = {}
        self._done: deque[tuple[ProducerBatch, float]] = deque()
        self._sent = 0
        self._group_records = max(1, min(GROUP_RECORDS_MAX, GROUP_BYTES_MAX // max(1, plan.payloads.average_bytes)))
        self.all = SendStatistics(now_s())
        self.steady: SendStatistics | None = None
        self.failures: Counter[str] = Counter()
        """How many records failed with which error."""

    def run(self) -> None:
        """Send everything, and wait until it is stored or has failed."""
        plan = self._plan
        self.all = SendStatistics(self._now_s())
        pace = Pace(plan.throughput, self.all.start_s)
        transaction_start_s = None
        while self._sent < plan.records:
            due = pace.due(self._sent, self._now_s())
            if due == 0:
                self._collect()
                time.sleep(pace.pause_s(self._sent, self._now_s()))
                continue
            if plan.transaction_ms is not None and transaction_start_s is None:
                self._producer.begin_transaction()
                transaction_start_s = self._now_s()
            start_s = self._send(due)
            if transaction_start_s is not None and (start_s - transaction_start_s) * 1000 >= (plan.transaction_ms or 0):
                self._producer.commit_transaction()
                transaction_start_s = None
            self._collect()
        if transaction_start_s is not None:
            self._producer.commit_transaction()
        self.wait()

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait until everything that was sent is stored or has failed."""
        self._producer.flush(timeout_s)
        now_s = self._now_s()
        self._done.extend((batch, now_s) for batch in self._parts if batch.is_done)
        self._collect()

    def _send(self, due: int | None) -> float:
        """Send one group; returns when."""
        plan = self._plan
        end = plan.warmup if self._sent < plan.warmup else plan.records
        room = min(self._group_records, end - self._sent, GROUP_RECORDS_MAX if due is None else due)
        values = plan.payloads.take(room)
        if plan.warmup and self._sent == plan.warmup and self.steady is None:
            self.steady = SendStatistics(self._now_s(), is_steady=True)
        start_s = self._now_s()
        handles = self._producer.send_many(plan.topic, values)
        self._sent += len(values)
        self._note(handles, values, start_s)
        return start_s

    def _note(self, handles: Deliveries, values: Sequence[bytes], start_s: float) -> None:
        """Remember which records went into which batches. They are in order, so each batch has a range of `values`."""
        at = 0
        for batch, count in Counter(map(_BATCH_OF, handles)).items():
            size_bytes = sum(map(len, values[at : at + count]))
            at += count
            part = _Part(count, size_bytes, start_s, self.steady is not None)
            known = self._parts.get(batch)
            if known is not None:
                known.append(part)
                continue
            self._parts[batch] = [part]
            batch.waiters.append(self._stamper(batch))
            if batch.is_done:  # perhaps before it had the waiter
                self._done.append((batch, self._now_s()))

    def _stamper(self, batch: ProducerBatch) -> Callable[[], None]:
        """Called in the producer's thread. Appending to a deque is atomic."""
        return lambda: self._done.append((batch, self._now_s()))

    def _collect(self) -> None:
        """Count the records of batches that are done, and report if it is time."""
        while self._done:
            batch, done_s = self._done.popleft()
            parts = self._parts.pop(batch, None)
            if parts is None:
                continue  # noted twice
            if batch.error is None and not batch.parts:
                for part in parts:
                    self._count(part, done_s)
            else:
                self._count_each(batch, parts, done_s)
        now_s = self._now_s()
        self._progress(self.all.records, self.all.size_bytes, now_s)

    def _count(self, part: _Part, done_s: float) -> None:
        latency_ms = int((done_s - part.start_s) * 1000)
        self.all.add(part.records, part.size_bytes, latency_ms)
        if part.is_steady and self.steady is not None:
            self.steady.add(part.records, part.size_bytes, latency_ms)

    def _count_each(self, batch: ProducerBatch, parts: list[_Part], done_s: float) -> None:
        """Count a batch that failed or was split: some of its records may be stored."""
        index = 0
        for part in parts:
            errors = [error for each in range(part.records) if (error := batch.error_of(index + each)) is not None]
            index += part.records
            self.failures.update(map(str, errors))
            stored = part.records - len(errors)
            if stored:
                self._count(part._replace(records=stored, size_bytes=part.size_bytes * stored // part.records), done_s)
