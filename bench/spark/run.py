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
from bench.spark.results import Row, SparkResults
from tests.support.servers.spark_connector import connector_jars

PARTITIONS = 4


@dataclass
class Run:
    """Handed to every measurement."""

    spark: Any
    broker: BenchBroker
    results: SparkResults
    rounds: int
    scale: float
    """1 for a full run, less for a quick one: what counts of records are multiplied with."""
    has_connector: bool = True
    """False: only ours is measured."""

    def filled_topic(self, size: int, count: int, partitions: int = PARTITIONS) -> str:
        """A topic with `count` records of `size` bytes, without keys."""
        topic = self.broker.create_topic(partitions)
        fill = {"use": "Ottla send_many", "topic": topic, "size": size, "keyed": False, "count": count}
        finish_child(start_child("produce", {"bootstrap": self.broker.bootstrap, **fill}), "filling a topic")
        return topic

    def compare(self, row: Row, rows: int, theirs: Callable[[], None], ours: Callable[[], None]) -> None:
        """Run both in turn, once to warm up and then for every round."""
        pairs = [(row.ours, ours), *([(row.theirs, theirs)] if self.has_connector else [])]
        for number in range(self.rounds + 1):
            for samples, call in pairs:
                began_s = time.perf_counter()
                call()
                rate = rows / (time.perf_counter() - began_s)
                if number:
                    samples.append(rate)
                side = "ours" if samples is row.ours else "Spark's connector"
                say(f"{row.what}: {side} {rate:,.0f} rows/s{'' if number else ' (warm-up)'}")


def say(text: str) -> None:
    """Progress goes to standard error, the table to standard output."""
    print(text, file=sys.stderr, flush=True)


@contextmanager
def spark_session(master: str = "local[2]", has_connector: bool = True) -> Iterator[Any]:
    """A session that knows both connectors."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    from ottla.spark.datasource import OttlaDataSource

    with tempfile.TemporaryDirectory(prefix="ottla-bench-spark-") as folder:
        settings = {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": "2g",
            "spark.sql.shuffle.partitions": "2",
            "spark.local.dir": folder,
            "spark.sql.warehouse.dir": f"{folder}/warehouse",
        }
        if has_connector:
            settings["spark.jars"] = ",".join(map(str, connector_jars()))
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
