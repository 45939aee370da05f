"""Identifiers: UUIDs in Kafka's text form, topic partitions, where a record is, principals, the rules for topic names.

Kafka UUIDs are 16 bytes on the wire and are shown as URL-safe base64 without padding. In Ottla a UUID *is* its 16 bytes:
hashable, comparable, free to decode. The text form is only for output and config files.
"""

import binascii
from collections.abc import Callable, Sequence
from typing import NamedTuple, NewType

from ottla.errors import OttlaError

Uuid = NewType("Uuid", bytes)

# The base64 module would do, but every client imports this one, and that one imports more.
_TO_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_FROM_URL_SAFE = bytes.maketrans(b"-_", b"+/")

ZERO_UUID = Uuid(bytes(16))
"""No id. Tools print it as AAAAAAAAAAAAAAAAAAAAAA."""

METADATA_TOPIC_ID = Uuid(bytes(15) + b"\x01")
"""The topic id of `__cluster_metadata`."""


DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED, DIRECTORY_LOST = (Uuid(bytes(15) + bytes([last])) for last in range(3))
"""Reserved values in place of a log directory's id: not reported by an old broker, not chosen yet, failed."""


class Principal(NamedTuple):
    """The authenticated identity of a peer, as in `User:alice`."""

    type: str = "User"
    name: str = "ANONYMOUS"
    is_token_authenticated: bool = False

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS = Principal()
"""Who has not logged in."""


class InvalidUuid(OttlaError):
    """A text is not a UUID in Kafka's form."""


def random_uuid(random_bytes: Callable[[int], bytes]) -> Uuid:
    """A random id (version 4) by Kafka's rules: not reserved, and its text does not begin with a dash."""
    while True:
        raw = bytearray(random_bytes(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        uuid = Uuid(bytes(raw))
        if not uuid_text(uuid).startswith("-"):
            return uuid


def uuid_text(uuid: Uuid) -> str:
    """The 22 characters that Kafka's tools and files show for `uuid`."""
    return binascii.b2a_base64(uuid)[:22].translate(_TO_URL_SAFE).decode("ascii")


def repr_with_ids(record: tuple[object, ...], names: Sequence[str]) -> str:
    """The `repr` of a named tuple, with ids as Kafka's tools print them: `id=3Qb9…` instead of 16 bytes."""
    shown = (uuid_text(Uuid(value)) if isinstance(value, bytes) and len(value) == 16 else repr(value) for value in record)
    return f"{type(record).__name__}({', '.join(f'{name}={value}' for name, value in zip(names, shown, strict=True))})"


def uuid_parse(text: str) -> Uuid:
    """Parse the text form of a UUID. Raises `InvalidUuid`."""
    try:
        raw = binascii.a2b_base64(text.encode("ascii").translate(_FROM_URL_SAFE) + b"==", strict_mode=True)
    except ValueError:
        raw = b""
    if len(text) != 22 or len(raw) != 16:
        raise InvalidUuid(
            f"{text!r} is not a Kafka UUID: it must be 22 characters of URL-safe base64, such as {uuid_text(METADATA_TOPIC_ID)}"
        )
    return Uuid(raw)


class TopicPartition(NamedTuple):
    """One partition of one topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class RecordMetadata(NamedTuple):
    """Where a record is stored. `offset` is -1 if the broker did not say; `timestamp` is in milliseconds since 1970."""

    topic: str
    partition: int
    offset: int
    timestamp: int


OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC, "__share_group_state"})
"""Topics that only brokers write. Metadata marks them as internal."""

TOPIC_NAME_LENGTH_MAX = 249
_TOPIC_NAME_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")


def topic_name_fault(name: str) -> str | None:
    """Why `name` is not a valid topic name, as a sentence; None if it is valid."""
    if not name:
        return "A topic's name must not be empty"
    if name in (".", ".."):
        return f"A topic cannot be called {name!r}: its partitions' folders would look like parent folders"
    if len(name) > TOPIC_NAME_LENGTH_MAX:
        return f"A topic's name can have {TOPIC_NAME_LENGTH_MAX} characters, not {len(name)}: {name[:40]}…"
    if not _TOPIC_NAME_CHARACTERS.issuperset(name):
        return f"The topic name {name!r} has characters other than letters, digits, '.', '_' and '-'"
    return None
