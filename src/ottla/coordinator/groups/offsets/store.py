"""OffsetStore: a plain container of offsets by group, topic and partition. `offsets.py` decides when it changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ottla.ids import Uuid

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
