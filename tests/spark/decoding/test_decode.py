"""`decode` on batches and streams: what becomes of bad records in each mode."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla import Producer
from ottla.spark import decode, split_errors, to_topics
from ottla.spark.errors import SparkOptionError
from ottla.testing import Broker

SCHEMA = "order_id long, amount double"
BAD = {b'{"order_id": "seven"}': b"order_id is the string seven: it must be bigint", b"{": b"the value is not valid JSON: {"}


def fill(broker: Broker, topic: str, good: int) -> None:
    """Good records, and the bad ones between them, with a key and a header each."""
    values = [b'{"order_id": %d, "amount": %d.5}' % (number, number) for number in range(good)]
    values[1:1] = list(BAD)
    with Producer(broker.bootstrap_servers) as producer:
        for number, value in enumerate(values):
            producer.send(topic, value, key=b"k%d" % number, headers=[("source", b"web")], partition=number % 3)


def headers_of(record: Any) -> dict[str, bytes]:
    return dict(record.headers)


def test_a_stream_sends_dead_letters_and_goes_on(shared_broker: Broker, topic: str, spark: Any, tmp_path: Path) -> None:
    target, dead = f"{topic}-out", f"{topic}-dead"
    shared_broker.create_topic(target, partitions=1)
    shared_broker.create_topic(dead, partitions=1)
    fill(shared_broker, topic, 10)
    where = {"kafka.bootstrap.servers": shared_broker.bootstrap_servers}
    source = spark.readStream.format("ottla").options(
        **where, subscribe=topic, startingOffsets="earliest", includeHeaders="true"
    )
    orders = decode(source.load(), value="json", schema=SCHEMA, key="str", dead_letters={**where, "topic": dead})
    assert orders.columns[:2] == ["key", "value"]
    rows = orders.selectExpr("key", "concat(value.order_id, ' ', value.amount) as value")
    sink = rows.writeStream.format("ottla").options(**where, topic=target, checkpointLocation=str(tmp_path / "checkpoint"))
    query = sink.trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    assert sorted(each.value for each in shared_broker.records(target)) == sorted(b"%d %d.5" % (n, n) for n in range(10))
    letters = shared_broker.records(dead)
    assert {each.value: headers_of(each)["ottla.error.reason"] for each in letters} == BAD
    originals = {each.value: each for each in shared_broker.records(topic)}
    for letter in letters:
        original, headers = originals[letter.value], headers_of(letter)
        assert letter.key == original.key
        assert headers["source"] == b"web"
        assert headers["ottla.error.field"] == b"value"
        place = [headers[f"ottla.error.{name}"].decode() for name in ("topic", "partition", "offset", "timestamp")]
        assert place == [topic, str(original.partition), str(original.offset), str(original.timestamp)]


def test_bad_rows_are_kept_dropped_split_or_written_beside(shared_broker: Broker, topic: str, read: Callable[..., Any]) -> None:
    fill(shared_broker, topic, 4)
    source = read(subscribe=topic)
    assert sorted(row.value.order_id for row in decode(source, value="json", schema=SCHEMA, mode="drop").collect()) == [
        0,
        1,
        2,
        3,
    ]
    good, bad = split_errors(decode(source, value="json", schema=SCHEMA))
    assert good.count() == 4
    assert good.columns == source.columns
    assert {bytes(row._error.value) for row in bad.collect()} == set(BAD)
    dead, clean = f"{topic}-dead", f"{topic}-clean"
    for name in (dead, clean):
        shared_broker.create_topic(name, partitions=1)
    both = to_topics(decode(source, value="json", schema=SCHEMA), topic=clean, dead_letter_topic=dead)
    both.write.format("ottla").option("kafka.bootstrap.servers", shared_broker.bootstrap_servers).mode("append").save()
    assert {each.value for each in shared_broker.records(dead)} == set(BAD)
    assert {headers_of(each)["ottla.error.topic"] for each in shared_broker.records(dead)} == {topic.encode()}
    values = {each.value for each in shared_broker.records(clean)}
    assert values == {b'{"order_id":%d,"amount":%d.5}' % (number, number) for number in range(4)}


def test_mode_fail_names_the_record(shared_broker: Broker, topic: str, read: Callable[..., Any]) -> None:
    with Producer(shared_broker.bootstrap_servers) as producer:
        producer.send(topic, b'{"order_id": 1}', partition=2)
        producer.send(topic, b'{"order_id": "x"}', partition=2)
    rows = decode(read(subscribe=topic), value="json", schema=SCHEMA, mode="fail")
    sentence = f"the record of {topic}-2 at offset 1 cannot be decoded: order_id is the string x: it must be bigint"
    with pytest.raises(Exception, match=sentence):
        rows.collect()


def test_mistakes_are_told_before_a_job_starts(spark: Any) -> None:
    rows = spark.createDataFrame([(b"1", "x", 1)], "value binary, topic string, number int")
    for arguments, sentence in [
        ({}, "decode does nothing"),
        ({"value": "jsn", "schema": "a int"}, "value='jsn' is no format that decode knows; did you mean json?"),
        ({"value": "json"}, "value='json' needs schema=, such as 'order_id long, amount double'"),
        ({"value": "str", "schema": "a int"}, "schema is for the formats json and Avro; value is str"),
        (
            {"value": "str", "mode": "ignore"},
            "mode is 'ignore', which decode does not know; use keep, drop, fail, dead_letters",
        ),
        ({"value": "str", "mode": "dead_letters"}, "mode dead_letters needs dead_letters="),
        ({"value": "str", "mode": "drop", "dead_letters": {}}, "mode drop and dead_letters="),
        ({"value": "str", "dead_letters": {"topic": "dead"}}, "kafka.bootstrap.servers is missing"),
        ({"value": "str", "dead_letters": {"kafka.bootstrap.servers": "localhost:1"}}, "dead_letters has no topic"),
        ({"key": "str"}, "the column key is not there: decode needs the bytes of records"),
        ({"value": "str", "registry": str}, "registry is for the format confluent-avro; value is str"),
    ]:
        with pytest.raises(SparkOptionError) as problem:
            decode(rows, **arguments)
        assert sentence in str(problem.value)
    with pytest.raises(SparkOptionError, match="the DataFrame has a column _error already"):
        decode(rows.withColumnRenamed("topic", "_error"), value="str")
    with pytest.raises(SparkOptionError, match="split_errors takes what decode returns in mode keep"):
        split_errors(rows)
