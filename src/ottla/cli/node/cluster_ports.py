"""The ports of the nodes of `ottla up --nodes`."""

from __future__ import annotations

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
