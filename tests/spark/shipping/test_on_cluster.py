"""`ottla pipeline run --master spark://…` on a standalone cluster of two workers whose Python has no Ottla."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.spark.shipping.shop import check_results, fill, good_orders, run_pipeline, run_python, write_shop, write_tables
from tests.support.servers.postgres_server import PostgresServer
from tests.support.servers.spark_cluster import SparkCluster, python_without_ottla

from ottla.testing import Broker

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return python_without_ottla(tmp_path_factory.mktemp("workers") / "python")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, programs: Path) -> Iterator[SparkCluster]:
    with SparkCluster(tmp_path_factory.mktemp("cluster"), programs) as found:
        yield found


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as found:
        fill(found)
        yield found


def test_pipeline_gives_every_result_once_on_workers_without_ottla(
    tmp_path: Path, cluster: SparkCluster, programs: Path, broker: Broker
) -> None:
    pytest.importorskip("deltalake")
    folder = write_shop(tmp_path / "shop")
    done = run_pipeline(folder, broker, "--master", cluster.master)
    assert done.returncode == 0, done.stdout + done.stderr
    check_results(folder, broker, programs, cluster.folder)
    # The next run continues: nothing is written twice.
    done = run_pipeline(folder, broker, "--master", cluster.master)
    assert done.returncode == 0, done.stdout + done.stderr
    check_results(folder, broker, programs, cluster.folder)


def test_postgres_and_iceberg_tables_get_every_row_once(
    tmp_path: Path, cluster: SparkCluster, broker: Broker, postgres: PostgresServer
) -> None:
    catalogs = pytest.importorskip("pyiceberg.catalog")
    properties = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/warehouse"}
    folder = write_tables(tmp_path / "tables", postgres.url, properties)
    for _ in range(2):  # the second run continues: nothing is written twice
        done = run_pipeline(folder, broker, "--master", cluster.master)
        assert done.returncode == 0, done.stdout + done.stderr
        assert postgres.execute("SELECT id, amount FROM cluster_orders ORDER BY id") == [
            (each, float(each)) for each in good_orders()
        ]
        rows = catalogs.load_catalog("default", **properties).load_table("shop.orders").scan().to_arrow().to_pylist()
        assert sorted(row["id"] for row in rows) == good_orders()


def test_example_of_the_reference_page_reads_a_topic_on_the_cluster(
    tmp_path: Path, cluster: SparkCluster, broker: Broker
) -> None:
    page = (Path(__file__).parents[3] / "docs" / "spark.md").read_text(encoding="utf-8")
    (example,) = [each for each in re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL) if "local_session" in each]
    where = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": "orders"}
    rest = f"print('rows', spark.read.format('ottla').options(**{where}).load().count())\nspark.stop()\n"
    done = run_python(tmp_path, "-c", example.replace("spark://host:7077", cluster.master) + rest)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rows 60" in done.stdout


def test_worker_without_pyarrow_is_one_sentence(tmp_path: Path, cluster: SparkCluster, broker: Broker) -> None:
    venv.create(tmp_path / "bare", with_pip=False, symlinks=True)
    python = tmp_path / "bare" / "bin" / "python"
    done = run_pipeline(write_shop(tmp_path / "shop"), broker, "--master", cluster.master, PYSPARK_PYTHON=str(python))
    assert done.returncode == 1
    assert f"ottla: the Python of a worker ({python} on " in done.stderr.splitlines()[-1]
    assert "has no pyarrow" in done.stderr
    assert len(done.stderr.splitlines()) == 2, done.stderr


def test_worker_of_another_python_is_one_sentence(tmp_path: Path, cluster: SparkCluster, broker: Broker) -> None:
    minor = sys.version_info[1]
    # Spark's own code needs Python 3.10. A program of that name may be a shim that does not start.
    names = [f"python3.{each}" for each in range(10, 16) if each != minor]
    python = next((each for each in names if shutil.which(each) and subprocess.run([each, "-V"]).returncode == 0), None)
    if python is None:
        pytest.skip("there is no Python of another version on the PATH")
    done = run_pipeline(write_shop(tmp_path / "shop"), broker, "--master", cluster.master, PYSPARK_PYTHON=python)
    assert done.returncode == 1
    assert f" and this is Python 3.{minor}: they must be the same" in done.stderr.splitlines()[-1]
    assert len(done.stderr.splitlines()) == 2, done.stderr
