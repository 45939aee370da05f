"""Options of the source: every mistake is one sentence that names the option."""

from __future__ import annotations

from typing import Any

import pytest

from ottla import TopicPartition
from ottla.spark.errors import SparkOptionError
from ottla.spark.source.options import check_source_options, source_options

WHERE = {"kafka.bootstrap.servers": "localhost:9092"}
OK = {**WHERE, "subscribe": "orders"}


def made(is_streaming: bool = False, **options: str) -> Any:
    return source_options({**WHERE, **options}, is_streaming=is_streaming)


def test_topics_are_named_once_without_spaces() -> None:
    assert made(subscribe=" orders, payments,orders ,").topics == ("orders", "payments")
    assert made(subscribePattern=" ord.* ").pattern == "ord.*"
    assert made(assign='{"orders": [1, 0, 1]}').partitions == (TopicPartition("orders", 1), TopicPartition("orders", 0))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "give one of subscribe, subscribePattern and assign"),
        ({"subscribe": "a", "assign": "{}"}, "subscribe and assign are given"),
        ({"subscribe": " , "}, "subscribe names no topic"),
        ({"subscribePattern": " "}, "subscribePattern is empty"),
        ({"subscribePattern": "a("}, "subscribePattern 'a\\(' is no regular expression"),
        ({"assign": "orders"}, "assign must be JSON"),
        ({"assign": '{"orders": ["0"]}'}, "assign must be JSON"),
        ({"assign": '{"orders": [-1]}'}, "assign must be JSON"),
        ({"subscribe": "a", "startingOfsets": "latest"}, "did you mean startingOffsets"),
        ({"subscribe": "a", "bootstrap.servers": "b:1"}, "did you mean kafka.bootstrap.servers"),
        ({"subscribe": "a", "failOnDataLoss": "maybe"}, "failOnDataLoss is 'maybe'"),
        ({"subscribe": "a", "minPartitions": "0"}, "minPartitions is 0: it must be at least 1"),
        ({"subscribe": "a", "maxTriggerDelay": "soon"}, "maxTriggerDelay is 'soon'"),
        ({"subscribe": "a", "minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"}, "minOffsetsPerTrigger is 9, more than"),
        ({"subscribe": "a", "kafka.auto.offset.reset": "latest"}, "kafka.auto.offset.reset cannot be set"),
        ({"subscribe": "a", "kafka.fetch.min.byte": "1"}, "kafka. is wrong: fetch.min.byte .* did you mean fetch.min.bytes"),
        ({"subscribe": "a", "startingOffsets": '{"b": {"0": 1}}'}, "startingOffsets names b-0, which subscribe does not"),
        ({"assign": '{"a": [0]}', "endingOffsets": '{"a": {"1": 1}}'}, "endingOffsets names a-1, which assign does not"),
    ],
)
def test_a_mistake_is_named(options: dict[str, str], words: str) -> None:
    with pytest.raises(SparkOptionError, match=words):
        made(**options)


def test_a_broker_must_be_named() -> None:
    with pytest.raises(SparkOptionError, match=r"kafka.bootstrap.servers is missing"):
        source_options({"subscribe": "a"}, is_streaming=False)


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"])
def test_a_stream_has_no_end(name: str) -> None:
    with pytest.raises(SparkOptionError, match=f"{name} is for batch reads"):
        made(True, subscribe="a", **{name: "latest"})


def test_what_is_right_for_one_of_batch_and_stream_passes_the_first_check() -> None:
    check_source_options({**OK, "endingOffsets": "latest"})
    check_source_options({**OK, "startingOffsets": "latest"})
    with pytest.raises(SparkOptionError, match="startingOffsets is 'newest'"):
        check_source_options({**OK, "startingOffsets": "newest"})


def test_settings_of_the_consumer_are_passed_on_over_the_defaults() -> None:
    client = made(subscribe="a", **{"kafka.max.partition.fetch.bytes": "1000", "kafka.group.id": "g"}).client
    assert (client["max.partition.fetch.bytes"], client["group.id"]) == ("1000", "g")
    assert made(subscribe="a").client["max.partition.fetch.bytes"] == str(8 << 20)


def test_numbers_and_durations_are_read() -> None:
    found = made(
        True,
        subscribe="a",
        maxOffsetsPerTrigger="5",
        minOffsetsPerTrigger="2",
        maxTriggerDelay="3m",
        minPartitions="7",
        maxRecordsPerPartition="11",
        failOnDataLoss="FALSE",
        includeHeaders="true",
        **{"kafkaConsumer.pollTimeoutMs": "99"},
    )
    assert (found.offsets_per_trigger_max, found.offsets_per_trigger_min, found.trigger_delay_max_ms) == (5, 2, 180_000)
    assert (found.partitions_min, found.records_per_task_max, found.poll_timeout_ms) == (7, 11, 99)
    assert (found.fail_on_data_loss, found.has_headers) == (False, True)
