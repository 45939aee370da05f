"""The settings of a cluster on one machine: each node is broker and controller, in a folder and at ports of its own."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.broker.solo_settings import solo_settings

REPLICAS_MAX = 3


def replication_settings(nodes: int) -> dict[str, str]:
    """Three replicas of everything, as far as there are nodes for them: one node may be down."""
    replicas = str(min(nodes, REPLICAS_MAX))
    return {
        "default.replication.factor": replicas,
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": "2" if nodes >= REPLICAS_MAX else "1",
    }


def cluster_settings(host: str, ports: Sequence[tuple[int, int]], data: str) -> list[dict[str, str]]:
    """The settings of every node: node 1 first. All are voters of the quorum; their data is in `data`/node-N.

    `ports` are the broker's and the controller's port of each node.
    """
    host = f"[{host}]" if ":" in host and not host.startswith("[") else host
    voters = ",".join(f"{node}@{host}:{controller}" for node, (_, controller) in enumerate(ports, start=1))
    nodes = []
    for node, (broker, controller) in enumerate(ports, start=1):
        settings = solo_settings(host, broker, f"{data}/node-{node}")
        del settings["controller.quorum.bootstrap.servers"]
        nodes.append(
            {
                **settings,
                **replication_settings(len(ports)),
                **({} if node == 1 else {"ottla.check.enable": "false"}),  # one machine: its findings are logged once
                "node.id": str(node),
                "listeners": f"PLAINTEXT://{host}:{broker},CONTROLLER://{host}:{controller}",
                "controller.quorum.voters": voters,
            }
        )
    return nodes
