"""Numbers in the bytes of Kafka's serializers."""

from __future__ import annotations

import struct
import warnings
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from ottla.spark import decode
from ottla.spark.decoding.decode import ALIASES, FORMATS, decoder_for
from ottla.spark.decoding.plain import KINDS, NumberDecoder, arrow_function, decode_numbers
from ottla.spark.errors import SparkOptionError

CASES = {
    "int16": (">h", [0, -1, 32767, -32768]),
    "int32": (">i", [0, -1, 2**31 - 1, -(2**31)]),
    "int64": (">q", [0, -1, 2**63 - 1, -(2**63)]),
    "float32": (">f", [0.0, -1.5, float("inf")]),
    "float64": (">d", [0.0, -1.5, 1e300]),
    "bool": (">B", [True, False]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_are_read_and_other_lengths_refused(kind: str) -> None:
    layout, numbers = CASES[kind]
    packed = [struct.pack(layout, number) for number in numbers]
    values = [None, *packed, b"", b"nine bytes"[:9], None]
    found = decode_numbers(pa.array(values, pa.binary()), kind).to_pylist()
    assert [row["decoded"] for row in found] == [None, *numbers, None, None, None]
    size = struct.calcsize(layout)
    article = "an" if kind.startswith("int") else "a"
    refusals = [f"{length} bytes long: {article} {kind} has {size}" for length in (0, 9)]
    assert [row["reason"] for row in found] == [None] * (len(numbers) + 1) + refusals + [None]


def test_slices_and_empty_arrays_are_read() -> None:
    column = pa.array([struct.pack(">q", number) for number in range(10)], pa.binary())
    assert decode_numbers(column.slice(3, 4), "int64").field("decoded").to_pylist() == [3, 4, 5, 6]
    assert len(decode_numbers(column.slice(0, 0), "int64")) == 0


def test_a_boolean_is_0_or_1() -> None:
    found = decode_numbers(pa.array([b"\x01", b"\x02"], pa.binary()), "bool").to_pylist()
    assert found == [
        {"decoded": True, "reason": None},
        {"decoded": None, "reason": "no boolean: its byte is neither 0 nor 1"},
    ]


def test_keys_and_values_of_a_dataframe_are_decoded_together(spark: Any) -> None:
    rows = [(struct.pack(">q", 7), b"seven"), (b"short", b"five"), (None, None), (struct.pack(">q", 8), b"\xff")]
    frame = spark.createDataFrame(rows, "key binary, value binary")
    found = decode(frame, key="long", value="str").collect()
    assert [(row.key, row.value) for row in found] == [(7, "seven"), (None, None), (None, None), (None, None)]
    reasons = [row._error and row._error.reason for row in found]
    assert reasons == [None, "the key is 5 bytes long: an int64 has 8", None, "the value is not valid UTF-8"]


UUID = "0F8FAD5B-D9CB-469F-A165-70867728950E"


def test_uuids_are_texts_of_36_characters(spark: Any) -> None:
    rows = spark.createDataFrame([(UUID.encode(), b"raw\xff"), (b"0f8fad5b", b"x"), (None, None)], "key binary, value binary")
    found = decode(rows, key="uuid", value="bytes").collect()
    assert [row.key for row in found] == [UUID.lower(), None, None]
    assert [row._error and row._error.reason for row in found] == [None, "the key is no UUID: 0f8fad5b", None]
    assert bytes(found[0].value) == b"raw\xff"


def test_every_alias_is_a_format() -> None:
    assert set(ALIASES.values()) <= set(FORMATS)
    assert isinstance(decoder_for("LONG", "key", None, None, {}), NumberDecoder)


def test_an_unknown_format_is_answered_with_the_ones_there_are() -> None:
    with pytest.raises(SparkOptionError, match="key='protobuf' is no format that decode knows; there are json, avro"):
        decoder_for("protobuf", "key", None, None, {})


def test_the_function_gets_arrays_and_spark_does_not_warn(spark: Any) -> None:
    def doubled(column: Any) -> Any:
        return pc.multiply(column, 2)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        function = arrow_function(doubled, "bigint")
    assert [row[0] for row in spark.range(3).select(function("id")).collect()] == [0, 2, 4]
