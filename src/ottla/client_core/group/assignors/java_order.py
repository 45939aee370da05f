"""The orders in which Java sorts texts and walks hash tables, where Apache Kafka's assignments depend on them.

A Java HashMap is walked bucket by bucket, and inside a bucket in order of insertion. Growing the table keeps that order, so it
follows from the keys' hashes, the order of insertion and the number of buckets. Two members of one group, one with a Java
client, then compute the same assignment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from ottla.ids import TopicPartition

_BUCKETS_MIN = 16

Key = TypeVar("Key", str, TopicPartition)


def text_order(text: str) -> bytes:
    """A sort key that orders texts as Java's String.compareTo: by UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")


def partition_order(partition: TopicPartition) -> tuple[bytes, int]:
    """A sort key for partitions: by topic, then number."""
    return text_order(partition.topic), partition.partition


def text_hash(text: str) -> int:
    """Java's String.hashCode, without its sign."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for index in range(0, len(units), 2):
        value = (31 * value + (units[index] << 8 | units[index + 1])) & 0xFFFFFFFF
    return value


def partition_hash(partition: TopicPartition) -> int:
    """The hashCode of Kafka's TopicPartition, without its sign."""
    return (31 * (31 + partition.partition) + text_hash(partition.topic)) & 0xFFFFFFFF


def hash_order(texts: Iterable[str]) -> list[str]:
    """The texts, each once, in the order in which a HashSet or the keys of a HashMap are walked after these insertions."""
    keys = list(dict.fromkeys(texts))
    return _walk(keys, text_hash, _buckets_for(len(keys)))


class PartitionSet:
    """A set of partitions that is walked like a Java HashSet."""

    def __init__(self) -> None:
        self._partitions: dict[TopicPartition, None] = {}
        self._buckets = _BUCKETS_MIN

    def __len__(self) -> int:
        return len(self._partitions)

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(_walk(list(self._partitions), partition_hash, self._buckets))

    def add(self, partition: TopicPartition) -> None:
        """Insert it, at the end of its bucket."""
        self._partitions.setdefault(partition)
        # A Java table never shrinks.
        self._buckets = max(self._buckets, _buckets_for(len(self._partitions)))

    def remove(self, partition: TopicPartition) -> None:
        """Take it out."""
        del self._partitions[partition]


def _buckets_for(count: int) -> int:
    buckets = _BUCKETS_MIN
    while count > buckets * 3 // 4:
        buckets *= 2
    return buckets


def _walk(keys: list[Key], hash_of: Callable[[Key], int], buckets: int) -> list[Key]:
    def bucket(key: Key) -> int:
        value = hash_of(key)
        return (value ^ value >> 16) & (buckets - 1)

    return sorted(keys, key=bucket)
