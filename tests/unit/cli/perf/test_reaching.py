"""A cluster that is not there, and a topic that is not: errors at once."""

import pytest
from tests.support.servers.kafka_server import free_ports
from tests.support.servers.ottla_cli import run_cli

from ottla.cli.perf import reaching
from ottla.testing import Broker


@pytest.mark.parametrize("action", ["produce", "consume", "latency"])
def test_cluster_that_is_not_there_is_an_error_with_advice(action: str) -> None:
    (port,) = free_ports(1)
    said = run_cli("perf", action, "x", "-b", f"localhost:{port}")
    assert said.rc == 1
    assert "Start a node with `ottla up`" in said.err


def test_missing_topic_is_an_error_if_brokers_create_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reaching, "TOPIC_S", 0.2)
    with Broker({"auto.create.topics.enable": "false"}) as broker:
        said = run_cli("perf", "produce", "nothing", "-b", broker.bootstrap_servers)
    assert (said.rc, said.out) == (1, "")
    assert "nothing" in said.err
    assert "`ottla topics list` shows the topics there are" in said.err
