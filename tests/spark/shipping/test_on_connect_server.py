"""`ottla pipeline run --remote sc://…` on a Spark Connect server, whose Python must have Ottla."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.spark.shipping.shop import check_results, fill, run_ottla, run_pipeline, write_shop
from tests.support.servers.spark_cluster import (
    FOR_SERVERS,
    HANG_S,
    SMALL_JAVA,
    ConnectServer,
    python_with_ottla,
    python_without_ottla,
)

from ottla.testing import Broker

pytestmark = pytest.mark.slow


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as found:
        fill(found)
        yield found


def test_pipeline_gives_every_result_once_on_a_server_with_ottla(tmp_path: Path, broker: Broker) -> None:
    pytest.importorskip("deltalake")
    programs, folder = python_with_ottla(tmp_path / "python"), write_shop(tmp_path / "shop")
    with ConnectServer(tmp_path / "connect", programs) as server:
        done = run_pipeline(folder, broker, "--remote", server.remote)
        queried = run_ottla(
            tmp_path,
            *(
                "sql",
                "-b",
                broker.bootstrap_servers,
                "--remote",
                server.remote,
                "--catalog",
                str(tmp_path / "catalog"),
                "--json",
            ),
            "CREATE STREAM orders (id BIGINT, amount DOUBLE) WITH (kafka_topic='orders', value_format='json'); "
            "SELECT count(*) AS n, sum(amount) AS total FROM orders",
        )
    assert queried.returncode == 0, queried.stdout + queried.stderr
    assert json.loads(queried.stdout.splitlines()[-1]) == {"n": 58, "total": 1730.0}
    assert done.returncode == 0, done.stdout + done.stderr
    assert "keep_grades\t10 rows" in done.stdout
    check_results(folder, broker, programs, programs.parent)


def test_server_without_ottla_is_one_sentence(tmp_path: Path, broker: Broker) -> None:
    programs = python_without_ottla(tmp_path / "python", FOR_SERVERS)
    with ConnectServer(tmp_path / "connect", programs) as server:
        done = run_pipeline(write_shop(tmp_path / "shop"), broker, "--remote", server.remote)
    assert done.returncode == 1
    assert f"ottla: the Python of the Spark Connect server ({programs}/python" in done.stderr.splitlines()[-1]
    assert "No module named 'ottla'" in done.stderr
    assert len(done.stderr.splitlines()) == 2, done.stderr


PLAIN_PROGRAM = """
import sys
import ottla.spark
from pyspark.sql import SparkSession
builder = SparkSession.builder.remote(sys.argv[1]) if sys.argv[1:] else SparkSession.builder.master("local[1]")
spark = builder.getOrCreate()
for try_it in (
    lambda: spark.read.format("ottla").option("subscribe", "t").load().show(),
    lambda: spark.readStream.format("ottla").option("subscribe", "t").load().writeStream.format("ottla").start(),
    lambda: spark.range(1).write.format("ottla").option("topic", "t").save(),
):
    try:
        try_it()
    except Exception as error:
        print(type(error).__name__, error)
"""


def test_plain_program_on_a_server_without_ottla_is_told_what_to_install(tmp_path: Path) -> None:
    programs = python_without_ottla(tmp_path / "python", FOR_SERVERS)
    with ConnectServer(tmp_path / "connect", programs) as server:
        check_plain_program({}, server.remote)


def test_plain_program_whose_spark_uses_another_python_is_told_what_to_install(tmp_path: Path) -> None:
    """As without PYSPARK_PYTHON: Spark then takes the first python3 on the PATH."""
    programs = python_without_ottla(tmp_path / "python")
    check_plain_program({"PYSPARK_PYTHON": str(programs / "python"), "JDK_JAVA_OPTIONS": SMALL_JAVA})


def check_plain_program(environment: dict[str, str], *remote: str) -> None:
    hidden = {"PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden} | environment
    command = [sys.executable, "-c", PLAIN_PROGRAM, *remote]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, env=environment, check=False)
    lines = done.stdout.splitlines()
    assert [line for line in lines if "data source: ottla. It is not installed there: run pip install" not in line] == []
    assert len(lines) == 3, done.stdout + done.stderr
