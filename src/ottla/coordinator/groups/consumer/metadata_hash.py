"""The metadata hash of a group: one number over its topics, their partitions and the racks of those.

A group whose hash has changed needs a new assignment. The hash is Kafka's, so that a group that moves between Apache Kafka and
Ottla is not reassigned without need. Hashed are little-endian numbers, and texts in UTF-16 followed by their length:

    topic    0 (one byte) | id, as two numbers of 64 bits | name | partitions | for each: index | for each rack: length, rack
    group    the hashes of its topics that exist, in the order of their names; 0 if there is none
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import pack

from ottla.coordinator.groups.consumer.xxh3 import xxh3_64
from ottla.coordinator.groups.topics import Topics

_MAGIC = b"\x00"


def _text(text: str) -> bytes:
    units = text.encode("utf-16-le", "surrogatepass")
    return units + pack("<I", len(units) // 2)


def topic_hash(topics: Topics, name: str) -> int:
    """The hash of a topic that exists."""
    topic_id, count = topics.id_of(name), topics.partition_count(name)
    assert topic_id is not None, f"there is no topic {name}"
    parts = [_MAGIC, topic_id[7::-1], topic_id[:7:-1], _text(name), pack("<I", count)]
    for partition in range(count):
        parts.append(pack("<I", partition))
        for rack in topics.racks(name, partition):
            parts += (pack("<I", len(rack.encode("utf-16-le", "surrogatepass")) // 2), _text(rack))
    return xxh3_64(b"".join(parts))


class TopicHashes:
    """A cache of topic hashes; an entry is dropped when its topic changes."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def forget(self, names: Iterable[str] | None) -> None:
        """Drop the hashes of these topics, which have changed; None: of all."""
        if names is None:
            self._known.clear()
        else:
            for name in names:
                self._known.pop(name, None)

    def of_group(self, names: Iterable[str], topics: Topics) -> int:
        """The hash of a group that reads `names`, as the signed number that records hold."""
        parts = []
        for name in sorted(names):
            if topics.id_of(name) is not None:
                known = self._known.get(name)
                if known is None:
                    known = self._known[name] = topic_hash(topics, name)
                parts.append(pack("<Q", known))
        if not parts:
            return 0
        value = xxh3_64(b"".join(parts))
        return value - 2**64 if value >= 2**63 else value
