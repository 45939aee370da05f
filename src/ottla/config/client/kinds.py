"""The three kinds of client, each with its table of settings and the defaults in which Ottla differs from Kafka."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ottla.config.client.rows import ADMIN_ROWS, COMMON_ROWS, CONSUMER_ROWS, PRODUCER_ROWS, SECURITY_ROWS
from ottla.config.row_table import RowTable
from ottla.config.values import Value


class OwnDefault(NamedTuple):
    """A default of Ottla's that is not Kafka's, and why. `docs/client-settings.md` shows both defaults and the reason."""

    value: Value
    reason: str


class ClientKind:
    """One kind of client: `name` as messages and documents call it, `table` with Kafka's facts, and our own defaults."""

    def __init__(self, name: str, rows: str, own_defaults: Mapping[str, OwnDefault]) -> None:
        self.name = name
        self.table = RowTable(name, rows + COMMON_ROWS + SECURITY_ROWS)
        self.own_defaults = own_defaults

    def default_of(self, name: str) -> Value:
        """Ottla's default of a setting: Kafka's, if `own_defaults` has no other."""
        own = self.own_defaults.get(name)
        return self.table.default_of(name) if own is None else own.value


_NO_CONVERSION = "Kafka has no default and demands a class. Here keys and values are bytes unless you say otherwise."

_LARGER_BATCHES = (
    "A Python event loop gets a turn every 5 to 15 ms while the program is busy, and sends at most five batches per partition "
    "and turn. Buffers grow with their records, so a larger limit costs no memory. Records without a key "
    "are spread as with Kafka's default (docs/decisions/0021)."
)

_SYSTEM_BUFFERS = (
    "The system sizes the buffer by the connection's speed. With 64 KB an event loop in Python wakes for every 64 KB: "
    "a consumer of 1 KB records then spends twice the processor time on receiving (docs/decisions/0021)."
)

_SYSTEM_SEND_BUFFERS = (
    "The system sizes the buffer by the connection's speed. With 128 KB an event loop in Python wakes several times for each "
    "request of 1 MB: sending records of 1 KB then takes a fifth more processor time (docs/decisions/0021)."
)

# To change a default, add a line here: name, value, reason. The documents are generated from it.
PRODUCER = ClientKind(
    "producer",
    PRODUCER_ROWS,
    {
        "batch.size": OwnDefault(262_144, _LARGER_BATCHES),
        "send.buffer.bytes": OwnDefault(-1, _SYSTEM_SEND_BUFFERS),
        "key.serializer": OwnDefault("bytes", _NO_CONVERSION),
        "value.serializer": OwnDefault("bytes", _NO_CONVERSION),
    },
)
CONSUMER = ClientKind(
    "consumer",
    CONSUMER_ROWS,
    {
        "receive.buffer.bytes": OwnDefault(-1, _SYSTEM_BUFFERS),
        "key.deserializer": OwnDefault("bytes", _NO_CONVERSION),
        "value.deserializer": OwnDefault("bytes", _NO_CONVERSION),
    },
)
ADMIN = ClientKind("admin", ADMIN_ROWS, {})

KINDS = (PRODUCER, CONSUMER, ADMIN)
