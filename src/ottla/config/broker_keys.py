"""The table of broker settings: all of Kafka 4.3's and Ottla's own. A row is parsed when its key is first used.

`broker_docs` says which of them have an effect in Ottla, and documents those; the keys here carry no documentation.
"""

from __future__ import annotations

from ottla.config.broker_table import BROKER_ROWS
from ottla.config.row_table import RowTable

_LISTENER_PREFIX = "listener.name."

OTTLAS_OWN = """\
confluent.basic.auth.user.info | PASSWORD | null | - | LOW | cluster-wide | internal
confluent.schema.registry.url | LIST | [] | - | LOW | cluster-wide | internal
ottla.check.enable | BOOLEAN | true | - | LOW | read-only | internal
ottla.command.config | STRING | null | - | LOW | read-only | internal
ottla.console.host | STRING | 127.0.0.1 | - | LOW | read-only | internal
ottla.console.port | INT | -1 | [-1,...,65535] | LOW | read-only | internal
ottla.max.groups | INT | 50000 | [1,...] | LOW | read-only | internal
ottla.max.producer.ids | INT | 200000 | [1,...] | LOW | read-only | internal
ottla.max.transactional.ids | INT | 50000 | [1,...] | LOW | read-only | internal
ottla.metrics.host | STRING | null | - | LOW | read-only | internal
ottla.metrics.port | INT | -1 | [-1,...,65535] | LOW | read-only | internal
ottla.schema.registry.host | STRING | 127.0.0.1 | - | LOW | read-only | internal
ottla.schema.registry.port | INT | -1 | [-1,...,65535] | LOW | read-only | internal
"""
"""Settings that Kafka does not have, as rows like Kafka's. Those of `confluent.` are Confluent Server's."""

BROKER_KEYS = RowTable("broker", BROKER_ROWS + OTTLAS_OWN)

DYNAMIC_ONLY = frozenset(
    {
        "follower.replication.throttled.rate",
        "leader.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    }
)
"""Quotas that can be set only at run time, not in a file."""


def base_name(name: str) -> str:
    """`name` without its listener prefix: `listener.name.x.max.connections` → `max.connections`.

    A SASL setting may name a mechanism after the listener (`listener.name.x.scram-sha-256.sasl.jaas.config`).
    """
    if not name.startswith(_LISTENER_PREFIX):
        return name
    rest = name[len(_LISTENER_PREFIX) :].partition(".")[2]
    if rest not in BROKER_KEYS and (shorter := rest.partition(".")[2]) in BROKER_KEYS:
        return shorter
    return rest
