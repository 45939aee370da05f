"""The ports and settings of a cluster on one machine."""

import pytest

from ottla.cli.node.cluster_settings import cluster_settings, default_ports
from ottla.config.broker import BrokerConfig

PORTS = [(9092, 19092), (9093, 19093), (9094, 19094)]


def test_controllers_listen_ten_thousand_ports_above_their_brokers() -> None:
    assert default_ports(9092, 3) == PORTS
    assert default_ports(55_533, 3)[-1] == (55_535, 65_535)


def test_ports_without_room_are_refused_with_the_highest_that_has_it() -> None:
    with pytest.raises(ValueError, match="Choose a port up to 55533"):
        default_ports(55_534, 3)


def test_every_node_is_broker_and_voter_in_a_folder_of_its_own() -> None:
    nodes = [BrokerConfig.from_settings(each) for each in cluster_settings("127.0.0.1", PORTS, "/d")]
    assert [each.node_id for each in nodes] == [1, 2, 3]
    for node in nodes:
        assert node.is_broker
        assert node.is_controller
        assert node.controller_quorum_voters == tuple((number, "127.0.0.1", 19091 + number) for number in (1, 2, 3))
        assert {each.port for each in node.listeners} == {9091 + node.node_id, 19091 + node.node_id}
    assert [each["log.dirs"] for each in cluster_settings("h", PORTS, "/d")] == ["/d/node-1", "/d/node-2", "/d/node-3"]


def test_ipv6_host_needs_no_brackets() -> None:
    assert cluster_settings("::1", PORTS, "/d") == cluster_settings("[::1]", PORTS, "/d")
    assert cluster_settings("::1", PORTS, "/d")[0]["controller.quorum.voters"].startswith("1@[::1]:19092,")
