"""Warnings for the operator about a `server.properties`: settings without effect, unknown settings, removed settings.

None of them stops the node, because a file written for Kafka must work unchanged. The node logs them at its start.
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla.config.broker_docs import documentation
from ottla.config.broker_keys import BROKER_KEYS, base_name

REMOVED: dict[str, str] = {
    "advertised.host.name": "use advertised.listeners",
    "advertised.port": "use advertised.listeners",
    "broker.id.generation.enable": "ids are given by hand: set node.id",
    "control.plane.listener.name": "the controller has listeners of its own: use controller.listener.names",
    "delegation.token.master.key": "use delegation.token.secret.key",
    "eligible.leader.replicas.enable": "it is a feature of the cluster now: eligible.leader.replicas.version",
    "group.coordinator.new.enable": "the new coordinator is the only one: use group.coordinator.rebalance.protocols",
    "host.name": "use listeners",
    "inter.broker.protocol.version": "the cluster's metadata.version decides: see `ottla storage format --feature`",
    "log.message.downconversion.enable": "old record formats are no longer served; drop it",
    "log.message.format.version": "records have one format; drop it",
    "log.message.timestamp.difference.max.ms": (
        "use log.message.timestamp.before.max.ms and log.message.timestamp.after.max.ms"
    ),
    "offsets.commit.required.acks": "commits always wait for all replicas in sync; drop it",
    "password.encoder.cipher.algorithm": "stored passwords are not encoded any more; drop it",
    "password.encoder.iterations": "stored passwords are not encoded any more; drop it",
    "password.encoder.key.length": "stored passwords are not encoded any more; drop it",
    "password.encoder.keyfactory.algorithm": "stored passwords are not encoded any more; drop it",
    "password.encoder.old.secret": "stored passwords are not encoded any more; drop it",
    "password.encoder.secret": "stored passwords are not encoded any more; drop it",
    "port": "use listeners",
    "quota.consumer.default": "quotas are set at run time, for users and clients",
    "quota.producer.default": "quotas are set at run time, for users and clients",
    "replica.lag.max.messages": "use replica.lag.time.max.ms",
    "reserved.broker.max.id": "ids are given by hand: set node.id",
    "zookeeper.metadata.migration.enable": "clusters are migrated from ZooKeeper with Kafka 3.9, before they come here",
}
"""Settings of older Kafkas → what to do instead."""

_ZOOKEEPER = "ZooKeeper is gone: use process.roles with controller.quorum.bootstrap.servers"
_NO_ACCESS_CONTROL = (
    "authorizer.class.name has no effect yet: every client that can connect may do everything. Keep this node where "
    "only trusted clients reach it"
)


def notices(settings: Mapping[str, str]) -> list[str]:
    """One sentence each, most important first."""
    told: list[str] = []
    without_effect: list[str] = []
    unknown: list[str] = []
    words = documentation()
    for name in sorted(settings):
        base = base_name(name)
        if (advice := _removed(name)) is not None:
            told.append(f"{name} is a setting of older Kafkas and has no effect: {advice}")
        elif name == "authorizer.class.name" and settings[name].strip():
            told.append(_NO_ACCESS_CONTROL)
        elif base in BROKER_KEYS:
            if base not in words:
                without_effect.append(name)
        else:
            unknown.append(name)
    if without_effect:
        told.append(f"accepted, but without effect here: {', '.join(without_effect)}")
    told += [_unknown(name) for name in unknown]
    return told


def _removed(name: str) -> str | None:
    if name.startswith("zookeeper.") and name not in REMOVED:
        return _ZOOKEEPER
    return REMOVED.get(name)


def _unknown(name: str) -> str:
    import difflib  # imported late: needed only for an unknown name, and slow to import

    near = difflib.get_close_matches(name, BROKER_KEYS, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"{name} is no broker setting of Kafka 4.3 and has no effect{hint}"
