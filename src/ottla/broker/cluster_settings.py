"""The settings of a cluster on one machine: each node is broker and controller, in a folder and at ports of its own."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.broker.solo_settings import solo_settings

REPLICAS_MAX = 3
"""How many replicas topics get, if there are so many nodes: two failures are survived, as in Kafka's own defaults."""


def cluster_settings(host: str, ports: Sequence[tuple[int, int]], data: str) -> list[dict[str, str]]:
    """The settings of every node: node 1 first. All are voters of the quorum; their data is in `data`/node-N.

    `ports` are the broker's and the controller's port of each node. Topics get three replicas where three nodes are.
    """
    replicas = min(len(ports), REPLICAS_MAX)
    host = f"[{host}]" if ":" in host and not host.startswith("[") else host
    voters = ",".join(f"{node}@{host}:{controller}" for node, (_, controller) in enumerate(ports, start=1))
    nodes = []
    for node, (broker, controller) in enumerate(ports, start=1):
        settings = solo_settings(host, broker, f"{data}/node-{node}")
        del settings["controller.quorum.bootstrap.servers"]
        nodes.append(
            {
                **settings,
                "node.id": str(node),
                "listeners": f"PLAINTEXT://{host}:{broker},CONTROLLER://{host}:{controller}",
                "controller.quorum.voters": voters,
                "default.replication.factor": str(replicas),
                "offsets.topic.replication.factor": str(replicas),
                "transaction.state.log.replication.factor": str(replicas),
                "transaction.state.log.min.isr": str(max(1, replicas - 1)),
            }
        )
    return nodes
