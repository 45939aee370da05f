"""Lost records, told or passed over."""

from __future__ import annotations

import pytest

from ottla import TopicPartition
from ottla.spark.errors import SourceError
from ottla.spark.source.plan import DataLoss

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


def test_records_that_aged_out_are_named_by_offset() -> None:
    assert DataLoss(True).starts({P0: 5, P1: 9}, {P0: 5, P1: 3}) == {P0: 5, P1: 9}
    with pytest.raises(SourceError, match=r"orders-1 from offset 5 to 8 are gone: retention .* set failOnDataLoss to false"):
        DataLoss(True).starts({P1: 5}, {P1: 9})


def test_reading_goes_on_with_a_warning_where_that_is_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    loss = DataLoss(False)
    assert loss.starts({P1: 5}, {P1: 9}) == {P1: 9}
    loss.gone_partitions([P1, P0])
    loss.recreated(P0, 50, 20)
    texts = [record.getMessage() for record in caplog.records]
    assert "orders-1 from offset 5 to 8 are gone" in texts[0]
    assert texts[1].startswith("orders-0, orders-1 was read before and is gone")
    assert texts[2].startswith("orders-0 was read up to offset 50 and now ends at 20")


def test_a_new_partition_may_only_start_at_0() -> None:
    DataLoss(True).new_partition(P0, 0)
    DataLoss(True).gone_partitions([])
    with pytest.raises(SourceError, match="orders-0 is new, and the records of orders-0 from offset 0 to 2 are gone"):
        DataLoss(True).new_partition(P0, 3)
