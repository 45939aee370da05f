"""`sql`: runs statements in the shared Spark session and keeps what they show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from ottla import Producer
from ottla.cli.common.settings import build_settings
from ottla.cli.sql.session import TopicsOfCluster
from ottla.spark.sql.catalog import Catalog
from ottla.spark.sql.lexer import split_statements
from ottla.spark.sql.parser import parse
from ottla.spark.sql.runner import Runner
from ottla.spark.sql.screen import Shown
from ottla.spark.sql.settings import Settings
from ottla.testing import Broker


@dataclass
class Kept:
    """A screen that keeps what it is given."""

    rows_max: int | None = None
    columns: list[str] = field(default_factory=list)
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    on_batch: Callable[[int], object] = lambda number: None

    def table(self, columns: Sequence[Shown], rows: Iterable[Sequence[Any]]) -> None:
        self.columns = [each.name for each in columns]
        self.rows = [tuple(row) for row in rows]

    def live(self, columns: Sequence[Shown], batches: Iterator[Sequence[Sequence[Any]]]) -> int:
        self.columns = [each.name for each in columns]
        self.rows = []
        for number, rows in enumerate(batches):
            self.rows += [tuple(row) for row in rows]
            self.on_batch(number)
        return len(self.rows)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def warn(self, text: str) -> None:
        self.warnings.append(text)


class Sql:
    """A runner as the shell has it."""

    def __init__(self, spark: Any, broker: Broker) -> None:
        self.screen = Kept()
        self.broker = broker
        settings = build_settings(broker.bootstrap_servers, {})
        self.runner = Runner(
            catalog=Catalog(),
            settings=Settings(settings.properties),
            cluster=TopicsOfCluster(settings),
            screen=self.screen,
            start_spark=lambda settings: spark,
            is_shell=True,
        )

    def __call__(self, text: str) -> list[tuple[Any, ...]]:
        self.screen.notes.clear()
        self.screen.warnings.clear()
        for cut in split_statements(text):
            self.runner.run(parse(cut.text))
        return self.screen.rows

    def send(self, topic: str, *pairs: tuple[str | None, str | None]) -> None:
        """Store records with these keys and values, in this order."""
        with Producer(self.broker.bootstrap_servers, key_serializer="str", value_serializer="str") as producer:
            for key, value in pairs:
                producer.send(topic, value, key=key).result(30)


@pytest.fixture
def sql(spark: Any, shared_broker: Broker) -> Iterator[Sql]:
    made = Sql(spark, shared_broker)
    yield made
    made.runner.close()
