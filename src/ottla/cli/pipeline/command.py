"""The `pipeline` verb: its actions, most of them imported when used, and `init` with the files that it writes."""

from __future__ import annotations

from pathlib import Path

import click

from ottla.cli.common.output import say
from ottla.cli.common.settings import DEFAULT_BOOTSTRAP, ENVIRONMENT_VARIABLE
from ottla.cli.common.spelling import Actions
from ottla.spark.pipelines.errors import PipelineError

INIT_EXAMPLES = """\b
Examples:
  ottla pipeline init orders
  ottla pipeline init orders -b kafka-1:9092
"""


@click.command("init", epilog=INIT_EXAMPLES)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "-b",
    "--bootstrap-server",
    "bootstrap_server",
    envvar=ENVIRONMENT_VARIABLE,
    default=DEFAULT_BOOTSTRAP,
    metavar="HOST:PORT,…",
    help=f"The cluster that it uses.  [default: ${ENVIRONMENT_VARIABLE}, or {DEFAULT_BOOTSTRAP}]",
)
def init(folder: Path, bootstrap_server: str) -> None:
    """Write a working pipeline to FOLDER: it keeps the large orders of a topic, and has a test."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise PipelineError(f"{folder} is not empty: choose another folder, or delete it first")
    for name, text in files_of(folder.resolve().name, folder.resolve(), bootstrap_server).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        say(f"  {path}")
    say(f"Wrote a pipeline to {folder}. Try it:")
    for line in (
        f"ottla pipeline test {folder}",
        "ottla topics create orders large-orders orders-dead",
        f"ottla pipeline run {folder}",
    ):
        say(f"  {line}")


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


EXAMPLES = """\b
Examples:
  ottla pipeline init orders
  ottla pipeline validate orders
  ottla pipeline run orders
  ottla pipeline run orders --schedule 'every 30s'
  ottla pipeline run orders --env prod
  ottla pipeline backfill orders --from 2026-01-31T12:00 --to 2026-01-31T14:00
  ottla pipeline describe orders
  ottla pipeline test orders
  ottla pipeline transactions
"""

_HERE = "ottla.cli.pipeline"
ACTIONS = {
    "init": (init, "Write a working pipeline to begin with."),
    "validate": (f"{_HERE}.validate", "validate", "Find mistakes without running anything."),
    "run": (f"{_HERE}.run", "run", "Run a pipeline; continues where the last run stopped."),
    "backfill": (f"{_HERE}.backfill", "backfill", "Read a range again into the same sinks, once."),
    "describe": (f"{_HERE}.describe", "describe", "Show flows, sources and sinks, and where the offsets are."),
    "test": (f"{_HERE}.test", "test", "Run a pipeline's own tests against a broker of their own."),
    "transactions": (f"{_HERE}.transactions", "transactions", "List and end what exactly-once sinks have left open."),
}


@click.command("pipeline", cls=Actions, actions=ACTIONS, epilog=EXAMPLES)
def pipeline() -> None:
    """Data pipelines on Spark: topics in, transform, topics and tables out.

    A pipeline is a folder of pyspark.pipelines files with a spark-pipeline.yml and an ottla.yml. `ottla pipeline ACTION --help`
    shows the flags of an action.
    """
