"""The settings of a cluster on one machine: each node is broker and controller, in a folder and at ports of its own."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.broker.solo_settings import solo_settings

CONTROLLER_PORTS_FROM = 10_000
"""The controller of a node listens this many ports above its broker: 19092 for 9092."""


def default_ports(port: int, count: int) -> list[tuple[int, int]]:
    """(broker port, controller port) of `count` nodes. `ValueError`, with advice, if there is no room for them."""
    last = port + count - 1 + CONTROLLER_PORTS_FROM
    if last > 65535:
        raise ValueError(
            f"--port {port} leaves no room: the controllers of {count} nodes listen on ports up to {last}, and 65535 is the "
            f"highest. Choose a port up to {65535 - CONTROLLER_PORTS_FROM - count + 1}, or 0 for free ones"
        )
    return [(each, each + CONTROLLER_PORTS_FROM) for each in range(port, port + count)]


def cluster_settings(host: str, ports: Sequence[tuple[int, int]], data: str) -> list[dict[str, str]]:
    """The settings of every node: node 1 first. All are voters of the quorum; their data is in `data`/node-N."""
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
