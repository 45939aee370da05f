"""Fixtures of the sink's tests: topics, options, and the folder by which a test stops a process at a step."""

from __future__ import annotations

import atexit
import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator

import pytest
from tests.spark.sink.sink_work import PARTITIONS, STOPPING, VARIABLE, options_for

from ottla import Admin
from ottla.spark import clients
from ottla.spark.sink import commit
from ottla.spark.sink.options import SinkOptions
from ottla.testing import Broker

_numbers = itertools.count()

# Spark's Python processes inherit the environment of its JVM, which the first test of any folder starts.
if VARIABLE not in os.environ:
    os.environ[VARIABLE] = tempfile.mkdtemp(prefix="ottla-sink-steps-")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [STOPPING, os.environ.get("PYTHONPATH")]))
    atexit.register(shutil.rmtree, os.environ[VARIABLE], ignore_errors=True)


@pytest.fixture
def query() -> str:
    """A query id of this test's own."""
    return f"query-{next(_numbers)}"


@pytest.fixture
def out(shared_broker: Broker) -> str:
    """A topic to write to, with two partitions."""
    name = f"out-{next(_numbers)}"
    shared_broker.create_topic(name, partitions=PARTITIONS)
    return name


@pytest.fixture
def options(shared_broker: Broker, out: str) -> SinkOptions:
    """Options of an exactly-once sink."""
    return options_for(shared_broker.bootstrap_servers, out)


@pytest.fixture
def admin(shared_broker: Broker) -> Iterator[Admin]:
    """An Admin client."""
    with Admin(shared_broker.bootstrap_servers) as made:
        yield made


@pytest.fixture(scope="session", autouse=True)
def closed_clients(shared_broker: Broker) -> Iterator[None]:
    """The clients that the sink keeps are closed before the broker ends."""
    yield
    commit.close_ledgers()
    clients.close_all()


@pytest.fixture(autouse=True)
def fresh_driver() -> Iterator[None]:
    """No fence is left from another test: each is a new driver."""
    yield
    for fence in commit._fences.values():
        fence.close()
    commit._fences.clear()
