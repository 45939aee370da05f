"""Records and readers for the tests of the source. Readers run in the test's process: what Spark does with them is in
`test_on_spark.py`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ottla import Producer
from ottla.spark import clients
from ottla.spark.schema import source_schema
from ottla.spark.source import lookup
from ottla.spark.source.options import source_options
from ottla.spark.source.readers import BatchReader, StreamReader
from ottla.testing import Broker

BEGAN_MS = int(time.time() * 1000) - 60_000
"""The timestamp of the first record: young enough not to be removed by retention."""
QUICK = {"fetchOffset.numRetries": "1", "fetchOffset.retryIntervalMs": "1"}


@pytest.fixture(autouse=True)
def no_clients_left() -> Iterator[None]:
    """Clients of this process end with the test."""
    yield
    clients.close_all()


@pytest.fixture(autouse=True)
def losses_are_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is gone or made again is believed at once: there is one broker, and it does not lag."""
    monkeypatch.setattr(lookup, "BELIEVED_AFTER_S", 0.0)


@pytest.fixture
def fill(shared_broker: Broker) -> Callable[..., None]:
    """`fill(topic, [10, 0, 5])` adds that many records to each partition, with values and times that count from `first`."""

    def add(topic: str, counts: list[int], first: int = 0) -> None:
        with Producer(shared_broker.bootstrap_servers) as producer:
            for partition, count in enumerate(counts):
                for number in range(first, first + count):
                    producer.send(topic, b"%d" % number, partition=partition, timestamp=BEGAN_MS + number)
            producer.flush(30)

    return add


@pytest.fixture
def stream_reader(shared_broker: Broker) -> Callable[..., StreamReader]:
    """`stream_reader(subscribe="orders", …)`: a reader as a new process of the driver makes it."""

    def make(has_headers: bool = False, **options: Any) -> StreamReader:
        given = {"kafka.bootstrap.servers": shared_broker.bootstrap_servers, **QUICK, **options}
        return StreamReader(source_options(given, is_streaming=True), source_schema(has_headers))

    return make


@pytest.fixture
def batch_reader(shared_broker: Broker) -> Callable[..., BatchReader]:
    """`batch_reader(subscribe="orders", …)`."""

    def make(has_headers: bool = False, **options: Any) -> BatchReader:
        given = {"kafka.bootstrap.servers": shared_broker.bootstrap_servers, **QUICK, **options}
        return BatchReader(source_options(given, is_streaming=False), source_schema(has_headers))

    return make


@pytest.fixture
def rows_of() -> Callable[..., list[tuple[int, int, bytes]]]:
    """(partition, offset, value) of every record that the ranges of a reader hold, sorted."""

    def read(reader: Any, *offsets: Any) -> list[tuple[int, int, bytes]]:
        found = []
        for planned in reader.partitions(*offsets):
            for batch in reader.read(planned):
                columns = (batch.column(name).to_pylist() for name in ("partition", "offset", "value"))
                found += list(zip(*columns, strict=True))
        return sorted(found)

    return read
