"""Topics to DataFrames and back, batch and streaming."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla import Producer
from ottla.spark.errors import sentence_of
from ottla.testing import Broker


def fill(broker: Broker, topic: str, count: int) -> None:
    with Producer(broker.bootstrap_servers) as producer:
        keys = [b"k%d" % (number % 7) for number in range(count)]
        assert producer.send_many(topic, [b"v%d" % number for number in range(count)], keys=keys).wait(30) == count


def test_a_batch_read_has_every_record_once(shared_broker: Broker, topic: str, read: Callable[..., Any]) -> None:
    fill(shared_broker, topic, 1000)
    found = read(subscribe=topic, includeHeaders="true").collect()
    expected = {(each.partition, each.offset, each.key, each.value) for each in shared_broker.records(topic)}
    assert {(row.partition, row.offset, bytes(row.key), bytes(row.value)) for row in found} == expected
    assert len(found) == 1000
    assert {(row.topic, row.timestampType, row.headers) for row in found} == {(topic, 0, None)}


def test_a_batch_write_keeps_keys_together(shared_broker: Broker, topic: str, spark: Any) -> None:
    rows = spark.range(1000).selectExpr("cast(id % 7 as string) as key", "cast(id as string) as value")
    where = {"kafka.bootstrap.servers": shared_broker.bootstrap_servers, "topic": topic}
    rows.write.format("ottla").options(**where).mode("append").save()
    found = shared_broker.records(topic)
    assert sorted(int(each.value) for each in found) == list(range(1000))
    assert all(int(each.key) == int(each.value) % 7 for each in found)
    assert len({(each.key, each.partition) for each in found}) == 7


@pytest.mark.slow
def test_a_stream_reads_on_where_it_stopped(shared_broker: Broker, topic: str, spark: Any, tmp_path: Path) -> None:
    target = f"{topic}-out"
    shared_broker.create_topic(target, partitions=2)
    where = {"kafka.bootstrap.servers": shared_broker.bootstrap_servers}

    def run() -> Any:
        source = spark.readStream.format("ottla").options(**where, subscribe=topic, startingOffsets="earliest")
        stream = source.option("maxOffsetsPerTrigger", 400).load().selectExpr("key", "value")
        sink = stream.writeStream.format("ottla").options(
            **where, topic=target, checkpointLocation=str(tmp_path / "checkpoint")
        )
        query = sink.trigger(availableNow=True).start()
        assert query.awaitTermination(120)
        return query

    fill(shared_broker, topic, 1000)
    assert sum(each.numInputRows for each in run().recentProgress) == 1000
    assert len(shared_broker.records(target)) == 1000
    fill(shared_broker, topic, 10)
    run()
    assert len(shared_broker.records(target)) == 1010


def test_wrong_options_and_columns_are_one_sentence(spark: Any, shared_broker: Broker, topic: str, tmp_path: Path) -> None:
    where = {"kafka.bootstrap.servers": shared_broker.bootstrap_servers}
    stream = spark.readStream.format("ottla").options(**where, subscribe=topic, endingOffsets="latest").load()
    query = stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
    with pytest.raises(Exception, match="STREAM_FAILED") as raised:
        query.awaitTermination()
    expected = "endingOffsets is for batch reads: a stream has no end (trigger(availableNow=True) has one)"
    assert sentence_of(raised.value) == expected
    with pytest.raises(Exception, match="the sink knows no column id") as raised:
        spark.range(1).write.format("ottla").options(**where, topic=topic).mode("append").save()
    assert "Traceback" not in str(raised.value)
