"""The listener on real queries: offsets in a group, metrics, restarts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ottla import Admin, Producer
from ottla.spark import ProgressListener, offsets_behind_latest
from ottla.spark.errors import SparkOptionError
from ottla.testing import Broker


def committed(broker: Broker, group: str) -> dict[Any, int]:
    with Admin(broker.bootstrap_servers) as admin:
        found = admin.list_consumer_group_offsets([group])[group]
    return {each: offset.offset for each, offset in found.items() if offset is not None}


def test_a_query_and_its_restart_commit_what_they_read(shared_broker: Broker, topic: str, spark: Any, tmp_path: Path) -> None:
    other, group = f"{topic}-other", f"{topic}-group"
    shared_broker.create_topic(other, partitions=1)
    where = {"kafka.bootstrap.servers": shared_broker.bootstrap_servers}

    reports: list[Any] = []

    def run(records: int) -> ProgressListener:
        with Producer(shared_broker.bootstrap_servers) as producer:
            for number in range(records):
                producer.send(topic, b"v", partition=number % 3)
            producer.send(other, b"w")
        load = spark.readStream.format("ottla").options(**where, startingOffsets="earliest")
        rows = load.options(subscribe=topic, maxOffsetsPerTrigger="2").load().union(load.option("subscribe", other).load())
        with ProgressListener(group, where, queries=["followed"]).attach(spark) as listener:
            writer = rows.writeStream.format("noop").queryName("followed").option("checkpointLocation", str(tmp_path / "c"))
            query = writer.trigger(availableNow=True).start()
            assert query.awaitTermination(120)
        reports.append(query.recentProgress)
        return listener

    run(6)
    assert committed(shared_broker, group) == {(topic, 0): 2, (topic, 1): 2, (topic, 2): 2, (other, 0): 1}
    listener = run(3)
    assert committed(shared_broker, group) == {(topic, 0): 3, (topic, 1): 3, (topic, 2): 3, (other, 0): 2}
    first, last = reports[0][0], reports[0][-1]
    # The first batch leaves a record in each of the three partitions.
    assert offsets_behind_latest(first)[0] == {
        "minOffsetsBehindLatest": "1",
        "maxOffsetsBehindLatest": "1",
        "avgOffsetsBehindLatest": "1.0",
    }
    assert [each["maxOffsetsBehindLatest"] for each in offsets_behind_latest(last)] == ["0", "0"]
    found = listener.metrics()["queries"]["followed"]
    assert (found["rows_total"], found["lag"]) == (4, 0)
    assert b'ottla_query_lag_records{query="followed"' in listener.metrics_text()


def test_a_group_needs_a_broker() -> None:
    with pytest.raises(SparkOptionError, match=r"kafka.bootstrap.servers is missing: a listener with a group"):
        ProgressListener("g")
