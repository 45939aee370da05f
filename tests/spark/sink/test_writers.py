"""A task's transaction: none without rows, aborted if the rows fail or the batch is given up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.serializers import CloudPickleSerializer
from tests.spark.sink.sink_work import committed, open_ids, options_for

from ottla import Admin
from ottla.spark.errors import SinkError, sentence_of
from ottla.spark.sink.commit import Driver, ledger_of
from ottla.spark.sink.options import SinkOptions
from ottla.spark.sink.protocol import PREFIX, HeldTransaction, TaskResult
from ottla.spark.sink.writers import Held, Job, write_in_transaction
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


def test_a_message_is_read_as_it_was_sent() -> None:
    message = Held(TaskResult("q", "run", 7, 0, 5, HeldTransaction("id", 4000, 1, 0, 5), 12))
    serializer = CloudPickleSerializer()
    assert serializer.loads(serializer.dumps(message)) == message


def test_a_write_is_visible_whole_and_leaves_no_record(
    spark: Any, shared_broker: Broker, options: SinkOptions, out: str, admin: Admin
) -> None:
    rows = spark.range(100, numPartitions=3).selectExpr("cast(id as string) as value", f"'{out}' as topic")
    where = {"kafka.bootstrap.servers": shared_broker.bootstrap_servers, "exactlyOnce": "true"}
    before = ledger_of(options).read_all().keys()
    rows.write.format("ottla").options(**where).mode("append").save()
    assert sorted(map(int, committed(shared_broker.bootstrap_servers, out))) == list(range(100))
    assert ledger_of(options).read_all().keys() == before
    assert open_sink_ids(admin) == []


def test_a_write_with_a_row_that_fails_leaves_nothing(spark: Any, shared_broker: Broker, out: str, admin: Admin) -> None:
    value = "if(id = 70, repeat('x', 2000000), cast(id as string)) as value"
    rows = spark.range(100, numPartitions=2).selectExpr(value, "cast(id as string) as key")
    where = {"kafka.bootstrap.servers": shared_broker.bootstrap_servers, "topic": out}
    for semantics in ("true", "false"):
        with pytest.raises(
            Exception, match=rf"row 20 of task 1 \(key b'70'\) is too large for {out} \(key 2 bytes, value 2000000"
        ):
            rows.write.format("ottla").options(**where, exactlyOnce=semantics).mode("append").save()
        if semantics == "true":
            assert committed(shared_broker.bootstrap_servers, out) == []
    assert open_sink_ids(admin) == []


def test_overwrite_is_refused(spark: Any, shared_broker: Broker, out: str) -> None:
    where = {"kafka.bootstrap.servers": shared_broker.bootstrap_servers, "topic": out}
    with pytest.raises(Exception, match=r'mode\("overwrite"\) cannot empty a topic'):
        spark.range(1).selectExpr("cast(id as string) as value").write.format("ottla").options(**where).mode("overwrite").save()


def open_sink_ids(admin: Admin) -> list[str]:
    return [
        each.transactional_id
        for each in admin.list_transactions(states=["Ongoing"])
        if each.transactional_id.startswith(PREFIX)
    ]


@pytest.mark.parametrize("semantics", ["false", "true"])
def test_tls_and_plain_ports_are_told_apart(spark: Any, shared_broker: Broker, out: str, tls_port: int, semantics: str) -> None:
    """One sentence, without a traceback, in both directions."""
    rows = spark.range(1, numPartitions=1).selectExpr("cast(id as string) as value")
    plain, tls = shared_broker.bootstrap_servers, f"127.0.0.1:{tls_port}"
    for address, protocol, said in (
        (plain, "SSL", "no TLS: set kafka.security.protocol to PLAINTEXT, or give the address of a TLS listener"),
        (tls, "PLAINTEXT", "TLS: set kafka.security.protocol to SSL, or give the address of a plain listener"),
    ):
        where = {"kafka.bootstrap.servers": address, "kafka.security.protocol": protocol, "kafka.max.block.ms": "2000"}
        writer = rows.write.format("ottla").options(**where, topic=out, exactlyOnce=semantics)
        with pytest.raises(PySparkException) as caught:
            writer.mode("append").save()
        assert sentence_of(caught.value) == f"{address} speaks {said}"
        assert "Traceback" not in str(caught.value)
