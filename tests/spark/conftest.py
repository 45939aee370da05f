"""One Spark session, broker and PostgreSQL for all tests of this folder, which run in one process (tools/run_tests.py)."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.servers.postgres_server import PostgresServer, postgres_programs
from tests.support.servers.tls_server import port_of_tls

from ottla.testing import Broker


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A local session with two cores."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    # The second compiler and the parallel collector pay off only in long runs.
    os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("ottla-tests")
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        # Compiling code for a handful of rows takes longer than interpreting the plan.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.local.dir": str(tmp_path_factory.mktemp("spark")),
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def shared_broker() -> Iterator[Broker]:
    """The broker of all tests; each uses topics of its own."""
    with Broker() as broker:
        yield broker


@pytest.fixture
def topic(shared_broker: Broker, request: pytest.FixtureRequest) -> str:
    """A topic of this test's own, with three partitions."""
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    shared_broker.create_topic(name, partitions=3)
    return name


@pytest.fixture
def read(spark: Any, shared_broker: Broker) -> Callable[..., Any]:
    """A batch reader: `read(subscribe="orders", …)`."""

    def load(**options: Any) -> Any:
        reader = spark.read.format("ottla").option("kafka.bootstrap.servers", shared_broker.bootstrap_servers)
        return reader.options(**options).load()

    return load


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server; each test uses tables of its own."""
    pytest.importorskip("psycopg")
    programs = postgres_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed: there is no initdb on the PATH or in /usr/lib/postgresql")
    server = PostgresServer(programs)
    yield server
    server.close()


@pytest.fixture
def tls_port(tmp_path: Path) -> Iterator[int]:
    with port_of_tls(tmp_path) as port:
        yield port
