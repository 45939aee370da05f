"""Warnings for the operator about a `server.properties`: settings without effect, unknown settings, removed settings.

None of them stops the node, because a file written for Kafka must work unchanged. The node logs them at its start. A broker for
tests and `ottla up --set` refuse unknown names instead (`unknown_names`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ottla.config.authorizer import ALLOW_EVERYONE, CLASS, STANDARD_AUTHORIZER, SUPER_USERS
from ottla.config.broker_docs import documentation
from ottla.config.broker_keys import BROKER_KEYS, base_name
from ottla.config.topic_keys import TOPIC_SYNONYMS
from ottla.errors.texts import listed, near_words

REMOVED: dict[str, str] = {
    "advertised.host.name": "use advertised.listeners",
    "advertised.port": "use advertised.listeners",
    "auto.include.jmx.reporter": "reporters are named in metric.reporters; for Prometheus set ottla.metrics.port",
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
_OF_AUTHORIZER = (SUPER_USERS, ALLOW_EVERYONE)
"""What Kafka's StandardAuthorizer reads by itself, so that its tables do not name them."""
PLUGINS = ("metrics.jmx.include", "metrics.jmx.exclude")
"""What other classes that come with Kafka read by themselves, so that its tables do not name them."""
_PLUGIN_PREFIXES = ("client.quota.callback.", "config.providers.")
_REMOTE_STORAGE_PREFIXES = {
    "remote.log.storage.manager.impl.prefix": "rsm.config.",
    "remote.log.metadata.manager.impl.prefix": "rlmm.config.",
}
"""Settings that name the prefix of a plug-in's settings → the prefix by default."""


def notices(settings: Mapping[str, str]) -> list[str]:
    """One sentence each, most important first."""
    told: list[str] = []
    without_effect: list[str] = []
    unguarded: list[str] = []
    prefixes = _plugin_prefixes(settings)
    words = documentation()
    for name in sorted(settings):
        base = base_name(name)
        if (advice := _removed(name)) is not None:
            told.append(f"{name} is a setting of older Kafkas and has no effect: {advice}")
        elif name in _OF_AUTHORIZER:
            if not settings.get(CLASS, "").strip():
                unguarded.append(name)
        elif (base in BROKER_KEYS and base not in words) or name in PLUGINS or name.startswith(prefixes):
            without_effect.append(name)
    if unguarded:
        told.append(
            f"{listed(unguarded)} {'has' if len(unguarded) == 1 else 'have'} no effect without {CLASS}: every client that can "
            f"connect may do everything. Set {CLASS} to {STANDARD_AUTHORIZER}, on every node"
        )
    if without_effect:
        told.append(f"accepted, but without effect here: {', '.join(without_effect)}")
    told += [f"{name} is no broker setting of Kafka 4.3 and has no effect{hint(name)}" for name in unknown_names(settings)]
    return told


def unknown_names(settings: Mapping[str, Any]) -> list[str]:
    """Names that neither a broker of Kafka nor its plug-ins have ever had: most likely misspelt."""
    prefixes = _plugin_prefixes(settings)
    return sorted(
        name
        for name in settings
        if _removed(name) is None
        and base_name(name) not in BROKER_KEYS
        and name not in _OF_AUTHORIZER
        and name not in PLUGINS
        and not name.startswith(prefixes)
    )


def refusal_of_unknown(settings: Mapping[str, Any]) -> str | None:
    """A line for each unknown name, with what it was probably meant to be; None if all are known."""
    return "\n".join(f"{name} is no broker setting of Kafka{hint(name)}" for name in unknown_names(settings)) or None


def _plugin_prefixes(settings: Mapping[str, Any]) -> tuple[str, ...]:
    return (*_PLUGIN_PREFIXES, *(str(settings.get(name, default)) for name, default in _REMOTE_STORAGE_PREFIXES.items()))


def _removed(name: str) -> str | None:
    if name.startswith("zookeeper.") and name not in REMOVED:
        return _ZOOKEEPER
    return REMOVED.get(name)


def hint(name: str) -> str:
    """What an unknown name was probably meant to be, as the end of a sentence; empty if nothing comes near."""
    topic_name = name.removeprefix("log.")  # log.segment.ms: as if it were named like log.segment.bytes
    if topic_name in TOPIC_SYNONYMS:
        broker_name = TOPIC_SYNONYMS[topic_name][0][0]
        of_topics = "" if topic_name in (name, broker_name) else f" (for one topic: {topic_name})"
        return f"; did you mean {broker_name}{of_topics}?"
    near = near_words(_IN_OTHER_WORDS.get(name, name), BROKER_KEYS)
    return f"; did you mean {near[0]}?" if near else ""


_IN_OTHER_WORDS = {
    "log.retention.days": "log.retention.hours",
    "log.retention.seconds": "log.retention.ms",
    "log.roll.days": "log.roll.hours",
    "log.segment.hours": "log.roll.hours",
    "log.segment.minutes": "log.roll.ms",
    "segment.hours": "log.roll.hours",
}
"""Names that resemble a wrong setting more than the right one."""
