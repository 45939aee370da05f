"""What callers may write for partitions, topics, offsets and times."""

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from ottla.client.consumer import arguments
from ottla.client.consumer.arguments import consumer_options
from ottla.client_core.group.membership import LeaveOption, ServerRegex
from ottla.client_core.offsets import OffsetAndMetadata
from ottla.errors import OttlaError
from ottla.ids import TopicPartition
from ottla.records.kernels import ConsumerRecord

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.mark.parametrize("given", [(A, B), ([A, B],), ([("t", 0), ("t", 1), A],), (A, ("t", 1)), ({A: 1, B: 2},)])
def test_partitions_are_given_one_by_one_or_together(given: Any) -> None:
    assert arguments.partitions_of(given) == [A, B]


def test_one_partition_may_be_topic_and_number() -> None:
    assert arguments.partitions_of(("t", 1)) == [B]
    assert arguments.partitions_of((B,)) == [B]


@pytest.mark.parametrize("given", [("t",), (["t"],), (5,), ([("t", "0")],), ([("t", -1)],)])
def test_what_is_no_partition_is_refused(given: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        arguments.partitions_of(given)


def test_subscriptions_are_names_or_patterns() -> None:
    assert arguments.subscription_of("t") == ["t"]
    assert arguments.subscription_of(["b", "a", "b"]) == ["b", "a"]
    assert arguments.subscription_of(re.compile("t.*")) == re.compile("t.*")
    assert arguments.subscription_of("^t.*") == re.compile("^t.*")
    assert arguments.subscription_of(ServerRegex("t.*")) == ServerRegex("t.*")


@pytest.mark.parametrize("given", [[], ["a b"], [5], "t*"])
def test_what_is_no_topic_is_refused(given: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        arguments.subscription_of(given)


def test_offsets_to_commit_are_numbers_values_or_records() -> None:
    assert arguments.offsets_of(None) is None
    assert arguments.offsets_of({("t", 0): 5, B: OffsetAndMetadata(6, "m")}) == {
        A: OffsetAndMetadata(5),
        B: OffsetAndMetadata(6, "m"),
    }
    records = [ConsumerRecord("t", 0, 7), ConsumerRecord("t", 0, 3), ConsumerRecord("t", 1, 2, leader_epoch=4)]
    assert arguments.offsets_of(records) == {A: OffsetAndMetadata(8), B: OffsetAndMetadata(3, "", 4)}
    assert arguments.offsets_of(records[0]) == {A: OffsetAndMetadata(8)}


@pytest.mark.parametrize("given", [{A: -1}, {A: "5"}, [5], {"t": 5}])
def test_what_is_no_offset_is_refused(given: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        arguments.offsets_of(given)


def test_times_are_milliseconds_or_datetimes() -> None:
    moment = datetime(2020, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))
    assert arguments.timestamp_of(moment) == arguments.timestamp_of(datetime(2020, 1, 1)) == 1_577_836_800_000
    assert arguments.timestamp_of(datetime(2020, 1, 1, tzinfo=UTC)) == 1_577_836_800_000
    assert arguments.timestamp_of(12.7) == 12
    with pytest.raises(ValueError, match="milliseconds"):
        arguments.timestamp_of(-1)
    with pytest.raises(ValueError, match="milliseconds"):  # -1 asks a broker for the end of the log, -2 for its start
        arguments.timestamp_of(datetime(1969, 12, 31, 23, 59, 59, 999_000, UTC))


def test_seeks_take_offsets_commits_and_records() -> None:
    assert arguments.seek_target(A, 5) == (A, 5, None)
    assert arguments.seek_target(("t", 0), OffsetAndMetadata(5, "", 2)) == (A, 5, 2)
    assert arguments.seek_target(ConsumerRecord("t", 1, 9), None) == (B, 9, None)
    for wrong in (True, None, -3):
        with pytest.raises((TypeError, ValueError)):
            arguments.seek_target(A, wrong)


def test_leaving_is_a_choice() -> None:
    assert [arguments.leave_option(each) for each in (None, True, False)] == [
        LeaveOption.DEFAULT,
        LeaveOption.LEAVE_GROUP,
        LeaveOption.REMAIN_IN_GROUP,
    ]


@pytest.mark.parametrize("given", [None, 5])
def test_subscription_to_what_is_no_collection_is_refused(given: Any) -> None:
    with pytest.raises(TypeError, match="takes topic names or a compiled pattern, not"):
        arguments.subscription_of(given)


@pytest.mark.parametrize("given", ["yesterday", None, True])
def test_what_is_no_time_is_refused(given: Any) -> None:
    with pytest.raises(TypeError, match="a time is a datetime or a number of milliseconds"):
        arguments.timestamp_of(given)


@pytest.mark.parametrize(("offset", "error"), [("5", TypeError), (-1, ValueError)])
def test_seek_with_a_record_checks_the_offset_beside_it(offset: Any, error: type[Exception]) -> None:
    record: Any = ConsumerRecord("t", 1, 7, 0, None, None)
    assert arguments.seek_target(record, None) == (B, 7, None)
    with pytest.raises(error, match="seek"):
        arguments.seek_target(record, offset)


def test_commit_of_what_is_no_record_is_refused() -> None:
    with pytest.raises(TypeError, match="commit"):
        arguments.offsets_of(5)


def test_callback_that_cannot_be_called_is_refused() -> None:
    given: Any = 5
    assert arguments.callback_of(None) is None
    assert arguments.callback_of(print) is print
    with pytest.raises(TypeError, match="must be a callable, not 5"):
        arguments.callback_of(given)


# A consumer's settings and deserializers.


def test_deserializers_are_made_and_bytes_need_none() -> None:
    options = consumer_options("h:1", None, {"value_deserializer": "json"})
    key, value = options.deserializers
    assert key is None
    assert value is not None
    assert value("t", (), b'{"a": 1}') == {"a": 1}


def test_kafkas_names_are_taken_too() -> None:
    config = {
        "bootstrap.servers": "h:1",
        "group.id": "g",
        "value.deserializer": "org.apache.kafka.common.serialization.StringDeserializer",
    }
    options = consumer_options(None, config, {})
    assert options.settings.group_id == "g"
    assert options.deserializers[1] is not None


def test_a_python_path_names_a_deserializer() -> None:
    options = consumer_options("h:1", None, {"value_deserializer": "json:loads"})
    assert options.deserializers[1] is not None
    assert options.deserializers[1]("t", (), b"[1]") == [1]


def test_mistakes_are_told_when_the_consumer_is_made() -> None:
    with pytest.raises(OttlaError, match="heartbeat"):
        consumer_options("h:1", None, {"heatbeat_interval_ms": 5})
