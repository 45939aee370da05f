"""A pipeline that uses in its workers all that is shipped: source, sinks, decoding, dead letters, a table, its own module."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import fastavro
from tests.spark.sink.sink_work import committed

from ottla import Admin, Producer
from ottla.records import kernel_columns
from ottla.testing import Broker

HANG_S = 400
ORDERS = 60
BROKEN = (7, 33)
FIELDS = [{"name": "sensor", "type": "string"}, {"name": "grade", "type": "int"}]
READING = {"type": "record", "name": "Reading", "fields": FIELDS}
FILES = {
    "spark-pipeline.yml": """\
name: shop
storage: storage
libraries: [{glob: {include: connections.py}}, {glob: {include: transformations/**}}]
configuration: {kafka.bootstrap.servers: "localhost:9092", spark.sql.shuffle.partitions: "2"}
""",
    "ottla.yml": """\
group: shop
sources:
  orders: {subscribe: orders, startingOffsets: earliest}
  readings: {subscribe: readings, startingOffsets: earliest}
sinks:
  large_orders: {topic: large-orders, exactlyOnce: true}
  grades: {topic: grades}
  history: {format: ottla_delta, path: history}
""",
    "connections.py": "from ottla.spark.pipelines import declare_connections\ndeclare_connections()\n",
    "pricing.py": "def with_tax(amount):\n    return amount * 2\n",
    "transformations/flows.py": f"""\
import sys

from pricing import with_tax
from pyspark import pipelines as dp
from pyspark.sql import SparkSession
from pyspark.sql.functions import struct, to_json, udf

from ottla.spark import decode

spark = SparkSession.active()


def place():
    import ottla.records.kernel_columns as kernel
    return sys.executable + " " + kernel.__file__


def orders():
    dead = {{"kafka.bootstrap.servers": spark.conf.get("kafka.bootstrap.servers"), "topic": "dead"}}
    found = decode(spark.readStream.table("orders"), value="json", schema="id int, amount double", dead_letters=dead)
    return found.select("key", "value.*")


@dp.append_flow(target="large_orders")
def keep_large_orders():
    row = struct("id", udf(with_tax, "double")("amount").alias("price"), udf(place, "string")().alias("place"))
    return orders().where("amount >= 10").select("key", to_json(row).alias("value"))


@dp.append_flow(target="history")
def keep_history():
    return orders().select("id", "amount")


@dp.append_flow(target="grades")
def keep_grades():
    found = decode(spark.readStream.table("readings"), value="avro", schema={READING!r})
    return found.selectExpr("CAST(value.sensor AS BINARY) AS key", "CAST(value.grade AS STRING) AS value")
""",
}
TABLE_FLOWS = """\
from pyspark import pipelines as dp
from pyspark.sql import SparkSession

from ottla.spark import decode

spark = SparkSession.active()


def orders():
    found = decode(spark.readStream.table("orders"), value="json", schema="id int, amount double", mode="drop")
    return found.select("value.*")


@dp.append_flow(target="rows")
def store_rows():
    return orders()


@dp.append_flow(target="files")
def store_files():
    return orders()
"""


def write_shop(folder: Path) -> Path:
    """Write the pipeline's files."""
    return write_files(folder, FILES)


def write_tables(folder: Path, postgres_url: str, catalog: dict[str, str]) -> Path:
    """Write a pipeline that puts the orders into a PostgreSQL and an Iceberg table."""
    sinks = {
        "rows": {"format": "ottla_postgres", "url": postgres_url, "table": "cluster_orders"},
        "files": {
            "format": "ottla_iceberg",
            "table": "shop.orders",
            **{f"catalog.{name}": value for name, value in catalog.items()},
        },
    }
    sources = {"orders": {"subscribe": "orders", "startingOffsets": "earliest"}}
    files = {
        "spark-pipeline.yml": FILES["spark-pipeline.yml"].replace("name: shop", "name: tables"),
        "ottla.yml": json.dumps({"sources": sources, "sinks": sinks}),
        "connections.py": FILES["connections.py"],
        "transformations/flows.py": TABLE_FLOWS,
    }
    return write_files(folder, files)


def write_files(folder: Path, files: dict[str, str]) -> Path:
    """Write a folder of files."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def good_orders() -> list[int]:
    """The ids of the orders that can be decoded."""
    return [number for number in range(ORDERS) if number not in BROKEN]


def fill(broker: Broker) -> None:
    """Create the topics, with 60 orders of which two cannot be decoded, and ten readings."""
    for name in ("orders", "large-orders", "dead", "readings", "grades"):
        broker.create_topic(name, partitions=3)
    with Producer(broker.bootstrap_servers) as producer:
        for number in range(ORDERS):
            value = b"broken" if number in BROKEN else json.dumps({"id": number, "amount": float(number)}).encode()
            producer.send("orders", value, key=str(number).encode(), partition=number % 3)
        for number in range(10):
            encoded = io.BytesIO()
            fastavro.schemaless_writer(encoded, READING, {"sensor": f"s{number}", "grade": number})
            producer.send("readings", encoded.getvalue())


def run_pipeline(folder: Path, broker: Broker, *flags: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """`ottla pipeline run` in a process of its own, whose Python for workers is not set unless `variables` does."""
    return run_ottla(folder.parent, "pipeline", "run", str(folder), "-b", broker.bootstrap_servers, *flags, **variables)


def run_ottla(where: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own, in the folder `where`."""
    return run_python(where, "-m", "ottla.cli.main", *arguments, **variables)


def run_python(where: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Python in a process of its own, without the variables that choose a Spark or the Python of its workers."""
    hidden = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_REMOTE", "SPARK_LOCAL_IP")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment | variables,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        cwd=where,
        check=False,
    )


def check_results(folder: Path, broker: Broker, programs: Path, code: Path) -> None:
    """Every result is there once, and was made by the Python in `programs` with an Ottla below the folder `code`."""
    good = good_orders()
    results = [json.loads(value) for value in committed(broker.bootstrap_servers, "large-orders", partitions=3)]
    assert sorted((each["id"], each["price"]) for each in results) == [(each, each * 2.0) for each in good if each >= 10]
    for each in results:
        executable, kernel = each["place"].split()
        assert Path(executable).parent == programs, each
        assert Path(kernel).is_relative_to(code), each
        # Where the kernels are compiled here, the workers run them compiled too.
        assert Path(kernel).suffix == Path(kernel_columns.__file__).suffix, each
    assert sorted(record.value for record in broker.records("dead")) == [b"broken"] * 4  # two flows decode the orders
    found = sorted((record.key, record.value) for record in broker.records("grades"))
    assert found == [(f"s{number}".encode(), str(number).encode()) for number in range(10)]
    import deltalake

    rows = deltalake.DeltaTable(folder / "history").to_pyarrow_table().to_pylist()
    assert sorted(row["id"] for row in rows) == good
    with Admin(broker.bootstrap_servers) as admin:
        offsets = admin.list_consumer_group_offsets(["shop"])["shop"]
    assert sum(offset.offset for each, offset in offsets.items() if offset and each.topic == "orders") == ORDERS
