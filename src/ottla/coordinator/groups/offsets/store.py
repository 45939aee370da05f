"""OffsetStore: a plain container of offsets by group, topic and partition. `offsets.py` decides when it changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ottla.coordinator.contract import CoordinatorRecord, tombstone
from ottla.ids import Uuid
from ottla.wire.log_records import LogRecord
from ottla.wire.messages.offset_records import LegacyOffsetCommitValue, OffsetCommitKey, OffsetCommitValue

NO_EXPIRY_MS = -1
Place = tuple[str, str, int]
"""The key of an offset: group, topic, partition."""


class CommittedOffset(NamedTuple):
    """A group's committed offset for a partition."""

    log_offset: int
    """The log offset of its record: of two commits, the one with the higher log offset wins."""
    offset: int
    leader_epoch: int
    metadata: str
    commit_ms: int
    expire_ms: int
    """When it expires, if the client set that; `NO_EXPIRY_MS` if offsets.retention.minutes decides."""
    topic_id: Uuid
    """The topic that it was committed for; zero if unknown."""


StoredOffset = tuple[int, int, int, str, int, int, Uuid]
"""The fields of a `CommittedOffset`, as they are stored. Plain tuples: the garbage collector untracks them. A million named
tuples would cost a pause of 0.1 s."""


class OffsetStore:
    """Offsets of many groups. Empty groups and topics are removed."""

    __slots__ = ("by_group",)

    def __init__(self) -> None:
        self.by_group: dict[str, dict[str, dict[int, StoredOffset]]] = {}

    def get(self, place: Place) -> StoredOffset | None:
        group_id, topic, partition = place
        topics = self.by_group.get(group_id)
        partitions = None if topics is None else topics.get(topic)
        return None if partitions is None else partitions.get(partition)

    def put(self, place: Place, committed: StoredOffset) -> None:
        group_id, topic, partition = place
        self.of_topic(group_id, topic)[partition] = committed

    def of_topic(self, group_id: str, topic: str) -> dict[int, StoredOffset]:
        """The offsets of a group for one topic, by partition. The caller must put one in: empty topics are not stored."""
        return self.by_group.setdefault(group_id, {}).setdefault(topic, {})

    def remove(self, place: Place) -> None:
        group_id, topic, partition = place
        topics = self.by_group.get(group_id)
        partitions = None if topics is None else topics.get(topic)
        if topics is None or partitions is None:
            return
        partitions.pop(partition, None)
        if not partitions:
            del topics[topic]
        if not topics:
            del self.by_group[group_id]

    def by_topic(self) -> Iterator[tuple[str, str, dict[int, StoredOffset]]]:
        """Yields group, topic, and its offsets by partition."""
        for group_id, topics in self.by_group.items():
            for topic, partitions in topics.items():
                yield group_id, topic, partitions

    def of_group(self, group_id: str) -> Iterator[tuple[Place, CommittedOffset]]:
        for topic, partitions in self.by_group.get(group_id, {}).items():
            for partition, committed in partitions.items():
                yield (group_id, topic, partition), CommittedOffset._make(committed)

    def of_topics(self, names: Mapping[str, object]) -> Iterator[tuple[Place, CommittedOffset]]:
        """The offsets of all groups for these topics. For each group it iterates over the smaller of `names` and its topics."""
        for group_id, topics in self.by_group.items():
            for topic in names if len(names) < len(topics) else topics:
                if topic in names:
                    for partition, committed in topics.get(topic, {}).items():
                        yield (group_id, topic, partition), CommittedOffset._make(committed)

    def __iter__(self) -> Iterator[tuple[Place, CommittedOffset]]:
        for group_id in self.by_group:
            yield from self.of_group(group_id)


# PendingOffsets: offsets that were committed in transactions that are still open.
#
# They take effect with the transaction's marker in the same partition: a commit makes them the group's offsets, an abort
# drops them. Until then, a fetch of stable offsets gets UNSTABLE_OFFSET_COMMIT.


class PendingOffsets:
    """Pending offsets by producer id: a producer has one transaction at a time."""

    __slots__ = ("_by_producer", "_producers")

    def __init__(self) -> None:
        self._by_producer: dict[int, OffsetStore] = {}
        self._producers: dict[str, dict[Place, dict[int, None]]] = {}
        """The producer ids with an open transaction for a place, by group; in order."""

    def put(self, producer_id: int, place: Place, committed: StoredOffset) -> None:
        store = self._by_producer.get(producer_id)
        if store is None:
            store = self._by_producer[producer_id] = OffsetStore()
        store.put(place, committed)
        self._producers.setdefault(place[0], {}).setdefault(place, {})[producer_id] = None

    def drop(self, place: Place) -> None:
        """Drop all pending offsets of a place that was deleted."""
        of_group = self._producers.get(place[0])
        if of_group is None:
            return
        for producer_id in of_group.pop(place, ()):
            self._by_producer[producer_id].remove(place)
        if not of_group:
            del self._producers[place[0]]

    def end(self, producer_id: int) -> OffsetStore | None:
        """Remove and return the offsets of the producer's transaction; None if there are none."""
        ended = self._by_producer.pop(producer_id, None)
        if ended is None:
            return None
        for group_id, topic, partitions in ended.by_topic():
            of_group = self._producers[group_id]
            for partition in partitions:
                place = (group_id, topic, partition)
                producers = of_group[place]
                del producers[producer_id]
                if not producers:
                    del of_group[place]
            if not of_group:
                del self._producers[group_id]
        return ended

    def has_group(self, group_id: str) -> bool:
        return group_id in self._producers

    def has(self, place: Place) -> bool:
        of_group = self._producers.get(place[0])
        return of_group is not None and place in of_group

    def places_of_group(self, group_id: str) -> Iterator[Place]:
        return iter(self._producers.get(group_id, ()))

    def of_topics(self, names: Mapping[str, object]) -> Iterator[tuple[Place, CommittedOffset]]:
        for store in self._by_producer.values():
            yield from store.of_topics(names)

    def __iter__(self) -> Iterator[tuple[int, Place, CommittedOffset]]:
        for producer_id, store in self._by_producer.items():
            for place, committed in store:
                yield producer_id, place, committed


# Converts offsets from and to records of __consumer_offsets.
#
# key type 1: group, topic, partition; type 0, of releases before 0.9: the same value version 4; version 1 where the client
# sets the expiry, since only that version has the field

VALUE_VERSION = 4
EXPIRING_VALUE_VERSION = 1


def tombstone_of(place: Place) -> CoordinatorRecord:
    group_id, topic, partition = place
    return tombstone(OffsetCommitKey(group=group_id, topic=topic, partition=partition))


def offset_of(value: LogRecord, log_offset: int) -> StoredOffset:
    """The offset in the value of a record at `log_offset`."""
    message = value.message
    if isinstance(message, LegacyOffsetCommitValue):
        message = OffsetCommitValue(offset=message.offset, metadata=message.metadata, commit_timestamp=message.commit_timestamp)
    return (
        log_offset,
        message.offset,
        message.leader_epoch,
        message.metadata,
        message.commit_timestamp,
        message.expire_timestamp,
        message.topic_id,
    )
