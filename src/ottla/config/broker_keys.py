"""The broker settings as a table: every one of Kafka 4.3's, and our own, parsed from its row when it is first asked for.

Which of them Ottla goes by, and what each does, is told in `broker_docs`; a key made here carries no words.
"""

from __future__ import annotations

from ottla.config.broker_table import BROKER_ROWS
from ottla.config.row_table import RowTable

_LISTENER_PREFIX = "listener.name."

OTTLAS_OWN = """\
ottla.metrics.port | INT | -1 | [-1,...,65535] | LOW | read-only | internal
"""
"""Settings that Kafka does not have, in the same form."""

BROKER_KEYS = RowTable("broker", BROKER_ROWS + OTTLAS_OWN)

DYNAMIC_ONLY = frozenset(
    {
        "follower.replication.throttled.rate",
        "leader.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    }
)
"""Quotas: set at run time or not at all; a file cannot set them."""


def base_name(name: str) -> str:
    """The setting that `name` is without the listener it is for: `listener.name.x.max.connections` → `max.connections`.

    A SASL setting may name a mechanism after the listener (`listener.name.x.scram-sha-256.sasl.jaas.config`).
    """
    if not name.startswith(_LISTENER_PREFIX):
        return name
    rest = name[len(_LISTENER_PREFIX) :].partition(".")[2]
    if rest not in BROKER_KEYS and (shorter := rest.partition(".")[2]) in BROKER_KEYS:
        return shorter
    return rest
