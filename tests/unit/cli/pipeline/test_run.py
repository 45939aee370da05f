"""`ottla pipeline run`, as far as it needs no Spark; tests/spark/pipelines/test_commands.py has the rest."""

from pathlib import Path

import pytest
from tests.support.servers.ottla_cli import run_cli
from tests.unit.cli.late_broker import LateBroker

from ottla.spark.pipelines import storage
from ottla.spark.pipelines.spec import read_spec
from ottla.testing import Broker


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    assert run_cli("pipeline", "init", tmp_path / "shop").rc == 0
    return tmp_path / "shop"


def test_wrong_schedule_is_refused(folder: Path) -> None:
    said = run_cli("pipeline", "run", folder, "--schedule", "daily")
    assert (said.rc, said.err) == (
        1,
        "ottla: schedule is 'daily': it must be once, continuous, or every with a time, such as every 30s\n",
    )


def test_all_missing_topics_are_named(folder: Path) -> None:
    with Broker() as broker:
        said = run_cli("pipeline", "run", folder, "-b", broker.bootstrap_servers)
    assert said.rc == 1
    assert [line.split(" at ")[0] for line in said.err.splitlines()] == [
        "ottla: there is no topic orders",
        "ottla: there is no topic large-orders",
    ]


def test_broker_that_starts_late_is_waited_for(folder: Path) -> None:
    with LateBroker("large-orders") as late, late.started_by_a_message() as messages:
        said = run_cli("pipeline", "run", folder, "-b", late.address)
    assert messages[0].startswith(f"waiting for a broker at {late.address}")
    assert " of 5 min: " in messages[0]
    assert messages[-1].startswith(f"{late.address} answers after ")
    assert said.err.startswith(f"ottla: there is no topic orders at {late.address}: create it with ")


def test_reset_without_a_terminal_needs_yes(folder: Path) -> None:
    storage.make_folder(storage.checkpoint(read_spec(folder), "keep_large_orders"))
    with Broker() as broker:
        broker.create_topic("orders")
        broker.create_topic("large-orders")
        said = run_cli("pipeline", "run", folder, "--reset", "-b", broker.bootstrap_servers)
    assert said.rc == 2
    assert "--reset deletes the offsets, state and tables of shop: add --yes to say that you mean it" in said.err
    assert Path(storage.checkpoint(read_spec(folder), "keep_large_orders")).exists()


def test_second_run_at_the_same_time_is_refused(folder: Path) -> None:
    with Broker() as broker, storage.locked(read_spec(folder)):
        broker.create_topic("orders")
        broker.create_topic("large-orders")
        said = run_cli("pipeline", "run", folder, "-b", broker.bootstrap_servers)
    assert said.rc == 1
    assert said.err.startswith("ottla: the pipeline shop is already being run by process ")
