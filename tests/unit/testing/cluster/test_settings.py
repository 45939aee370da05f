"""The settings of the nodes."""

import pytest

from ottla.config.broker import BrokerConfig
from ottla.testing.cluster.settings import OWN, all_settings, check_config, node_ports

PORTS = node_ports(range(7001, 7010))


def test_every_node_has_a_listener_for_clients_nodes_and_controllers() -> None:
    nodes = [BrokerConfig.from_settings(each) for each in all_settings({}, PORTS, "/d")]
    assert [each.node_id for each in nodes] == [1, 2, 3]
    assert [{one.name: one.port for one in each.listeners} for each in nodes] == [
        {"PLAINTEXT": 7001, "CONTROLLER": 7002, "NODES": 7003},
        {"PLAINTEXT": 7004, "CONTROLLER": 7005, "NODES": 7006},
        {"PLAINTEXT": 7007, "CONTROLLER": 7008, "NODES": 7009},
    ]
    assert {each.inter_broker_listener_name for each in nodes} == {"NODES"}
    assert nodes[0].controller_quorum_voters == tuple((node, "127.0.0.1", 6999 + 3 * node) for node in (1, 2, 3))


def test_settings_of_the_test_take_precedence() -> None:
    settings = all_settings({"broker.session.timeout.ms": 9000, "num.partitions": 6}, PORTS, "/d")
    assert {each["broker.session.timeout.ms"] for each in settings} == {"9000"}
    assert {each["num.partitions"] for each in settings} == {"6"}


@pytest.mark.parametrize("name", [*OWN, "log.dirs"])
def test_what_the_cluster_chooses_cannot_be_set(name: str) -> None:
    with pytest.raises(ValueError, match=rf"^{name.replace('.', '[.]')} cannot be set for a "):
        check_config({name: "1"}, 3)


@pytest.mark.parametrize("count", [0, 10])
def test_too_few_or_too_many_nodes_are_refused(count: int) -> None:
    with pytest.raises(ValueError, match=f"nodes={count}: a cluster for tests has 1 to 9 nodes"):
        check_config({}, count)


def test_a_misspelt_setting_is_refused_with_the_right_one() -> None:
    with pytest.raises(ValueError, match=r"num\.partition is no broker setting .* num\.partitions"):
        check_config({"num.partition": 3}, 3)
