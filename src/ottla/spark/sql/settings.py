"""`Settings`: what SET has changed, checked when it is set. Pure.

| setting | meaning |
|---|---|
| `auto.offset.reset` | where live queries begin: `earliest` or `latest` (the default) |
| `bad.records` | records that do not fit the columns: `drop` (the default; they are counted) or `fail` |
| `kafka.*` | settings of the consumers and producers, by Kafka's names |
| `schema.registry.url` | the schema registry of `format='avro'`; else the one of OTTLA_SCHEMA_REGISTRY |
| `startingOffsets`, `maxOffsetsPerTrigger`, … | options of `format("ottla")` as a source |
| `spark.*` | settings of Spark |
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla.config.client.kinds import CONSUMER, PRODUCER
from ottla.errors.texts import near_words
from ottla.spark.errors import SparkOptionError
from ottla.spark.options import KAFKA_PREFIX
from ottla.spark.registry.options import SOURCE_NAMES as REGISTRY_NAMES
from ottla.spark.registry.options import Address, client_of
from ottla.spark.source.options import NAMES, REFUSED, source_options
from ottla.spark.sql.errors import SqlError

RESET, BAD = "auto.offset.reset", "bad.records"
REGISTRY = "schema.registry.url"
WORDS = {RESET: ("earliest", "latest"), BAD: ("drop", "fail")}
_NOT_SET = ("subscribe", "subscribePattern", "assign", "includeHeaders", *REGISTRY_NAMES)
SOURCE_NAMES = {name.lower(): name for name in NAMES if name not in _NOT_SET}
PER_TRIGGER_DEFAULT = "50000"
"""Rows of a live query's micro-batch: they are collected before they are shown."""


class Settings:
    """The settings of one shell or one run."""

    def __init__(self, client: Mapping[str, str], values: Mapping[str, str] | None = None, registry: str | None = None) -> None:
        self.client = dict(client)
        """Settings of the clients that the command line and the environment gave, by Kafka's names."""
        self.values: dict[str, str] = dict(values or {})
        self._registry = registry

    def copy(self) -> Settings:
        """The same settings, to try statements on."""
        return Settings(self.client, self.values, self._registry)

    def set(self, name: str, value: str) -> str:
        """Change a setting, or raise what is wrong with it. Returns the setting's full name."""
        known = self.full_name(name)
        if known in WORDS and value.lower() not in WORDS[known]:
            raise SqlError(f"{known} is {value!r}: it must be {' or '.join(WORDS[known])}")
        changed = {**self.values, known: value.lower() if known in WORDS else value}
        self._check(changed, known)
        self.values = changed
        return known

    def unset(self, name: str) -> str:
        """Go back to the default of a setting."""
        known = self.full_name(name)
        if known not in self.values:
            there = f"set are {', '.join(sorted(self.values))}" if self.values else "nothing is set"
            raise SqlError(f"{name} is not set: {there}")
        del self.values[known]
        return known

    def full_name(self, name: str) -> str:
        """The name as it is kept; raises for a name that there is not."""
        lower = name.lower()
        if lower in WORDS or lower == REGISTRY or lower.startswith("spark."):
            return name if lower.startswith("spark.") else lower
        if lower in SOURCE_NAMES:
            return SOURCE_NAMES[lower]
        clients = {KAFKA_PREFIX + each for each in (*CONSUMER.table, *PRODUCER.table)}
        if lower in clients:
            short = lower.removeprefix(KAFKA_PREFIX)
            if short in REFUSED:
                hint = f"write SET '{RESET}'" if short == RESET else REFUSED[short]
                raise SqlError(f"{name} cannot be set: {hint}")
            return lower
        near = near_words(lower, [*WORDS, REGISTRY, *SOURCE_NAMES, *clients])
        hint = (
            f"did you mean {SOURCE_NAMES.get(near[0], near[0])}?"
            if near
            else f"there are {', '.join(WORDS)}, {REGISTRY}, kafka.* and spark.*"
        )
        raise SqlError(f"{name} is no setting: {hint}")

    @property
    def spark(self) -> dict[str, str]:
        """The settings of Spark."""
        return {name: value for name, value in self.values.items() if name.startswith("spark.")}

    @property
    def registry(self) -> str | None:
        """The address of the schema registry, if there is one."""
        return self.values.get(REGISTRY) or self._registry

    @property
    def bad_records(self) -> str:
        """`drop` or `fail`."""
        return self.values.get(BAD, "drop")

    def starts_at(self, is_live: bool) -> str:
        """Words for where a query begins, for a note under its result."""
        for name in ("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets"):
            if name in self.values:
                return f"{name}={self.values[name]}"
        return self.values.get(RESET, "latest") if is_live else "earliest"

    def source(self, topic: str, is_live: bool) -> dict[str, str]:
        """The options of `format("ottla")` to read a topic with."""
        options = {KAFKA_PREFIX + name: value for name, value in self._client(self.values, CONSUMER.table).items()}
        options |= {name: value for name, value in self.values.items() if name in SOURCE_NAMES.values()}
        options["subscribe"] = topic
        if is_live:
            options.setdefault("maxOffsetsPerTrigger", PER_TRIGGER_DEFAULT)
            if not any(name.startswith("starting") for name in options):
                options["startingOffsets"] = self.values.get(RESET, "latest")
            for name in ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"):
                options.pop(name, None)
        elif options.get("startingOffsets", "").lower() == "latest":
            del options["startingOffsets"]  # for live queries: it would leave a batch nothing to read
        return options

    def sink(self, topic: str) -> dict[str, str]:
        """The options of `format("ottla")` to write a topic with."""
        options = {KAFKA_PREFIX + name: value for name, value in self._client(self.values, PRODUCER.table).items()}
        return {**options, "topic": topic}

    def _client(self, values: Mapping[str, str], table: object) -> dict[str, str]:
        given = {name.removeprefix(KAFKA_PREFIX): value for name, value in values.items() if name.startswith(KAFKA_PREFIX)}
        return {name: value for name, value in {**self.client, **given}.items() if name in table}  # type: ignore[operator]

    def _check(self, values: Mapping[str, str], name: str) -> None:
        if name.startswith("spark.") or name in WORDS:
            return
        if name == REGISTRY:
            try:
                client_of(Address(values[name]))
            except SparkOptionError as error:
                raise SqlError(str(error)) from None
            return
        tried = Settings({"bootstrap.servers": "localhost:9092"} | self.client, values)
        try:
            source_options(tried.source("topic", name.startswith("max")), is_streaming=not name.startswith("ending"))
        except SparkOptionError as error:
            if "names" not in str(error):  # startingOffsets of a topic that is not known yet
                raise SqlError(str(error)) from None
