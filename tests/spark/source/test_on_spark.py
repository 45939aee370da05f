"""The source on Spark, batch and streaming: against Ottla, and against Apache Kafka where marked `slow`."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

from ottla import Admin, Consumer, Producer, TopicPartition
from ottla.spark.errors import sentence_of
from ottla.testing import Broker


@pytest.fixture(
    scope="module", params=["shared_broker", pytest.param("apache_kafka", marks=[pytest.mark.slow, pytest.mark.kafka])]
)
def where(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a cluster."""
    server = request.getfixturevalue(request.param)
    if request.param == "shared_broker":
        yield server.bootstrap_servers
        return
    with server.start_server() as started:
        yield started.bootstrap


@pytest.fixture
def orders(where: str, request: pytest.FixtureRequest) -> str:
    """A topic with three partitions that hold 100, 50 and no records, of two kinds of headers."""
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    with Admin(where) as admin:
        admin.create_topics({name: 3}).raise_first()
    fill(where, name, [100, 50, 0])
    return name


def fill(where: str, topic: str, counts: list[int]) -> None:
    with Producer(where) as producer:
        for partition, count in enumerate(counts):
            for number in range(count):
                headers = [("n", b"%d" % number), ("none", None)] if number % 2 else []
                producer.send(topic, b"%d" % number, key=b"k%d" % number, partition=partition, headers=headers)
        producer.flush(60)


def read(spark: Any, where: str, schema: str | None = None, **options: Any) -> Any:
    reader = spark.read.format("ottla").option("kafka.bootstrap.servers", where)
    return (reader if schema is None else reader.schema(schema)).options(**options).load()


def places(rows: list[Any]) -> list[tuple[int, int]]:
    return sorted((row.partition, row.offset) for row in rows)


def test_a_batch_has_every_column_of_every_record(spark: Any, where: str, orders: str) -> None:
    rows = read(spark, where, subscribe=orders, includeHeaders="true", minPartitions=6).collect()
    assert places(rows) == [*((0, number) for number in range(100)), *((1, number) for number in range(50))]
    for row in rows:
        assert (bytes(row.key), bytes(row.value)) == (b"k%d" % row.offset, b"%d" % row.offset)
        assert (row.topic, row.timestampType) == (orders, 0)
        expected = [("n", b"%d" % row.offset), ("none", None)] if row.offset % 2 else None
        found = None if row.headers is None else [(each.key, each.value and bytes(each.value)) for each in row.headers]
        assert found == expected
    narrow = read(spark, where, "offset bigint, value binary", assign=json.dumps({orders: [1]}))
    assert narrow.columns == ["offset", "value"]
    assert narrow.count() == 50


def test_a_batch_may_start_at_a_groups_offsets(spark: Any, where: str, orders: str) -> None:
    with Consumer(where, group_id=f"{orders}-group", enable_auto_commit=False) as consumer:
        consumer.assign((orders, 0))
        consumer.commit({TopicPartition(orders, 0): 98})
    rows = read(spark, where, assign=json.dumps({orders: [0, 2]}), startingOffsets=f"group:{orders}-group").collect()
    assert places(rows) == [(0, 98), (0, 99)]
    assert read(spark, where, assign=json.dumps({orders: [2]})).count() == 0


@pytest.fixture
def stream(spark: Any, where: str, tmp_path: Path) -> Any:
    """Runs a stream until everything available is read; returns its rows as (partition, offset) and its query."""

    def run(**options: Any) -> tuple[list[tuple[int, int]], Any]:
        source = spark.readStream.format("ottla").option("kafka.bootstrap.servers", where).options(**options).load()
        sink = source.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = sink.option("path", str(tmp_path / "rows")).trigger(availableNow=True).start()
        assert query.awaitTermination(120)
        return places(spark.read.parquet(str(tmp_path / "rows")).select("partition", "offset").collect()), query

    return run


def test_a_stream_reads_every_record_once_over_restarts(where: str, orders: str, stream: Any) -> None:
    options = {"subscribe": orders, "startingOffsets": "earliest", "maxOffsetsPerTrigger": 60}
    rows, query = stream(**options)
    assert rows == [*((0, number) for number in range(100)), *((1, number) for number in range(50))]
    progress = [each for each in query.recentProgress if each.numInputRows]
    assert [each.numInputRows for each in progress] == [60, 60, 30]
    assert json.loads(progress[-1].sources[0].endOffset)[orders] == {"0": 100, "1": 50, "2": 0}
    assert json.loads(progress[0].sources[0].latestOffset) == {orders: {"0": 100, "1": 50, "2": 0}}
    fill(where, orders, [0, 0, 2])
    rows, _ = stream(**options)
    assert rows[150:] == [(2, 0), (2, 1)]
    assert len(rows) == 152


def test_a_stream_from_latest_starts_at_its_first_run(where: str, orders: str, stream: Any) -> None:
    rows, _ = stream(subscribe=orders)
    assert rows == []
    fill(where, orders, [1, 1, 1])
    rows, _ = stream(subscribe=orders)
    assert rows == [(0, 100), (1, 50), (2, 0)]


def test_committed_records_alone_are_streamed(spark: Any, where: str, orders: str, stream: Any) -> None:
    with Producer(where, transactional_id=orders) as producer:
        producer.init_transactions()
        for is_kept in (True, False):
            producer.begin_transaction()
            producer.send_many(orders, [b"x"] * 3, partition=2).wait(30)
            if is_kept:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
    options = {"assign": json.dumps({orders: [2]}), "kafka.isolation.level": "read_committed"}
    assert places(read(spark, where, **options).collect()) == [(2, 0), (2, 1), (2, 2)]
    rows, query = stream(startingOffsets="earliest", **options)
    assert rows == [(2, 0), (2, 1), (2, 2)]
    assert json.loads(query.lastProgress.sources[0].endOffset)[orders] == {"2": 8}


def test_mistakes_are_one_sentence_from_the_call_that_makes_them(spark: Any, shared_broker: Any) -> None:
    where = shared_broker.bootstrap_servers

    def told(call: Any) -> str:
        with pytest.raises(PySparkException) as caught:
            call()
        first = str(caught.value).splitlines()[0]
        sentence = sentence_of(caught.value)
        assert sentence is not None
        assert sentence in first
        return sentence

    assert told(lambda: read(spark, where, subscribe="a", startingOfsets="x")).startswith("startingofsets is no option")
    assert told(lambda: spark.read.format("ottla").options(subscribe="a").load()).startswith(
        "kafka.bootstrap.servers is missing"
    )
    assert told(lambda: read(spark, where, "amount int", subscribe="a").collect()).startswith("the source has no column amount")
    assert told(lambda: read(spark, where, subscribe="nope").collect()).startswith(f"there is no topic nope at {where}; it has")

    def run() -> None:
        source = spark.readStream.format("ottla").option("kafka.bootstrap.servers", where).option("subscribe", "nope").load()
        source.writeStream.format("noop").trigger(availableNow=True).start().awaitTermination(60)

    assert told(run).startswith("there is no topic nope")


pytestmark = pytest.mark.slow
LONG_S = 120.0


def until(is_true: Callable[[], bool], what: str) -> None:
    deadline_s = time.monotonic() + LONG_S
    while not is_true():
        assert time.monotonic() < deadline_s, f"{what} did not happen within {LONG_S:g} s"
        time.sleep(0.1)


def test_a_stream_waits_for_its_broker_and_can_be_stopped_meanwhile(spark: Any, tmp_path: Path) -> None:
    with Broker(data=tmp_path / "data") as broker:
        broker.create_topic("orders", partitions=2)
        source = spark.readStream.format("ottla").option("kafka.bootstrap.servers", broker.bootstrap_servers)
        rows = source.options(subscribe="orders", startingOffsets="earliest").load()
        query = rows.writeStream.format("memory").queryName("waits").trigger(processingTime="100 milliseconds").start()

        def count() -> int:
            return int(spark.table("waits").count())

        broker.produce("orders", b"before")
        until(lambda: count() == 1, "the first record")
        broker.kill()
        time.sleep(8)  # longer than the first try of a lookup
        assert query.isActive
        broker.start()
        broker.produce("orders", b"after")
        until(lambda: count() == 2, "the record after the restart")
        assert query.exception() is None
        broker.kill()
        time.sleep(2)
        began_s = time.monotonic()
        query.stop()
        assert not query.isActive
        assert time.monotonic() - began_s < 60
        broker.start()
