"""A broker that goes away under a stream, and comes back."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.testing import Broker

pytestmark = pytest.mark.slow
LONG_S = 120.0


def until(is_true: Callable[[], bool], what: str) -> None:
    deadline_s = time.monotonic() + LONG_S
    while not is_true():
        assert time.monotonic() < deadline_s, f"{what} did not happen within {LONG_S:g} s"
        time.sleep(0.1)


def test_a_stream_waits_for_its_broker_and_can_be_stopped_meanwhile(spark: Any, tmp_path: Path) -> None:
    with Broker(data=tmp_path / "data") as broker:
        broker.create_topic("orders", partitions=2)
        source = spark.readStream.format("ottla").option("kafka.bootstrap.servers", broker.bootstrap_servers)
        rows = source.options(subscribe="orders", startingOffsets="earliest").load()
        query = rows.writeStream.format("memory").queryName("waits").trigger(processingTime="100 milliseconds").start()

        def count() -> int:
            return int(spark.table("waits").count())

        broker.produce("orders", b"before")
        until(lambda: count() == 1, "the first record")
        broker.kill()
        time.sleep(8)  # longer than the first try of a lookup
        assert query.isActive
        broker.start()
        broker.produce("orders", b"after")
        until(lambda: count() == 2, "the record after the restart")
        assert query.exception() is None
        broker.kill()
        time.sleep(2)
        began_s = time.monotonic()
        query.stop()
        assert not query.isActive
        assert time.monotonic() - began_s < 60
        broker.start()
