"""How `ottla pipeline describe` names sources and sinks; tests/spark/pipelines/test_commands.py runs it."""

import resource
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.servers.ottla_cli import run_cli
from tests.support.servers.ottla_server import run_ottla

from ottla.cli.pipeline.describe import _writes_text
from ottla.spark.pipelines.outline import source_text
from ottla.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        for topic in ("orders", "large-orders", "orders-dead"):
            running.create_topic(topic)
        yield running


def pipeline(folder: Path, address: str, **configuration: str) -> Path:
    assert run_cli("pipeline", "init", folder, "-b", address).rc == 0
    with (folder / "spark-pipeline.yml").open("a") as file:  # configuration is its last key
        file.writelines(f"  {name}: {value}\n" for name, value in configuration.items())
    return folder


def test_three_seconds_are_enough(broker: Broker, tmp_path: Path) -> None:
    """Of processor time, with the start of Python: Spark would take ten times that."""
    folder = pipeline(tmp_path / "shop", broker.bootstrap_servers)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = run_ottla("pipeline", "describe", folder)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert "keep_large_orders" in done.stdout, done.stderr
    assert done.stderr == ""
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 3


def test_brokers_that_are_away_are_named_also_before_the_first_run(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
    said = run_cli("pipeline", "describe", pipeline(tmp_path / "shop", address))
    assert said.rc == 0
    assert "keep_large_orders" in said.out
    assert f"the brokers at {address} are away, so the lag is not known: no broker can be reached" in said.err
    assert len(said.err.splitlines()) == 1


LOGIN = {"kafka.security.protocol": "SASL_PLAINTEXT", "kafka.sasl.mechanism": "OAUTHBEARER"}


def test_function_for_tokens_may_be_in_the_pipelines_folder(broker: Broker, tmp_path: Path) -> None:
    """It is found, and the next thing that is wrong is that this broker takes no logins."""
    handler = {"kafka.sasl.login.callback.handler.class": "token_of_shop:token"}
    folder = pipeline(tmp_path / "shop", broker.bootstrap_servers, **LOGIN, **handler)
    missing = run_ottla("pipeline", "describe", folder)
    assert f"the brokers at {broker.bootstrap_servers} were not asked: sasl.login.callback.handler.class=" in missing.stderr
    assert "cannot import token_of_shop" in missing.stderr
    (folder / "token_of_shop.py").write_text("def token(settings):\n    return 'secret'\n")
    for action in ("describe", "validate"):
        found = run_ottla("pipeline", action, folder)
        assert "does not want a login here" in found.stderr + found.stdout


def test_topics_and_files_are_named_shortly() -> None:
    assert source_text("ottla", {"subscribe": "orders"}) == "topic orders"
    assert source_text("ottla", {"topic": "large"}) == "topic large"
    assert source_text("ottla", {}) == "topics of the column topic"
    assert source_text("csv", {"path": "x.csv"}) == "csv x.csv"
    assert source_text("rate", {}) == "rate"
    sink = {"kind": "sink", "target": "out", "format": "ottla", "options": {"topic": "x"}}
    assert _writes_text(sink) == "sink out (topic x)"
    assert _writes_text({"kind": "table", "target": "t"}) == "table t"
