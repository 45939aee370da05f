"""Offsets as JSON."""

from __future__ import annotations

import json

import pytest

from ottla import TopicPartition
from ottla.ids import METADATA_TOPIC_ID, ZERO_UUID, Uuid
from ottla.spark.errors import SparkOptionError
from ottla.spark.source.offsets import from_json, ids_from_json, is_replaced, parse_numbers, to_json


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
