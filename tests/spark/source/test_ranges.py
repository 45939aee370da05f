"""Ranges read as tasks read them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql.datasource import InputPartition

from ottla import Admin, Producer, TopicPartition
from ottla.ids import random_uuid
from ottla.spark.errors import SourceError
from ottla.spark.source.options import SourceOptions, source_options
from ottla.spark.source.plan import OffsetRange
from ottla.spark.source.readers import read_range
from ottla.testing import Broker

NAMES = ["offset", "value"]


@pytest.fixture
def options(shared_broker: Broker, topic: str) -> Callable[..., SourceOptions]:
    def make(**given: str) -> SourceOptions:
        where = {"kafka.bootstrap.servers": shared_broker.bootstrap_servers, "subscribe": topic}
        return source_options({**where, **given}, is_streaming=False)

    return make


def offsets(options: SourceOptions, topic: str, first: int, end: int) -> list[int]:
    batches = read_range(options, OffsetRange(TopicPartition(topic, 0), first, end), NAMES)
    return [offset for batch in batches for offset in batch.column("offset").to_pylist()]


def test_a_plan_without_ranges_reads_nothing(options: Any) -> None:
    assert list(read_range(options(), InputPartition(None), NAMES)) == []


def test_a_range_may_begin_and_end_within_batches(shared_broker: Broker, topic: str, options: Any) -> None:
    for codec in ("none", "lz4"):
        with Producer(shared_broker.bootstrap_servers, compression_type=codec, linger_ms=50) as producer:
            assert producer.send_many(topic, [b"x" * 50] * 1000, partition=0).wait(30) == 1000
    assert offsets(options(), topic, 0, 2000) == list(range(2000))
    assert offsets(options(), topic, 300, 1700) == list(range(300, 1700))
    assert offsets(options(), topic, 1999, 2000) == [1999]


def test_a_task_fetches_little_beyond_its_range(shared_broker: Broker, topic: str, options: Any) -> None:
    with Producer(shared_broker.bootstrap_servers, batch_size=16_000) as producer:
        assert producer.send_many(topic, [b"x" * 1000] * 20_000, partition=0).wait(60) == 20_000
    from ottla.spark import clients

    made = options()
    assert offsets(made, topic, 100, 300) == list(range(100, 300))
    with clients.consumer(made.client) as consumer:
        metrics = consumer.metrics()["consumer-fetch-manager-metrics"]
    assert metrics["bytes-consumed-total"] < 600_000  # 200 records of 1 KB, and not the 8 MB of a whole answer


def test_records_that_age_out_while_tasks_run_are_told_or_passed_over(
    shared_broker: Broker, topic: str, fill: Any, options: Any
) -> None:
    fill(topic, [20, 0, 0])
    with Admin(shared_broker.bootstrap_servers) as admin:
        admin.delete_records({TopicPartition(topic, 0): 12}).raise_first()
    with pytest.raises(SourceError, match=f"the records of {topic}-0 from offset 5 to 11 are gone"):
        offsets(options(), topic, 5, 15)
    assert offsets(options(failOnDataLoss="false"), topic, 5, 15) == [12, 13, 14]
    assert offsets(options(failOnDataLoss="false"), topic, 5, 10) == []


def test_a_topic_that_became_shorter_is_told_or_read_to_its_end(topic: str, fill: Any, options: Any) -> None:
    fill(topic, [20, 0, 0])
    with pytest.raises(SourceError, match=f"{topic}-0 was read up to offset 50 and now ends at 20: the topic was deleted"):
        offsets(options(), topic, 50, 60)
    impatient = {"kafkaConsumer.pollTimeoutMs": "300"}
    with pytest.raises(SourceError, match=f"{topic}-0 was read up to offset 20 and now ends at 20"):
        offsets(options(**impatient), topic, 15, 60)
    assert offsets(options(failOnDataLoss="false", **impatient), topic, 15, 60) == [15, 16, 17, 18, 19]


def test_a_range_of_a_topic_that_was_made_again_reads_nothing_of_the_new_one(
    shared_broker: Broker, topic: str, fill: Any, options: Any
) -> None:
    """The next batch reads the new topic from its start: what this task would read of it would come twice."""
    fill(topic, [20, 0, 0])
    old = random_uuid(os.urandom)
    made = options(failOnDataLoss="false", **{"kafkaConsumer.pollTimeoutMs": "300"})
    found = read_range(made, OffsetRange(TopicPartition(topic, 0), 25, 30, old), NAMES)
    assert list(found) == []
    with pytest.raises(SourceError, match=f"{topic}-0 was read up to offset 25 and now ends at 20: the topic was deleted"):
        list(read_range(options(), OffsetRange(TopicPartition(topic, 0), 25, 30, old), NAMES))


def test_a_topic_that_is_gone_is_told(options: Any, topic: str) -> None:
    with pytest.raises(SourceError, match="not-there-0 was read before and is gone"):
        offsets(options(**{"kafkaConsumer.pollTimeoutMs": "200"}), "not-there", 0, 5)


def test_a_task_that_is_given_up_leaves_nothing_running(topic: str, fill: Any, options: Any) -> None:
    fill(topic, [50, 0, 0])
    before = {each.name for each in threading.enumerate()}
    reading = read_range(options(), OffsetRange(TopicPartition(topic, 0), 0, 50), NAMES)
    next(reading)
    reading.close()  # type: ignore[attr-defined]
    assert {each.name for each in threading.enumerate()} == before
