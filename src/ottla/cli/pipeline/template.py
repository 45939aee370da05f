"""The files that `ottla pipeline init` writes."""

from __future__ import annotations

from pathlib import Path

SPEC = """\
# Read by `ottla pipeline` and by Spark's own `spark-pipelines`.
name: {name}
storage: file://{folder}/storage
libraries:
  - glob:
      include: connections.py
  - glob:
      include: transformations/**
configuration:
  kafka.bootstrap.servers: "{servers}"
"""
OTTLA = """\
# Read by `ottla pipeline` only. once, continuous, or every with a time: every 30s
schedule: once

# Each source is a view that flows read by its name. All keys but format, schema and streaming are options of the format.
sources:
  orders:
    subscribe: orders
    startingOffsets: earliest

# Each sink is a target of flows.
sinks:
  large_orders:
    topic: large-orders
"""
CONNECTIONS = '''\
"""Makes the sources and sinks of ottla.yml known to the pipeline."""

from ottla.spark.pipelines import declare_connections

declare_connections()
'''
FLOWS = '''\
"""Keeps the orders of 100 and more. All that is no order goes to the topic orders-dead, with the reason in its headers."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import struct, to_json

from ottla.spark import decode
from ottla.spark.pipelines import expect_or_dead_letter

spark = SparkSession.active()


@dp.temporary_view
@expect_or_dead_letter("has an id", "id IS NOT NULL", topic="orders-dead")
def parsed_orders() -> DataFrame:
    """Orders as columns: the value of a record is JSON."""
    orders = decode(
        spark.readStream.table("orders"),
        value="json",
        schema="id INT, customer STRING, amount DOUBLE",
        dead_letters="orders-dead",
    )
    return orders.select("key", "value.*")


@dp.append_flow(target="large_orders")
def keep_large_orders() -> DataFrame:
    """Writes them as JSON again, with the same keys."""
    large = spark.readStream.table("parsed_orders").where("amount >= 100")
    return large.select("key", to_json(struct("id", "customer", "amount")).alias("value"))
'''
TEST_INPUT = """\
{"key": "ann", "value": {"id": 1, "customer": "ann", "amount": 40.0}}
{"key": "bob", "value": {"id": 2, "customer": "bob", "amount": 250.0}}
{"key": "ann", "value": {"id": 3, "customer": "ann", "amount": 100.0}}
{"key": "eve", "value": {"id": "4", "customer": "eve", "amount": 500.0}}
{"key": "eve", "value": "not JSON"}
"""
TEST_OUTPUT = """\
{"key": "bob", "value": {"id": 2, "customer": "bob", "amount": 250.0}}
{"key": "ann", "value": {"id": 3, "customer": "ann", "amount": 100.0}}
"""
TEST_DEAD_LETTERS = """\
{"key": "eve", "value": {"id": "4", "customer": "eve", "amount": 500.0}}
{"key": "eve", "value": "not JSON"}
"""
IGNORED = "storage/\n"


def files_of(name: str, folder: Path, servers: str) -> dict[str, str]:
    """The files of a new pipeline, by their path in its folder."""
    return {
        "spark-pipeline.yml": SPEC.format(name=name, folder=folder, servers=servers),
        "ottla.yml": OTTLA,
        "connections.py": CONNECTIONS,
        "transformations/large_orders.py": FLOWS,
        "tests/large-orders-only/given/orders.jsonl": TEST_INPUT,
        "tests/large-orders-only/expected/large-orders.jsonl": TEST_OUTPUT,
        "tests/large-orders-only/expected/orders-dead.jsonl": TEST_DEAD_LETTERS,
        ".gitignore": IGNORED,
    }
