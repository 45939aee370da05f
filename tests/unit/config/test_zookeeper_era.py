"""A file that was written for Kafka with ZooKeeper: everything to change is said at once."""

import pytest

from ottla.config.broker import BrokerConfig
from ottla.config.notices import REMOVED
from ottla.config.values import InvalidConfig

STOCK = {
    "broker.id": "7",
    "listeners": "PLAINTEXT://:9092",
    "log.dirs": "/tmp/kafka-logs",
    "num.partitions": "1",
    "zookeeper.connect": "localhost:2181",
    "zookeeper.connection.timeout.ms": "18000",
    "inter.broker.protocol.version": "2.8",
}


def lines_for(settings: dict[str, str]) -> list[str]:
    with pytest.raises(InvalidConfig) as refused:
        BrokerConfig.from_settings(settings)
    return str(refused.value).splitlines()


def test_stock_file_gets_every_change_at_once() -> None:
    first, *changes, last = lines_for(STOCK)
    assert "written for Kafka with ZooKeeper" in first
    assert changes == [
        "  add      process.roles=broker,controller",
        "  replace  broker.id=7 by node.id=7",
        "  replace  listeners=PLAINTEXT://:9092 by listeners=PLAINTEXT://:9092,CONTROLLER://:9093",
        "  add      controller.listener.names=CONTROLLER",
        "  add      controller.quorum.bootstrap.servers=localhost:9093",
        f"  remove   inter.broker.protocol.version ({REMOVED['inter.broker.protocol.version']})",
        "  remove   zookeeper.connect",
        "  remove   zookeeper.connection.timeout.ms",
    ]
    assert "ottla storage format --standalone" in last


@pytest.mark.parametrize(
    "settings",
    [
        STOCK,
        {"zookeeper.connect": "localhost:2181"},
        {"zookeeper.connect": "localhost:2181", "port": "1", "host.name": "localhost", "advertised.host.name": "here"},
        STOCK
        | {
            "broker.id": "-1",
            "listeners": "INNER://:9093,OUTER://:9094",
            "listener.security.protocol.map": "INNER:PLAINTEXT,OUTER:PLAINTEXT",
            "inter.broker.listener.name": "INNER",
        },
    ],
)
def test_file_changed_as_told_is_taken(settings: dict[str, str]) -> None:
    changed = dict(settings)
    for line in lines_for(settings)[1:-1]:
        action, text = line.split(maxsplit=1)
        old, _, new = text.rpartition(" by ")
        assert action in ("add", "replace", "remove")
        if action != "add":
            del changed[(old or new).split("=")[0].split(" ")[0]]
        if action != "remove":
            name, _, value = new.partition("=")
            changed[name] = value
    config = BrokerConfig.from_settings(changed)
    assert (config.is_broker, config.is_controller) == (True, True)


def test_hosts_and_ports_become_listeners() -> None:
    old = {"host.name": "inner", "port": "9093", "advertised.host.name": "outer", "advertised.port": "1234"}
    lines = lines_for({"broker.id": "0", "zookeeper.connect": "localhost:2181", **old})
    assert "  add      listeners=PLAINTEXT://inner:9093,CONTROLLER://:9094" in lines
    assert "  add      advertised.listeners=PLAINTEXT://outer:1234" in lines
    assert "  remove   port (listeners has it)" in lines
    assert "  remove   advertised.port (advertised.listeners has it)" in lines


def test_values_that_cannot_be_are_told_along() -> None:
    lines = lines_for(STOCK | {"num.partitions": "many", "log.retention.hours": "long", "host.name": "x"})
    assert "  correct  num.partitions='many': must be a whole number" in " ".join(lines)
    assert sum(line.startswith("  correct  ") for line in lines) == 2
    assert "  remove   host.name (use listeners)" in lines


def test_what_would_be_refused_next_is_told_along() -> None:
    lines = lines_for(STOCK | {"listeners": "SSL://:9092"})
    assert any(line.startswith("  correct  brokers would reach each other at listener PLAINTEXT") for line in lines)


def test_file_without_zookeeper_gets_the_short_sentence() -> None:
    assert lines_for({"node.id": "1"}) == [
        "process.roles is not set: a node that does it all has process.roles=broker,controller"
    ]
