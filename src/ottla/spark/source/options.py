"""The options of the source, checked and typed. Names and meanings are those of Spark's own Kafka source."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ottla import TopicPartition
from ottla.config.client import consumer_settings
from ottla.errors import ConfigError
from ottla.spark.errors import SparkOptionError
from ottla.spark.options import Options
from ottla.spark.registry.options import NO_REGISTRY, RegistryOptions, registry_options
from ottla.spark.registry.options import SOURCE_NAMES as REGISTRY_NAMES
from ottla.spark.source.offsets import EARLIEST, FROM_EARLIEST, LATEST, TO_LATEST, Offsets, Where, parse_numbers, read_where

NAMES = (
    "subscribe",
    "subscribePattern",
    "assign",
    "startingOffsets",
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "endingOffsets",
    "endingTimestamp",
    "endingOffsetsByTimestamp",
    "backfillEndingOffsets",
    "failOnDataLoss",
    "minPartitions",
    "maxRecordsPerPartition",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "includeHeaders",
    "groupIdPrefix",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    *REGISTRY_NAMES,
)
REFUSED = {
    "key.deserializer": "keys are binary: use key.format, or decode them with DataFrame functions",
    "value.deserializer": "values are binary: use value.format, or decode them with DataFrame functions",
    "auto.offset.reset": "say where to start with startingOffsets",
    "enable.auto.commit": "Spark keeps the offsets in its checkpoint",
    "interceptor.classes": "interceptors could change records unseen",
}
DEFAULTS = {
    # One answer is one Arrow batch: small ones cost a round trip and a call into Spark each.
    "max.partition.fetch.bytes": str(8 << 20),
    "allow.auto.create.topics": "false",
    "enable.metrics.push": "false",
    "client.id": "ottla-spark",
}
"""Settings of the consumer in which the source differs from the client. Users may set them."""


@dataclass(frozen=True)
class SourceOptions:
    """What a reader was asked for."""

    client: dict[str, str]
    """Settings of the consumer, by Kafka's names."""
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[TopicPartition, ...] = ()
    starting: Where = FROM_EARLIEST
    ending: Where = TO_LATEST
    stream_end: Offsets | None = None
    """Where a stream ends for good, of a backfill. Partitions that are not in it are not read."""
    fail_on_data_loss: bool = True
    partitions_min: int | None = None
    records_per_task_max: int | None = None
    offsets_per_trigger_max: int | None = None
    offsets_per_trigger_min: int | None = None
    trigger_delay_max_ms: int = 15 * 60 * 1000
    has_headers: bool = False
    poll_timeout_ms: int = 120_000
    """How long a task waits for records that must be there."""
    lookup_attempts: int = 3
    """How often the driver asks again, for default.api.timeout.ms each, while no broker answers."""
    lookup_interval_ms: int = 1000
    registry: RegistryOptions = NO_REGISTRY

    @property
    def named_topics(self) -> tuple[str, ...]:
        """The topics that are read; none if a pattern says which."""
        return self.topics or tuple(dict.fromkeys(each.topic for each in self.partitions))

    @property
    def bootstrap_servers(self) -> str:
        """The address of the cluster, for messages."""
        return self.client["bootstrap.servers"]


def source_options(given: Mapping[str, str], *, is_streaming: bool) -> SourceOptions:
    """The options, or a `SparkOptionError` that names the one to change."""
    options = Options(given, NAMES, "source")
    selection = options.given("subscribe", "subscribePattern", "assign")
    client = _client(options)
    if len(selection) != 1:
        found = " and ".join(selection) or "none of them"
        verb = "is" if len(selection) < 2 else "are"
        raise SparkOptionError(
            f"give one of subscribe, subscribePattern and assign, to say which topics to read: {found} {verb} given"
        )
    if is_streaming:
        ends = options.given("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp")
        if ends:
            raise SparkOptionError(f"{ends[0]} is for batch reads: a stream has no end (trigger(availableNow=True) has one)")
    stream_end = options.get("backfillEndingOffsets")
    made = SourceOptions(
        client=client,
        topics=_topics(options),
        pattern=_pattern(options),
        partitions=_partitions(options),
        starting=read_where(options, "starting", LATEST if is_streaming else EARLIEST),
        ending=read_where(options, "ending", LATEST),
        stream_end=None if stream_end is None else parse_numbers("backfillEndingOffsets", stream_end, "an offset"),
        fail_on_data_loss=options.boolean("failOnDataLoss", True),
        partitions_min=options.whole_number("minPartitions"),
        records_per_task_max=options.whole_number("maxRecordsPerPartition"),
        offsets_per_trigger_max=options.whole_number("maxOffsetsPerTrigger"),
        offsets_per_trigger_min=options.whole_number("minOffsetsPerTrigger"),
        trigger_delay_max_ms=options.duration_ms("maxTriggerDelay", 15 * 60 * 1000),
        has_headers=options.boolean("includeHeaders", False),
        poll_timeout_ms=options.whole_number("kafkaConsumer.pollTimeoutMs") or 120_000,
        lookup_attempts=options.whole_number("fetchOffset.numRetries") or 3,
        lookup_interval_ms=options.whole_number("fetchOffset.retryIntervalMs", 0) or 1000,
        registry=registry_options(options),
    )
    _check_together(made)
    return made


def check_source_options(given: Mapping[str, str]) -> SourceOptions:
    """The options, or what is wrong with them whether they are for a batch or a stream, which Spark does not tell at first."""
    try:
        return source_options(given, is_streaming=True)
    except SparkOptionError:
        return source_options(given, is_streaming=False)


def _client(options: Options) -> dict[str, str]:
    client = DEFAULTS | options.kafka
    if not client.get("bootstrap.servers"):
        raise SparkOptionError("kafka.bootstrap.servers is missing: give the address of a broker, such as localhost:9092")
    for name, reason in REFUSED.items():
        if name in client:
            raise SparkOptionError(f"kafka.{name} cannot be set: {reason}")
    try:
        consumer_settings(None, client, {"enable_auto_commit": False})
    except ConfigError as problem:
        raise SparkOptionError(f"an option that begins with kafka. is wrong: {problem}") from None
    return client


def _check_together(options: SourceOptions) -> None:
    least, most = options.offsets_per_trigger_min, options.offsets_per_trigger_max
    if least is not None and most is not None and least > most:
        raise SparkOptionError(f"minOffsetsPerTrigger is {least}, more than maxOffsetsPerTrigger, which is {most}")
    for where in (options.starting, options.ending):
        for each in [*(where.offsets or ()), *(where.times_ms or ())]:
            if (options.topics and each.topic not in options.topics) or (options.partitions and each not in options.partitions):
                chosen = "subscribe" if options.topics else "assign"
                raise SparkOptionError(f"{where.option} names {each}, which {chosen} does not: name what is read, no more")


def _topics(options: Options) -> tuple[str, ...]:
    text = options.get("subscribe")
    if text is None:
        return ()
    found = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not found:
        raise SparkOptionError("subscribe names no topic: give one, or several with commas between them")
    return found


def _pattern(options: Options) -> str | None:
    text = options.get("subscribePattern")
    if text is None:
        return None
    text = text.strip()
    if not text:
        raise SparkOptionError("subscribePattern is empty: give a regular expression that is searched for in topic names")
    try:
        re.compile(text)
    except re.error as problem:
        raise SparkOptionError(f"subscribePattern {text!r} is no regular expression: {problem}") from None
    return text


def _partitions(options: Options) -> tuple[TopicPartition, ...]:
    text = options.get("assign")
    if text is None:
        return ()
    example = 'assign must be JSON such as {"orders": [0, 1]}'
    try:
        found: Any = json.loads(text)
    except ValueError as problem:
        raise SparkOptionError(f"{example}; {text!r} is no JSON: {problem}") from None
    if not isinstance(found, dict) or not all(isinstance(numbers, list) for numbers in found.values()):
        raise SparkOptionError(f"{example}, not {text}")
    made = [TopicPartition(topic, number) for topic, numbers in found.items() for number in numbers]
    if not made or not all(type(each.partition) is int and each.partition >= 0 for each in made):
        raise SparkOptionError(f"{example}, not {text}")
    return tuple(dict.fromkeys(made))
