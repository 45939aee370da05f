"""Offsets as JSON."""

from __future__ import annotations

import json

import pytest

from ottla import TopicPartition
from ottla.ids import METADATA_TOPIC_ID, ZERO_UUID, Uuid
from ottla.spark.errors import SparkOptionError
from ottla.spark.options import Options
from ottla.spark.source.offsets import (
    EARLIEST,
    LATEST,
    Where,
    from_json,
    ids_from_json,
    is_replaced,
    parse_numbers,
    read_where,
    to_json,
)
from ottla.spark.source.options import NAMES


def test_the_same_offsets_make_the_same_text() -> None:
    one = {TopicPartition("b", 0): 1, TopicPartition("a", 10): 2, TopicPartition("a", 9): 3}
    other = dict(reversed(one.items()))
    assert json.dumps(to_json(one)) == json.dumps(to_json(other)) == '{"a": {"9": 3, "10": 2}, "b": {"0": 1}}'
    assert from_json(to_json(one)) == one


def test_ids_of_topics_are_topics_without_partitions() -> None:
    """So Spark's own source, `startingOffsets` and what reads the progress of a query take no notice of them."""
    one = {TopicPartition("a", 0): 2, TopicPartition("b", 0): 1}
    found = to_json(one, {"a": METADATA_TOPIC_ID, "b": ZERO_UUID, "c": METADATA_TOPIC_ID})
    assert json.dumps(found) == '{"a": {"0": 2}, "b": {"0": 1}, "a@AAAAAAAAAAAAAAAAAAAAAQ": {}}'
    assert from_json(found) == parse_numbers("startingOffsets", json.dumps(found), "an offset") == one
    assert ids_from_json(found) == {"a": METADATA_TOPIC_ID}
    assert ids_from_json({"a": {"0": 2}, "a@?": {}}) == {}


def test_an_id_that_is_not_known_replaces_nothing() -> None:
    assert is_replaced("a", {"a": METADATA_TOPIC_ID}, {"a": Uuid(b"other")})
    for now in ({}, {"a": ZERO_UUID}, {"a": METADATA_TOPIC_ID}):
        assert not is_replaced("a", {"a": METADATA_TOPIC_ID}, now)
        assert not is_replaced("a", now, {"a": METADATA_TOPIC_ID})


@pytest.mark.parametrize("text", ["", "5", "[1]", '{"t": [1]}', '{"t": {"a": 1}}', '{"t": {"0": "1"}}', '{"t": {"0": true}}'])
def test_other_texts_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(SparkOptionError, match="startingOffsets must be JSON such as"):
        parse_numbers("startingOffsets", text, "an offset")


def where(side: str, default: int = EARLIEST, **options: str) -> Where:
    return read_where(Options(options, NAMES, "source"), side, default)


def test_words_numbers_times_and_groups_are_understood() -> None:
    assert where("starting").everywhere == EARLIEST
    assert where("starting", LATEST, startingOffsets=" Latest ").everywhere == LATEST
    assert where("starting", startingOffsets='{"t": {"0": 5, "1": -2}}').offsets == {
        TopicPartition("t", 0): 5,
        TopicPartition("t", 1): EARLIEST,
    }
    assert where("starting", startingOffsets="group: readers").group == "readers"
    assert where("ending", LATEST, endingOffsetsByTimestamp='{"t": {"0": 7}}').times_ms == {TopicPartition("t", 0): 7}


def test_a_time_goes_before_offsets() -> None:
    found = where("starting", startingTimestamp="5", startingOffsetsByTimestamp='{"t": {"0": 7}}', startingOffsets="earliest")
    assert (found.time_ms, found.times_ms, found.offsets) == (5, None, None)


def test_only_the_end_may_lie_after_all_records_without_a_word() -> None:
    assert not where("starting", startingTimestamp="5").is_latest_without_match
    assert where("ending", endingTimestamp="5").is_latest_without_match
    assert where("starting", startingTimestamp="5", startingOffsetsByTimestampStrategy="latest").is_latest_without_match


@pytest.mark.parametrize(
    ("side", "default", "options", "words"),
    [
        ("starting", EARLIEST, {"startingOffsets": "latest"}, "leaves a batch read nothing"),
        ("starting", EARLIEST, {"startingOffsets": '{"t": {"0": -1}}'}, "-1 \\(latest\\) for t-0"),
        ("ending", LATEST, {"endingOffsets": "earliest"}, "endingOffsets is earliest"),
        ("ending", LATEST, {"endingOffsets": '{"t": {"0": -2}}'}, "endingOffsets has -2 for t-0"),
        ("starting", LATEST, {"startingOffsets": "group:"}, "group: without a name"),
        ("starting", LATEST, {"startingOffsets": "group"}, "must be earliest, latest, group:NAME or JSON"),
        ("starting", LATEST, {"startingOffsets": '{"t": 5}'}, "startingOffsets must be JSON such as"),
        ("starting", LATEST, {"startingOffsets": '{"t": {"x": 5}}'}, "startingOffsets must be JSON such as"),
        ("starting", LATEST, {"startingOffsets": '{"t": {"0": -3}}'}, "startingOffsets has -3 for t-0"),
        ("starting", LATEST, {"startingTimestamp": "today"}, "startingTimestamp is 'today'"),
        ("starting", LATEST, {"startingOffsetsByTimestamp": '{"t": {"0": -1}}'}, "give milliseconds since 1970"),
        ("starting", LATEST, {"startingOffsetsByTimestampStrategy": "first"}, "must be error or latest"),
    ],
)
def test_a_mistake_is_named(side: str, default: int, options: dict[str, str], words: str) -> None:
    with pytest.raises(SparkOptionError, match=words):
        where(side, default, **options)


def test_what_is_looked_up_twice_may_differ() -> None:
    assert where("starting", LATEST, startingOffsets="earliest").is_repeatable
    assert where("starting", LATEST, startingOffsets='{"t": {"0": 4}}').is_repeatable
    assert where("starting", LATEST, startingTimestamp="4").is_repeatable
    assert not where("starting", LATEST).is_repeatable
    assert not where("starting", LATEST, startingOffsets='{"t": {"0": -1}}').is_repeatable
    assert not where("starting", LATEST, startingOffsets="group:g").is_repeatable
    assert not where("starting", LATEST, startingTimestamp="4", startingOffsetsByTimestampStrategy="latest").is_repeatable
