"""Deserializers read the bytes of Kafka's serializers, and a poisoned record is named with its position."""

import math
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases.golden import read_golden

from ottla.client_core.deserializers import resolve_deserializer, undeserializable
from ottla.client_core.serializers import FORMS, resolve_serializer
from ottla.errors import ConfigError

ROWS = read_golden("clients/serializers.jsonl.gz")
HEADERS = [("h", b"v")]


def deserialized(chosen: object, data: bytes, encoding: str = "utf-8") -> Any:
    deserialize = resolve_deserializer(chosen, is_key=False, encoding=encoding)
    assert deserialize is not None
    return deserialize("t", HEADERS, data)


def test_bytes_of_apache_kafka_are_read() -> None:
    for row in ROWS:
        form, _, encoding = row["form"].partition(" ")
        found = deserialized(form, bytes.fromhex(row["bytes"]), encoding or "utf-8")
        if form == "str":
            assert found == bytes.fromhex(row["value"]).decode("utf-16-be")
        elif form.startswith("float"):
            assert found == float(row["value"]) or (math.isnan(found) and row["value"] == "NaN")
        else:
            assert str(found).lower() == row["value"]


values = st.one_of(
    st.tuples(st.just("str"), st.text()),
    st.tuples(st.just("int64"), st.integers(-(2**63), 2**63 - 1)),
    st.tuples(st.just("int32"), st.integers(-(2**31), 2**31 - 1)),
    st.tuples(st.just("int16"), st.integers(-(2**15), 2**15 - 1)),
    st.tuples(st.just("float64"), st.floats(allow_nan=False)),
    st.tuples(st.just("float32"), st.floats(allow_nan=False, width=32)),
    st.tuples(st.just("bool"), st.booleans()),
    st.tuples(st.just("uuid"), st.uuids()),
    st.tuples(
        st.just("json"),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
            max_leaves=10,
        ).filter(lambda value: value is not None),
    ),
)


@given(values)
def test_what_is_serialized_is_read_back(case: tuple[str, Any]) -> None:
    form, value = case
    serialize = resolve_serializer(form, is_key=False)
    assert serialize is not None
    data = serialize("t", (), value)
    assert data is not None
    found = deserialized(form, data)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("chosen", [None, "bytes", bytes])
def test_bytes_need_no_deserializer(chosen: object) -> None:
    assert resolve_deserializer(chosen, is_key=True) is None


class Own:
    """A deserializer as Kafka's interface has it."""

    def deserialize(self, topic: str, headers: object, data: bytes) -> object:
        return topic, headers, data


class OwnWithoutHeaders:
    def deserialize(self, topic: str, data: bytes) -> object:
        return topic, data


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (bytes.decode, "1.5"),
        (lambda data: Decimal(data.decode()), Decimal("1.5")),
        (lambda topic, data: (topic, data), ("t", b"1.5")),
        (Own(), ("t", HEADERS, b"1.5")),
        (Own, ("t", HEADERS, b"1.5")),
        (OwnWithoutHeaders(), ("t", b"1.5")),
        (list, [49, 46, 53]),
    ],
)
def test_own_deserializers_are_called_in_their_form(chosen: object, expected: object) -> None:
    assert deserialized(chosen, b"1.5") == expected


@pytest.mark.parametrize(
    ("chosen", "text"),
    [
        ("strr", "value_deserializer='strr': there is no such form"),
        (7, "give one of bytes, str, json"),
        (lambda a, b, c: b"", r"needs 3 arguments, but is called with \(data\) or \(topic, data\)"),
        (
            type("Odd", (), {"deserialize": lambda self: None})(),
            r"needs 0 arguments, but is called with \(topic, headers, data\)",
        ),
    ],
)
def test_wrong_choice_is_refused_when_the_client_is_made(chosen: object, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        resolve_deserializer(chosen, is_key=False)


def refusal(chosen: object, data: bytes, *, is_key: bool = False) -> str:
    with pytest.raises(Exception) as caught:  # noqa: PT011  # own deserializers raise what they like
        deserialized(chosen, data)
    raw = {"raw_key": data if is_key else b"k", "raw_value": b"v" if is_key else data}
    error = undeserializable(
        caught.value, topic="t", partition=3, offset=41, is_key=is_key, raw_headers=HEADERS, timestamp=9, **raw
    )
    assert (error.topic, error.partition, error.offset, error.is_key, error.timestamp) == ("t", 3, 41, is_key, 9)
    assert (error.raw_key, error.raw_value, error.raw_headers) == (raw["raw_key"], raw["raw_value"], HEADERS)
    assert error.__cause__ is caught.value
    return str(error)


@pytest.mark.parametrize(
    ("chosen", "data", "text"),
    [
        ("str", b"\xff", "it is not text in utf-8"),
        ("int", b"12", "int64 has 8 bytes (2 bytes: 31 32)"),
        ("float32", b"", "float32 has 4 bytes (0 bytes: )"),
        ("bool", b"\x02", "bool is one byte, 0 or 1"),
        ("bool", b"", "bool is one byte, 0 or 1"),
        ("uuid", b"no", "it is not a UUID"),
        ("json", b"{", "it is not JSON"),
        ("json", b"\xff\xfe\xff", "it is not JSON"),
        ("void", b"x", "void is null, without bytes"),
        (
            lambda data: {}[7],
            b"x" * 20,
            "value_deserializer raised KeyError: 7 (20 bytes:",
        ),
    ],
)
def test_poisoned_record_is_named(chosen: object, data: bytes, text: str) -> None:
    found = refusal(chosen, data)
    assert found.startswith(f"the value of the record at offset 41 of t-3 cannot be deserialized: {text}")
    assert found.endswith("; seek to 42 to step past it, or choose another value_deserializer")


def test_poisoned_key_is_named_as_such() -> None:
    assert refusal("int", b"12", is_key=True).startswith("the key of the record at offset 41 of t-3")


@given(st.sampled_from(FORMS[1:]), st.binary(max_size=40))
def test_any_bytes_are_read_or_refused_with_a_value_error(form: str, data: bytes) -> None:
    try:
        deserialized(form, data)
    except ValueError:
        pass


def test_uuid_is_a_uuid() -> None:
    assert deserialized(UUID, b"00000000-0000-0000-0000-00000000000a") == UUID(int=10)
