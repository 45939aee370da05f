"""Checks of arguments: what passes, and that an error names the argument."""

from enum import IntEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.admin import checks
from ottla.ids import TopicPartition


class Colour(IntEnum):
    UNKNOWN = 0
    DARK_RED = 1


@pytest.mark.parametrize("value", [Colour.DARK_RED, "dark_red", "DARK-RED", " Dark red "])
def test_member_accepts_the_enum_and_its_name(value: Any) -> None:
    assert checks.member(Colour, value, "colour") is Colour.DARK_RED


def test_member_of_a_newer_broker_is_unknown() -> None:
    assert checks.member_or_unknown(Colour, 1) is Colour.DARK_RED
    assert checks.member_or_unknown(Colour, 77) is Colour.UNKNOWN


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: checks.member(Colour, "blue", "colour"), ValueError, "colour is 'blue', but must be one of dark_red"),
        (lambda: checks.listed("abc", "topics"), TypeError, "topics must be a list, not the single value 'abc'"),
        (lambda: checks.listed(None, "topics"), TypeError, "topics must be a list, not None"),
        (lambda: checks.listed(7, "topics"), TypeError, "topics must be a list, not 7"),
        (lambda: checks.texts(["a", ""], "groups"), ValueError, "groups must not be empty"),
        (lambda: checks.texts(["a", 1], "groups"), TypeError, "groups must be a text, not 1"),
        (lambda: checks.new_topic_name("a b", "topics"), ValueError, "topics: .*'a b'"),
        (lambda: checks.topic_name("", "topics"), ValueError, "topics: a topic's name must not be empty"),
        (lambda: checks.topic_name(1, "topics"), TypeError, "topics: a topic's name is a text"),
        (lambda: checks.topic_or_id(b"short", "topics"), ValueError, "topics: a topic id is 16 bytes"),
        (lambda: checks.number(-1, "count", 0), ValueError, "count is -1, but must be from 0"),
        (lambda: checks.number(True, "count"), TypeError, "count must be a whole number, not True"),
        (lambda: checks.number("1", "count"), TypeError, "count must be a whole number"),
        (lambda: checks.partition("ab", "partitions"), TypeError, "partitions: a partition is TopicPartition"),
        (lambda: checks.partitions([("t", -1)], "partitions"), ValueError, "partitions is -1"),
        (lambda: checks.mapping([1], "offsets"), TypeError, "offsets must be a mapping"),
        (lambda: checks.config_text(object(), "configs"), TypeError, "configs must be a text"),
    ],
)
def test_wrong_argument_is_named(call: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call()


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 5))))
def test_partitions_are_kept_in_order_and_once(pairs: list[tuple[str, int]]) -> None:
    found = checks.partitions(pairs, "partitions")
    assert found == list(dict.fromkeys(TopicPartition(*pair) for pair in pairs))
    assert all(isinstance(each, TopicPartition) for each in found)


@pytest.mark.parametrize(
    ("value", "expected"), [("x", "x"), (True, "true"), (5, "5"), (0.5, "0.5"), (["compact", "delete"], "compact,delete")]
)
def test_config_text_is_what_kafka_writes(value: object, expected: str) -> None:
    assert checks.config_text(value, "value") == expected
