"""The settings of the nodes of a cluster for tests.

Each node has three listeners: PLAINTEXT for clients, NODES for the other brokers, CONTROLLER for the quorum. So a cut between
nodes and one between a node and its clients can be told apart by the port.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ottla.broker.cluster_settings import cluster_settings
from ottla.testing.settings import HOST, node_settings

PORTS_PER_NODE: Final = 3
NODES_MAX: Final = 9
NODE_LISTENER: Final = "NODES"
QUICK: Final[Mapping[str, str]] = {
    # Kafka's defaults are 1 s, 1 s and 2 s: a new controller would take up to 4 s, and the first one 2 s.
    "controller.quorum.election.timeout.ms": "200",
    "controller.quorum.election.backoff.max.ms": "200",
    "controller.quorum.fetch.timeout.ms": "1000",
    # 9 s and 2 s: a broker that was killed keeps its partitions, and its id, as long as its session lasts.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "300",
}
OWN: Final = (
    "node.id",
    "process.roles",
    "listeners",
    "advertised.listeners",
    "listener.security.protocol.map",
    "inter.broker.listener.name",
    "controller.listener.names",
    "controller.quorum.voters",
    "controller.quorum.bootstrap.servers",
)
"""Settings that the cluster gives its nodes; the log directories are refused for a single broker, too."""


class NodePorts(NamedTuple):
    """Where a node listens."""

    clients: int
    controller: int
    nodes: int


def node_ports(ports: Sequence[int]) -> list[NodePorts]:
    """The ports of each node, node 1 first."""
    return [NodePorts(*ports[at : at + PORTS_PER_NODE]) for at in range(0, len(ports), PORTS_PER_NODE)]


def check_config(config: Mapping[str, object], nodes: int) -> None:
    """`ValueError` for settings that do not exist or that a cluster has to choose itself."""
    node_settings(config, 0, "")
    for name in OWN:
        if name in config:
            raise ValueError(f"{name} cannot be set for a cluster for tests: each node has its own")
    if not 1 <= nodes <= NODES_MAX:
        raise ValueError(f"nodes={nodes}: a cluster for tests has 1 to {NODES_MAX} nodes")


def all_settings(config: Mapping[str, object], ports: Sequence[NodePorts], data: str) -> list[dict[str, str]]:
    """The settings of every node, node 1 first; those of `config` take precedence."""
    own = cluster_settings(HOST, [(each.clients, each.controller) for each in ports], data)
    found = []
    for settings, each in zip(own, ports, strict=True):
        given = node_settings({**QUICK, **config}, each.clients, settings["log.dirs"])
        del given["controller.quorum.bootstrap.servers"]
        chosen = {
            "node.id": settings["node.id"],
            "listeners": f"{settings['listeners']},{NODE_LISTENER}://{HOST}:{each.nodes}",
            "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,{NODE_LISTENER}:PLAINTEXT",
            "inter.broker.listener.name": NODE_LISTENER,
            "controller.quorum.voters": settings["controller.quorum.voters"],
        }
        found.append({**given, **chosen})
    return found
