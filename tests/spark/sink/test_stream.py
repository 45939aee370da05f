"""Streams into topics on Spark: at least once, exactly once, and what a failure leaves."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.spark.sink.sink_work import PARTITIONS, STEPS, VARIABLE, await_file, committed_pairs, open_ids

from ottla import Admin, Producer
from ottla.spark.sink.writers import query_in
from ottla.testing import Broker

RECORDS = 40
KEYS = 7
QUICK = ("decision:written",)

Start = Callable[..., Any]


@pytest.fixture
def start(spark: Any, shared_broker: Broker, topic: str, out: str, tmp_path: Path) -> Start:
    """Start a query from `topic` to `out`, in batches of twenty records."""

    def run(**options: Any) -> Any:
        where = {"kafka.bootstrap.servers": shared_broker.bootstrap_servers}
        reader = spark.readStream.format("ottla").options(**where, subscribe=topic, startingOffsets="earliest")
        rows = reader.option("maxOffsetsPerTrigger", 20).load().selectExpr("key", "concat('r', cast(value as string)) as value")
        writer = rows.writeStream.format("ottla").options(**where, topic=out, **options)
        return writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()

    return run


def fill(broker: Broker, topic: str, first: int = 0, partition: int | None = None) -> None:
    with Producer(broker.bootstrap_servers) as producer:
        numbers = range(first, first + RECORDS)
        keys = [b"k%d" % (number % KEYS) for number in numbers]
        assert producer.send_many(topic, [b"%d" % n for n in numbers], keys=keys, partition=partition).wait(30) == RECORDS


def check_once_and_in_order(broker: Broker, out: str, count: int) -> None:
    """Every input has one result that read_committed readers see, and each key's results are in order."""
    by_key: dict[bytes | None, list[int]] = {}
    for key, value in committed_pairs(broker.bootstrap_servers, out, PARTITIONS):
        by_key.setdefault(key, []).append(int(value.removeprefix(b"r")))
    assert by_key == {b"k%d" % key: [number for number in range(count) if number % KEYS == key] for key in range(KEYS)}


def test_a_stream_is_written_exactly_once(
    shared_broker: Broker, topic: str, out: str, start: Start, admin: Admin, tmp_path: Path
) -> None:
    for round_ in range(2):
        fill(shared_broker, topic, round_ * RECORDS)
        query = start(exactlyOnce="true")
        assert query.awaitTermination(120)
        check_once_and_in_order(shared_broker, out, (round_ + 1) * RECORDS)
    assert open_ids(admin, str(query.id)) == []
    assert query_in(f"file://{tmp_path}/checkpoint") == str(query.id)
    listed = admin.list_transactions(id_pattern=rf"ottla-sink\.{query.id}\..*")
    assert len(listed) <= 5, "ids are used again from batch to batch"


@pytest.mark.parametrize("step", [step if step in QUICK else pytest.param(step, marks=pytest.mark.slow) for step in STEPS])
def test_a_stream_whose_process_is_killed_at_a_step_is_written_once(
    step: str, shared_broker: Broker, topic: str, out: str, start: Start, admin: Admin
) -> None:
    folder = Path(os.environ[VARIABLE])
    fill(shared_broker, topic)
    (folder / "reached").unlink(missing_ok=True)
    (folder / "stop-at").write_text(step, encoding="utf-8")
    query = start(exactlyOnce="true")
    os.kill(int(await_file(folder / "reached").split()[0]), signal.SIGKILL)
    with pytest.raises(Exception, match=r"(?i)python worker|crash|EOF|exit"):
        query.awaitTermination(120)
    again = start(exactlyOnce="true")
    assert again.awaitTermination(120)
    assert again.id == query.id
    check_once_and_in_order(shared_broker, out, RECORDS)
    assert open_ids(admin, str(query.id)) == []


@pytest.mark.slow
def test_a_query_that_is_stopped_amid_a_task_leaves_nothing_open(
    shared_broker: Broker, topic: str, out: str, start: Start, admin: Admin
) -> None:
    folder = Path(os.environ[VARIABLE])
    fill(shared_broker, topic, partition=0)  # one partition: one task
    (folder / "reached").unlink(missing_ok=True)
    (folder / "stop-at").write_text("task:flushed", encoding="utf-8")
    query = start(exactlyOnce="true")
    await_file(folder / "reached")
    assert len(open_ids(admin, str(query.id))) == 1
    query.stop()
    assert open_ids(admin, str(query.id)) == []
    assert committed_pairs(shared_broker.bootstrap_servers, out, PARTITIONS) == []
    assert start(exactlyOnce="true").awaitTermination(120)
    check_once_and_in_order(shared_broker, out, RECORDS)


@pytest.mark.slow
def test_a_row_that_cannot_be_written_fails_the_batch_whole(
    spark: Any, shared_broker: Broker, topic: str, out: str, start: Start, admin: Admin, tmp_path: Path
) -> None:
    fill(shared_broker, topic)
    query = start(exactlyOnce="true", **{"kafka.max.request.size": "70"})
    with pytest.raises(Exception, match=r"row 0 of task \d .* is too large"):
        query.awaitTermination(120)
    assert committed_pairs(shared_broker.bootstrap_servers, out, PARTITIONS) == []
    assert open_ids(admin, str(query.id)) == []


def test_a_checkpoint_that_is_not_on_this_disk_names_no_query(tmp_path: Path) -> None:
    assert [query_in(each) for each in (None, "hdfs://host/folder", str(tmp_path))] == [None] * 3
