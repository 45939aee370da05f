"""Makes Spark functions of plain functions of Arrow arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def arrow_function(function: Callable[[Any], Any], kind: str) -> Any:
    """A function of one column, called in Python workers with an Arrow array at a time; `kind` is its result's type, as DDL."""
    import pyarrow as pa
    from pyspark.sql.functions import arrow_udf

    # Spark reads the kind of function off the annotations. In the source they are `Any`: pyarrow is imported late.
    function.__annotations__ = {"column": pa.Array, "return": pa.Array}
    return arrow_udf(function, kind)
