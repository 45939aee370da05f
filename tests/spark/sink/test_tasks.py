"""A task's transaction: none without rows, aborted if the rows fail or the batch is given up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from tests.spark.sink.sink_work import open_ids, options_for

from ottla import Admin
from ottla.spark.errors import SinkError
from ottla.spark.sink.commit import Driver
from ottla.spark.sink.options import SinkOptions
from ottla.spark.sink.writers import Job, write_in_transaction
from ottla.testing import Broker

ROWS = pa.record_batch({"value": [b"a", b"b"]})


def test_a_task_without_rows_opens_no_transaction(options: SinkOptions, query: str, admin: Admin) -> None:
    for batches in ([], [ROWS.slice(0, 0)]):
        result = write_in_transaction(options, Job(query, "run", 0, 0), iter(batches))
        assert (result.rows, result.transaction) == (0, None)
    assert open_ids(admin, query) == []


def test_a_task_that_fails_aborts_its_transaction(options: SinkOptions, query: str, admin: Admin) -> None:
    def batches() -> Iterator[Any]:
        yield ROWS
        raise ValueError("the source failed")

    with pytest.raises(ValueError, match="the source failed"):
        write_in_transaction(options, Job(query, "run", 0, 0), batches())
    assert open_ids(admin, query) == []


def test_a_task_stops_if_the_driver_gives_the_batch_up(options: SinkOptions, query: str, admin: Admin) -> None:
    def batches() -> Iterator[Any]:
        yield ROWS
        Driver(options).abort(query, "run", 0)
        yield ROWS

    with pytest.raises(SinkError, match=r"given up|not written|was not"):
        write_in_transaction(options, Job(query, "run", 0, 3), batches())
    assert open_ids(admin, query) == []


def test_a_timeout_that_the_cluster_refuses_is_named(shared_broker: Broker, out: str, query: str) -> None:
    options = options_for(shared_broker.bootstrap_servers, out, **{"kafka.transaction.timeout.ms": "900001"})
    with pytest.raises(SinkError, match=r"the cluster refuses kafka.transaction.timeout.ms=900001.*transaction.max.timeout.ms"):
        write_in_transaction(options, Job(query, "run", 0, 0), iter([ROWS]))
