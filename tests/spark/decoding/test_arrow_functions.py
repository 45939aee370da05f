"""Spark functions of plain functions of Arrow arrays."""

from __future__ import annotations

import warnings
from typing import Any

import pyarrow.compute as pc

from ottla.spark.decoding.plain import arrow_function


def test_the_function_gets_arrays_and_spark_does_not_warn(spark: Any) -> None:
    def doubled(column: Any) -> Any:
        return pc.multiply(column, 2)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        function = arrow_function(doubled, "bigint")
    assert [row[0] for row in spark.range(3).select(function("id")).collect()] == [0, 2, 4]
