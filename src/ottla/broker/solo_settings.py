"""The settings of a node that is a cluster of its own: what `ottla up` and brokers for tests run with."""

from __future__ import annotations

from typing import Final

NODE_ID: Final = 1


def solo_settings(host: str, port: int, data: str) -> dict[str, str]:
    """A node on `host:port` that keeps everything in the folder `data`. Internal topics get as many replicas as fit: one."""
    if ":" in host and not host.startswith("["):
        host = f"[{host}]"  # IPv6
    return {
        "process.roles": "broker,controller",
        "node.id": str(NODE_ID),
        "listeners": f"PLAINTEXT://{host}:{port},CONTROLLER://{host}:0",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": f"{host}:0",  # this node's own port, whichever it gets
        "log.dirs": data,
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        # Kafka waits 3 s for more members before a group's first rebalance, which spares large groups a second one.
        "group.initial.rebalance.delay.ms": "0",
    }
