"""`Run`: what the measurements of a run share: a Spark session with Spark's own connector, a broker, topics with records."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bench.clients.__main__ import finish_child, start_child
from bench.clients.broker import BenchBroker
from bench.side_by_side.figures import Figure, Goal, Results
from tests.support.servers.spark_connector import connector_jars

PARTITIONS = 4


def label(size: int) -> str:
    """How a row names a size."""
    return "1 KB" if size == 1000 else f"{size} B"


@dataclass
class Run:
    """Handed to every measurement."""

    spark: Any
    broker: BenchBroker
    results: Results
    rounds: int
    scale: float
    """1 for a full run, less for a quick one: what counts of records are multiplied with."""

    def filled_topic(self, size: int, count: int, partitions: int = PARTITIONS) -> str:
        """A topic with `count` records of `size` bytes, without keys."""
        topic = self.broker.create_topic(partitions)
        self.fill(topic, size, count)
        return topic

    def fill(self, topic: str, size: int, count: int) -> None:
        """Send `count` records of `size` bytes, without keys, from another process."""
        fill = {"use": "Ottla send_many", "topic": topic, "size": size, "keyed": False, "count": count}
        finish_child(start_child("produce", {"bootstrap": self.broker.bootstrap, **fill}), "filling a topic")

    def sides(self) -> tuple[tuple[int, str], ...]:
        """Both sides in turn: the place of their samples, and the name of their format."""
        return (0, "kafka"), (1, "ottla")

    def rates(self, key: str, what: str, rows: int, call: Callable[[str], None], goal: Goal | None = None) -> None:
        """Compare the rows per second of a call with the name of a format."""

        def rate(name: str) -> float:
            began_s = time.perf_counter()
            call(name)
            return rows / (time.perf_counter() - began_s) / 1e6

        self.compare(key, what, "M rows/s", rate, goal)

    def compare(self, key: str, what: str, unit: str, sample: Callable[[str], float], goal: Goal | None = None) -> None:
        """Take samples of both sides in turn, once to warm up and then for every round."""
        samples: tuple[list[float], list[float]] = ([], [])
        for number in range(self.rounds + 1):
            for side, name in self.sides():
                value = sample(name)
                if number:
                    samples[side].append(value)
                say(f"{what}: {name} {value:.2f} {unit}{'' if number else ' (warm-up)'}")
        self.results.add([Figure(key, what, unit, *samples, goal=goal)])


def say(text: str) -> None:
    """Progress goes to standard error, the table to standard output."""
    print(text, file=sys.stderr, flush=True)


@contextmanager
def spark_session(master: str = "local[2]") -> Iterator[Any]:
    """A session that knows both connectors, with the defaults of Ottla's own sessions."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    from ottla.spark.datasource import OttlaDataSource
    from ottla.spark.session import defaults

    with tempfile.TemporaryDirectory(prefix="ottla-bench-spark-") as folder:
        settings = defaults(master) | {
            "spark.driver.memory": "2g",
            "spark.sql.shuffle.partitions": "2",
            "spark.local.dir": folder,
            "spark.sql.warehouse.dir": f"{folder}/warehouse",
            "spark.jars": ",".join(map(str, connector_jars())),
        }
        builder = SparkSession.builder.master(master).appName("ottla-bench")
        for name, value in settings.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        session.dataSource.register(OttlaDataSource)  # one broken pyspark_* module of the environment hides all of them
        try:
            yield session
        finally:
            session.stop()
