"""The settings of a node that is a cluster of its own, for `ottla up` and for brokers in tests."""

from __future__ import annotations

from typing import Final

NODE_ID: Final = 1


def solo_settings(host: str, port: int, data: str) -> dict[str, str]:
    """Settings for a node on `host:port` that keeps everything in the folder `data`. Internal topics get one replica."""
    if ":" in host and not host.startswith("["):
        host = f"[{host}]"  # IPv6
    return {
        "process.roles": "broker,controller",
        "node.id": str(NODE_ID),
        "listeners": f"PLAINTEXT://{host}:{port},CONTROLLER://{host}:0",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": f"{host}:0",  # 0: this node's own port, which is chosen at the start
        "log.dirs": data,
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        # Kafka's default is 3 s: it waits for more members, which saves large groups a second rebalance.
        "group.initial.rebalance.delay.ms": "0",
    }
