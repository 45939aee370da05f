"""Tables in foreachBatch."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.spark import each_batch
from ottla.spark.errors import SparkOptionError


def test_outside_of_a_query_a_name_is_needed(spark: Any) -> None:
    with pytest.raises(SparkOptionError, match="each_batch cannot see the query's id here: give it a name"):
        each_batch("ottla_delta", path="x")(spark.range(1), 0)


def test_a_name_takes_the_place_of_the_querys_id(spark: Any, tmp_path: Any) -> None:
    deltalake = pytest.importorskip("deltalake")
    write = each_batch("ottla_delta", name="mine", path=str(tmp_path / "t"))
    for batch_id in (0, 0, 1):
        write(spark.range(2), batch_id)
    table = deltalake.DeltaTable(tmp_path / "t")
    assert table.to_pyarrow_table().num_rows == 4
    assert table.transaction_version("mine") == 1
