"""Deserializers, and numbers as Java prints them."""

import struct

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.cli.consume.formatters import BadData, as_text, find_deserializer

JAVA = "org.apache.kafka.common.serialization."


def shown(name: str, data: bytes) -> str:
    deserializer = find_deserializer(name, "value.deserializer")
    assert deserializer is not None
    return as_text(deserializer(data))


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("string", "schön".encode(), "schön"),
        ("string", b"\xff", "\ufffd"),
        ("bytes", b"a\\b\x00\xff ", "a\\x5Cb\\x00\\xFF "),
        ("integer", b"\xff\xff\xff\xfe", "-2"),
        ("long", b"\0\0\0\0\0\0\0\7", "7"),
        ("short", b"\0\7", "7"),
        ("boolean", b"\1", "true"),
        ("uuid", b"01234567-89AB-cdef-0123-456789abcdef", "01234567-89ab-cdef-0123-456789abcdef"),
        ("hex", b"\x00\xff", "00ff"),
        ("base64", b"\x00\xff", "AP8="),
        ("HEX", b"\x0a", "0a"),
        (f"{JAVA}IntegerDeserializer", b"\0\0\0\1", "1"),
        (f"{JAVA}DoubleDeserializer", struct.pack(">d", 0.1), "0.1"),
    ],
)
def test_value_is_shown_as_its_type(name: str, data: bytes, text: str) -> None:
    assert shown(name, data) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (12345678.9, "1.23456789E7"),
        (-1e300, "-1.0E300"),
        (1.5e-10, "1.5E-10"),
        (123456789012345680.0, "1.2345678901234568E17"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
        (float("nan"), "NaN"),
    ],
)
def test_numbers_as_java_prints_them(value: float, text: str) -> None:
    assert shown("double", struct.pack(">d", value)) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_read_back(value: float) -> None:
    assert float(as_text(value)) == value


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_floats_read_back(value: float) -> None:
    data = struct.pack(">f", value)
    assert struct.pack(">f", float(shown("float", data))) == data


@pytest.mark.parametrize(
    ("name", "data"),
    [("integer", b"abc"), ("long", b"1234"), ("short", b""), ("float", b"12345"), ("double", b"1"), ("boolean", b"2"),
     ("uuid", b"no"), ("void", b"x")],
)  # fmt: skip
def test_bytes_of_another_type_are_refused(name: str, data: bytes) -> None:
    with pytest.raises(BadData):
        shown(name, data)


def test_deserializers_are_found_by_short_and_java_names() -> None:
    assert find_deserializer(f"{JAVA}ByteArrayDeserializer", "x") is None
    for name in ("com.example.AvroDeserializer", "nothing"):
        with pytest.raises(click.UsageError, match=r"value\.deserializer: there is no deserializer"):
            find_deserializer(name, "value.deserializer")
