"""The settings of a cluster on one machine."""

from ottla.broker.cluster_settings import cluster_settings
from ottla.config.broker import BrokerConfig

PORTS = [(9092, 19092), (9093, 19093), (9094, 19094)]


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
