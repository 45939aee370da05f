"""Strings, UUIDs and numbers as Kafka's serializers write them: texts are evaluated in the JVM, numbers by Arrow functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import functions as F

UUID_PATTERN = "^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$"


class TextDecoder:
    """UTF-8 text to string."""

    def __init__(self, side: str) -> None:
        self._side = side

    def stage(self, source: Any) -> Any:
        """The bytes as a string, which may not be valid."""
        return source.cast("string")

    def value(self, staged: Any, source: Any) -> Any:
        """The string."""
        return staged

    def reason(self, staged: Any, source: Any) -> Any:
        """Bytes that are no UTF-8."""
        return F.when(~F.is_valid_utf8(staged), F.lit(f"the {self._side} is not valid UTF-8"))

    def unknown_fields(self, staged: Any, source: Any) -> Any:
        """There are no fields."""
        return None

    def fields(self, staged: Any) -> dict[str, Any]:
        """There are no fields."""
        return {}


class UuidDecoder(TextDecoder):
    """The 36 characters of a UUID to string, in lower case."""

    def value(self, staged: Any, source: Any) -> Any:
        """The UUID's text."""
        return F.lower(staged)

    def reason(self, staged: Any, source: Any) -> Any:
        """Text that is no UUID."""
        shown = F.left(F.make_valid_utf8(staged), F.lit(40))
        return F.when(~staged.rlike(UUID_PATTERN), F.concat(F.lit(f"the {self._side} is no UUID: "), shown))


class BytesDecoder:
    """Bytes as they are."""

    def __init__(self, side: str) -> None:
        self._side = side

    def stage(self, source: Any) -> Any:
        """The bytes."""
        return source

    def value(self, staged: Any, source: Any) -> Any:
        """The bytes."""
        return staged

    def reason(self, staged: Any, source: Any) -> Any:
        """There is no bad record."""
        return F.lit(None).cast("string")

    def unknown_fields(self, staged: Any, source: Any) -> Any:
        """There are no fields."""
        return None

    def fields(self, staged: Any) -> dict[str, Any]:
        """There are no fields."""
        return {}


KINDS = {
    "int16": ("smallint", ">i2"),
    "int32": ("int", ">i4"),
    "int64": ("bigint", ">i8"),
    "float32": ("float", ">f4"),
    "float64": ("double", ">f8"),
    "bool": ("boolean", ">u1"),
}
"""Spark's type, and the bytes as numpy names them."""


def decode_numbers(column: Any, kind: str) -> Any:
    """A struct array with `decoded` and `reason` from an array of binaries; a null stays null."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    layout = np.dtype(KINDS[kind][1])
    size = layout.itemsize
    lengths = pc.fill_null(pc.binary_length(column), size)
    fits = pc.equal(lengths, size)
    # Nulls and values of another length get placeholders, so that the others lie at equal distances.
    usable = pc.if_else(pc.and_(fits, pc.is_valid(column)), column, pa.scalar(bytes(size), column.type))
    numbers = np.frombuffer(_data(usable), dtype=layout, count=len(usable)).astype(layout.newbyteorder("="))
    reasons = pc.if_else(
        fits,
        pa.scalar(None, pa.string()),
        pc.binary_join_element_wise(
            pc.cast(lengths, pa.string()), pa.scalar(f"bytes long: {_article(kind)} {kind} has {size}"), " "
        ),
    )
    is_null = pc.or_(pc.is_null(column), pc.invert(fits))
    if kind == "bool":
        strange = pc.and_(pc.invert(is_null), pc.greater(pa.array(numbers), 1))
        reasons = pc.if_else(strange, pa.scalar("no boolean: its byte is neither 0 nor 1"), reasons)
        is_null = pc.or_(is_null, strange)
        numbers = numbers == 1
    decoded = pc.if_else(is_null, pa.scalar(None, pa.array(numbers).type), pa.array(numbers))
    return pa.StructArray.from_arrays([decoded, reasons], names=["decoded", "reason"])


def _article(kind: str) -> str:
    return "an" if kind.startswith("int") else "a"


def _data(column: Any) -> Any:
    """The bytes of all values, one after the other."""
    import numpy as np

    _, positions, data = column.buffers()
    if data is None:
        return b""
    width = np.int64 if str(column.type).startswith("large") else np.int32
    starts = np.frombuffer(positions, dtype=width)[column.offset : column.offset + len(column) + 1]
    return memoryview(data)[starts[0] : starts[-1]]


class NumberDecoder:
    """A number of one of Kafka's serializers."""

    def __init__(self, side: str, kind: str) -> None:
        self._side = side
        self._kind = kind

    def stage(self, source: Any) -> Any:
        """The number, and the reason if there is none."""
        kind = self._kind

        def decode(column: Any) -> Any:
            return decode_numbers(column, kind)

        return arrow_function(decode, f"decoded {KINDS[kind][0]}, reason string")(source)

    def value(self, staged: Any, source: Any) -> Any:
        """The number."""
        return staged["decoded"]

    def reason(self, staged: Any, source: Any) -> Any:
        """Bytes of another length."""
        return F.concat(F.lit(f"the {self._side} is "), staged["reason"])

    def unknown_fields(self, staged: Any, source: Any) -> Any:
        """There are no fields."""
        return None

    def fields(self, staged: Any) -> dict[str, Any]:
        """There are no fields."""
        return {}


def arrow_function(function: Callable[[Any], Any], kind: str) -> Any:
    """A function of one column, called in Python workers with an Arrow array at a time; `kind` is its result's type, as DDL."""
    import pyarrow as pa
    from pyspark.sql.functions import arrow_udf

    # Spark reads the kind of function off the annotations. In the source they are `Any`: pyarrow is imported late.
    function.__annotations__ = {"column": pa.Array, "return": pa.Array}
    return arrow_udf(function, kind)
