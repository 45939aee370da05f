"""Serializers write the bytes of Kafka's, take what users bring, and say what is wrong with a value."""

import json
import math
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from tests.support.cases.golden import read_golden

from ottla.client_core.serializers import FORMS, OTHER_NAMES, refuse_unserialized, resolve_serializer
from ottla.errors import ConfigError, SerializationError

ROWS = read_golden("clients/serializers.jsonl.gz")
HEADERS = [("h", b"v")]

READ: dict[str, Callable[[str], Any]] = {
    "int16": int,
    "int32": int,
    "int64": int,
    "float32": float,
    "float64": float,
    "bool": "true".__eq__,
    "uuid": UUID,
    "str": lambda text: bytes.fromhex(text).decode("utf-16-be"),
}


def serialized(chosen: object, value: object, *, is_key: bool = False) -> bytes | None:
    serialize = resolve_serializer(chosen, is_key=is_key)
    assert serialize is not None
    return serialize("t", HEADERS, value)


def test_bytes_are_those_of_apache_kafka() -> None:
    assert {row["form"].split()[0] for row in ROWS} == set(READ)
    for row in ROWS:
        form, _, encoding = row["form"].partition(" ")
        serialize = resolve_serializer(form, is_key=False, encoding=encoding or "utf-8")
        assert serialize is not None
        found = serialize("t", (), READ[form](row["value"]))
        assert found is not None
        assert found.hex() == row["bytes"], row


@pytest.mark.parametrize(
    ("chosen", "value", "expected"),
    [
        (str, "é", b"\xc3\xa9"),
        ("string", "x", b"x"),
        (int, 258, b"\0\0\0\0\0\0\1\2"),
        ("int", 258, b"\0\0\0\0\0\0\1\2"),
        ("Integer", 258, b"\0\0\1\2"),
        (float, 1, b"\x3f\xf0\0\0\0\0\0\0"),
        (bool, True, b"\1"),
        (UUID, UUID(int=1), b"00000000-0000-0000-0000-000000000001"),
        ("json", {"a": [1, "é", None]}, '{"a":[1,"é",null]}'.encode()),
    ],
)
def test_forms_are_chosen_by_name_and_type(chosen: object, value: object, expected: bytes) -> None:
    assert serialized(chosen, value) == expected


@pytest.mark.parametrize("chosen", [None, "bytes", bytes, bytearray, memoryview])
def test_bytes_need_no_serializer(chosen: object) -> None:
    assert resolve_serializer(chosen, is_key=True) is None


@pytest.mark.parametrize("chosen", [*FORMS[1:], *OTHER_NAMES, type(None), str.encode])
def test_null_stays_null(chosen: object) -> None:
    assert serialized(chosen, None) is None


class Own:
    """A serializer as Kafka's interface has it."""

    def serialize(self, topic: str, headers: object, value: object) -> bytes:
        return f"{topic} {headers} {value}".encode()


class OwnWithoutHeaders:
    def serialize(self, topic: str, value: object) -> bytes:
        return f"{topic} {value}".encode()


class NeedsArguments:
    def __init__(self, registry: str) -> None: ...

    def serialize(self, topic: str, headers: object, value: object) -> bytes:
        return b""


def of_topic(topic: str, value: object) -> bytes:
    return f"{topic}:{value}".encode()


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (lambda value: value.encode(), b"v"),
        (str.encode, b"v"),
        (lambda *values: repr(values).encode(), b"('v',)"),
        (lambda value, unused="x": (value + unused).encode(), b"vx"),
        (of_topic, b"t:v"),
        (partial(of_topic, "fixed"), b"fixed:v"),
        (Own(), b"t [('h', b'v')] v"),
        (Own, b"t [('h', b'v')] v"),
        (OwnWithoutHeaders(), b"t v"),
        (lambda value: bytearray(b"mutable"), b"mutable"),
        (lambda value: None, None),
    ],
)
def test_own_serializers_are_called_in_their_form(chosen: object, expected: bytes | None) -> None:
    found = serialized(chosen, "v")
    assert found == expected
    assert found is None or type(found) is bytes


@pytest.mark.parametrize(
    ("chosen", "text"),
    [
        ("jsn", "value_serializer='jsn': there is no such form; use bytes, str, json"),
        (7, "give one of bytes, str, json"),
        (lambda: b"", "it needs 0 arguments"),
        (lambda a, b, c: b"", r"it needs 3 arguments, but is called with \(value\) or \(topic, value\)"),
        (NeedsArguments, "the class cannot be made without arguments .*; pass an object of it"),
    ],
)
def test_wrong_choice_is_refused_when_the_client_is_made(chosen: object, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        resolve_serializer(chosen, is_key=False)


def test_unknown_encoding_is_refused() -> None:
    with pytest.raises(ConfigError, match="key_serializer: Python knows no encoding 'utf-9'"):
        resolve_serializer("str", is_key=True, encoding="utf-9")


@pytest.mark.parametrize(
    ("chosen", "value", "text"),
    [
        (
            "str",
            5,
            'the value for topic t cannot be serialized as str: it is int; set value_serializer="int", or convert it first',
        ),
        ("str", {}, 'it is dict; set value_serializer="json"'),
        ("str", b"x", "it is bytes; leave value_serializer out to send bytes, or decode them first"),
        (
            "str",
            Decimal(1),
            "it is decimal.Decimal; convert it first, or pass a callable that returns bytes as value_serializer",
        ),
        ("str", "\ud800", "surrogates not allowed; send it as bytes"),
        ("int", 2**63, "9223372036854775808 is out of its range; use a wider form, or str"),
        ("int16", 40_000, "40000 is out of its range"),
        ("int", 10**200, "the number is out of its range"),
        ("int", "5", 'it is str; set value_serializer="str"'),
        ("float", 10**400, "the number is out of its range"),
        ("float32", 1e300, "1e[+]300 is out of its range; use float64"),
        ("float", "1", "it is str"),
        ("bool", 1, "it is int"),
        ("uuid", "00000000-0000-0000-0000-000000000001", "it is str"),
        ("void", 0, "it is int"),
        ("json", {1, 2}, r"it is set \(.*not JSON serializable\); convert it first, or pass a callable"),
        ("json", math.nan, "it is float"),
        (
            lambda value: value.encode(),
            5,
            "the value for topic t, int, cannot be serialized: value_serializer raised AttributeError",
        ),
        (json.dumps, {}, "value_serializer returned str for the value for topic t; it must return bytes; add .encode"),
        (lambda value: 5, {}, "value_serializer returned int for the value for topic t; it must return bytes$"),
    ],
)
def test_bad_value_is_named_with_advice(chosen: object, value: object, text: str) -> None:
    with pytest.raises(SerializationError, match=text):
        serialized(chosen, value)


def test_cause_is_kept_and_the_key_is_named() -> None:
    with pytest.raises(SerializationError, match=r"the key for topic t.*key_serializer") as caught:
        serialized("str", 5, is_key=True)
    assert isinstance(caught.value.__cause__, TypeError)


def test_own_serialization_error_passes_unchanged() -> None:
    mine = SerializationError("no schema")

    def refuse(value: object) -> bytes:
        raise mine

    with pytest.raises(SerializationError) as caught:
        serialized(refuse, 1)
    assert caught.value is mine


def test_value_without_a_serializer_is_refused_with_advice() -> None:
    error = refuse_unserialized("t", {}, is_key=False)
    assert str(error) == (
        "the value for topic t is dict, and without a value_serializer only bytes can be sent; "
        'set value_serializer="json", or convert it first'
    )
    assert "the key for topic t is str" in str(refuse_unserialized("t", "k", is_key=True))
