"""Offsets as JSON."""

from __future__ import annotations

import json

import pytest

from ottla import TopicPartition
from ottla.spark.errors import SparkOptionError
from ottla.spark.source.offsets import from_json, parse_numbers, to_json


def test_the_same_offsets_make_the_same_text() -> None:
    one = {TopicPartition("b", 0): 1, TopicPartition("a", 10): 2, TopicPartition("a", 9): 3}
    other = dict(reversed(one.items()))
    assert json.dumps(to_json(one)) == json.dumps(to_json(other)) == '{"a": {"9": 3, "10": 2}, "b": {"0": 1}}'
    assert from_json(to_json(one)) == one


@pytest.mark.parametrize("text", ["", "5", "[1]", '{"t": [1]}', '{"t": {"a": 1}}', '{"t": {"0": "1"}}', '{"t": {"0": true}}'])
def test_other_texts_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(SparkOptionError, match="startingOffsets must be JSON such as"):
        parse_numbers("startingOffsets", text, "an offset")
