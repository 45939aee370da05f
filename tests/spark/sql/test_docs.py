"""The SQL blocks of docs/sql.md are run in order; results that the page shows are compared."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.spark.sql.conftest import Sql

from ottla.testing import Broker

PAGE = Path(__file__).parents[3] / "docs" / "sql.md"
BLOCK = re.compile(r"```sql\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)


@pytest.mark.slow
def test_every_block_of_the_page_works(spark: Any) -> None:
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    compared = 0
    with Broker() as broker:
        sql = Sql(spark, broker)
        broker.create_topic("customers_raw", partitions=1)
        sql.send("customers_raw", ("ann", "Oslo"))
        for block, shown in blocks:
            rows = sql(block)
            assert sql.screen.warnings == []
            if shown:
                heading, *lines = shown.splitlines()
                assert sql.screen.columns == heading.split()
                assert [" ".join(line.split()) for line in lines] == [" ".join(map(str, row)) for row in rows]
                compared += 1
        sql.runner.close()
    assert (len(blocks), compared) == (7, 3)
    spark.conf.set("spark.sql.shuffle.partitions", "2")
