"""Brokers as commands show them, and their ids for shell completion."""

import click
import pytest
from tests.support.nodes.fake_node import FakeNetwork

from ottla.cli.brokers import complete_brokers


def test_ids_are_completed(network: FakeNetwork, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTTLA_BOOTSTRAP_SERVERS", raising=False)
    monkeypatch.setattr("ottla.cli.common.running.make_network", lambda: network)
    context = click.Context(click.Command("describe"))
    assert complete_brokers(context, click.Argument(["brokers"]), "") == ["1", "2"]
    assert complete_brokers(context, click.Argument(["brokers"]), "2") == ["2"]
