"""A node's settings: Kafka's stock files, defaults, and the error texts of invalid settings."""

import pytest
from tests.support.cases.config_files import COMBINED as SMALLEST
from tests.support.cases.config_files import REFUSED, STRICTER, TAKEN, Changes, file_of

from ottla.config.broker import BrokerConfig
from ottla.config.broker_keys import BROKER_KEYS
from ottla.config.broker_log import BrokerLogConfig
from ottla.config.keys import ConfigKey
from ottla.config.listeners import Listener, Voter
from ottla.config.values import ConfigType, InvalidConfig

MAP = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL"
COMMON = {
    "num.network.threads": "3",
    "num.io.threads": "8",
    "socket.send.buffer.bytes": "102400",
    "socket.receive.buffer.bytes": "102400",
    "socket.request.max.bytes": "104857600",
    "num.partitions": "1",
    "num.recovery.threads.per.data.dir": "2",
    "offsets.topic.replication.factor": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "log.retention.hours": "168",
    "log.segment.bytes": "1073741824",
    "log.retention.check.interval.ms": "300000",
}
# What Kafka 4.3's config/server.properties, broker.properties and controller.properties set.
COMBINED = COMMON | {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.bootstrap.servers": "localhost:9093",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "inter.broker.listener.name": "PLAINTEXT",
    "advertised.listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": MAP,
    "log.dirs": "/tmp/kraft-combined-logs",
}
BROKER = COMMON | {
    "process.roles": "broker",
    "node.id": "2",
    "controller.quorum.bootstrap.servers": "localhost:9093",
    "listeners": "PLAINTEXT://localhost:9092",
    "inter.broker.listener.name": "PLAINTEXT",
    "advertised.listeners": "PLAINTEXT://localhost:9092",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": MAP,
    "log.dirs": "/tmp/kraft-broker-logs",
}
CONTROLLER = COMMON | {
    "process.roles": "controller",
    "node.id": "1",
    "controller.quorum.bootstrap.servers": "localhost:9093",
    "listeners": "CONTROLLER://:9093",
    "advertised.listeners": "CONTROLLER://localhost:9093",
    "controller.listener.names": "CONTROLLER",
    "log.dirs": "/tmp/kraft-controller-logs",
}


def config(base: dict[str, str] = SMALLEST, /, **changes: str | None) -> BrokerConfig:
    """`base` with `changes`, whose names have `_` for `.`; None removes a setting."""
    settings = base | {name.replace("_", "."): text for name, text in changes.items() if text is not None}
    for name, text in changes.items():
        if text is None:
            del settings[name.replace("_", ".")]
    return BrokerConfig.from_settings(settings, hostname="host.example")


def test_stock_combined_file() -> None:
    node = config(COMBINED)
    assert (node.node_id, node.is_broker, node.is_controller) == (1, True, True)
    assert node.broker_listeners == (Listener("PLAINTEXT", "", 9092, "PLAINTEXT"),)
    assert node.controller_listeners == (Listener("CONTROLLER", "", 9093, "PLAINTEXT"),)
    assert node.advertised_listeners == (Listener("PLAINTEXT", "localhost", 9092, "PLAINTEXT"),)
    assert node.advertised_controller_listeners == (Listener("CONTROLLER", "localhost", 9093, "PLAINTEXT"),)
    assert node.controller_quorum_bootstrap_servers == (("localhost", 9093),)
    assert node.inter_broker_listener_name == "PLAINTEXT"
    assert node.log.log_dirs == ("/tmp/kraft-combined-logs",)
    assert node.offsets_topic_replication_factor == 1


def test_stock_broker_file() -> None:
    node = config(BROKER)
    assert (node.is_broker, node.is_controller, node.controller_listeners) == (True, False, ())


def test_stock_controller_file() -> None:
    node = config(CONTROLLER)
    assert (node.is_broker, node.is_controller) == (False, True)
    assert (node.broker_listeners, node.advertised_listeners) == ((), ())
    assert node.advertised_controller_listeners == (Listener("CONTROLLER", "localhost", 9093, "PLAINTEXT"),)


def test_a_listener_advertises_itself_and_the_machine_for_an_empty_host() -> None:
    node = config()
    assert node.advertised_listeners == (Listener("PLAINTEXT", "host.example", 9092, "PLAINTEXT"),)
    assert node.advertised_controller_listeners == (Listener("CONTROLLER", "127.0.0.1", 9093, "PLAINTEXT"),)


def test_broker_id_is_accepted_as_node_id() -> None:
    assert config(node_id=None, broker_id="4").node_id == 4
    assert config(node_id="4", broker_id="4").node_id == 4


def test_voters_and_addresses_with_brackets() -> None:
    node = config(controller_quorum_voters="7@[::1]:9093, 8@b:1")
    assert node.controller_quorum_voters == (Voter(7, "::1", 9093), Voter(8, "b", 1))


def test_connection_limits_of_addresses_and_listeners() -> None:
    limits = {"max.connections": "9", "max.connections.per.ip.overrides": "::1:5,a:6"}
    node = BrokerConfig.from_settings(SMALLEST | limits | {"listener.name.plaintext.max.connections": "3"})
    assert node.max_connections_per_ip_overrides == {"::1": 5, "a": 6}
    assert (node.max_connections_of("PLAINTEXT"), node.max_connections_of("CONTROLLER")) == (3, 9)
    node = BrokerConfig.from_settings(SMALLEST | {"listener.name.controller.max.connection.creation.rate": "4"})
    assert node.max_connection_creation_rate_of("CONTROLLER") == 4
    assert node.max_connection_creation_rate_of("PLAINTEXT") == 2**31 - 1


def test_one_port_for_two_families() -> None:
    assert len(config(listeners="PLAINTEXT://127.0.0.1:9092,B://[::1]:9092,CONTROLLER://:9093",
                      listener_security_protocol_map=MAP + ",B:PLAINTEXT").listeners) == 3  # fmt: skip


@pytest.mark.parametrize(("base", "changes"), TAKEN, ids=[str(changes) for _, changes in TAKEN])
def test_accepts_what_apache_kafka_accepts(base: dict[str, str], changes: Changes) -> None:
    BrokerConfig.from_settings(file_of(base, changes))


@pytest.mark.parametrize(
    ("base", "changes", "sentence"), REFUSED + STRICTER, ids=[str(changes) for _, changes, _ in REFUSED + STRICTER]
)
def test_refuses_with_one_clear_sentence(base: dict[str, str], changes: Changes, sentence: str) -> None:
    with pytest.raises(InvalidConfig) as refused:
        BrokerConfig.from_settings(file_of(base, changes))
    assert sentence in str(refused.value)
    assert refused.value.name in BROKER_KEYS


def test_a_controller_on_all_addresses_advertises_its_voter_address() -> None:
    node = config(listeners="PLAINTEXT://:9092,CONTROLLER://0.0.0.0:9093", controller_quorum_voters="7@c.example:1234")
    assert node.advertised_controller_listeners == (Listener("CONTROLLER", "c.example", 1234, "PLAINTEXT"),)
    node = config(listeners="PLAINTEXT://[::]:9092,CONTROLLER://0.0.0.0:9093")
    assert node.advertised_controller_listeners == (Listener("CONTROLLER", "host.example", 9093, "PLAINTEXT"),)
    assert node.advertised_listeners == (Listener("PLAINTEXT", "host.example", 9092, "PLAINTEXT"),)


def test_a_snapshot_never_changes() -> None:
    node = config()
    with pytest.raises(AttributeError, match="never changes"):
        node.node_id = 3
    assert node == config()
    assert node != config(num_partitions="2")
    assert "node.id=7" in repr(node)


PYTHON_TYPES: dict[ConfigType, type] = {
    ConfigType.BOOLEAN: bool,
    ConfigType.SHORT: int,
    ConfigType.INT: int,
    ConfigType.LONG: int,
    ConfigType.STRING: str,
    ConfigType.LIST: tuple,
    ConfigType.PASSWORD: str,
}
SPELLED_OUT = {
    "listener_security_protocol_map",
    "max_connections_per_ip_overrides",
    "listener_max_connections",
    "listener_max_connection_creation_rate",
}


def test_every_attribute_is_a_setting_of_the_declared_type() -> None:
    keys: dict[str, ConfigKey] = {key.attribute: key for key in BROKER_KEYS.values()}
    made = {"log", "authorizer", "advertised_controller_listeners", "listener_max_connections", "listener_security"}
    node = config()
    for attribute, declared in BrokerConfig.__annotations__.items():
        if attribute in made | SPELLED_OUT:
            continue
        key = keys[attribute]
        value = getattr(node, attribute)
        assert value is None or isinstance(value, PYTHON_TYPES[key.type]), attribute
        assert declared.partition("[")[0].partition(" |")[0] == PYTHON_TYPES[key.type].__name__, attribute
        if attribute not in ("node_id", "process_roles", "listeners", "controller_listener_names", "advertised_listeners",
                             "inter_broker_listener_name", "controller_quorum_bootstrap_servers"):  # fmt: skip
            assert value == key.default, attribute
    assert node.log == BrokerLogConfig()


@pytest.mark.parametrize(
    ("changes", "urls"),
    [
        ({}, ()),
        ({"ottla.schema.registry.port": "0"}, ()),
        ({"ottla.schema.registry.port": "8081"}, ("http://127.0.0.1:8081",)),
        ({"ottla.schema.registry.port": "8081", "ottla.schema.registry.host": "0.0.0.0"}, ("http://127.0.0.1:8081",)),
        ({"ottla.schema.registry.port": "8081", "ottla.schema.registry.host": "::"}, ("http://[::1]:8081",)),
        ({"ottla.schema.registry.port": "1", "confluent.schema.registry.url": "http://a:1, http://b:2"}, ("http://a:1", "http://b:2")),
    ],
)  # fmt: skip
def test_schema_ids_are_checked_with_the_registry_that_is_named_or_beside_the_node(
    changes: dict[str, str], urls: tuple[str, ...]
) -> None:
    assert BrokerConfig.from_settings({**SMALLEST, **changes}).schema_registry_urls == urls
