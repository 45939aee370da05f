"""The settings of a cluster on one machine: each node is broker and controller, in a folder and at ports of its own."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.broker.solo_settings import solo_settings


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
                "node.id": str(node),
                "listeners": f"PLAINTEXT://{host}:{broker},CONTROLLER://{host}:{controller}",
                "controller.quorum.voters": voters,
            }
        )
    return nodes
