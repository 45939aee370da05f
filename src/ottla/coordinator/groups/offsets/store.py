"""Offsets by group, topic and partition. Plain containers: who may change them, and when, is decided elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ottla.ids import Uuid

NO_EXPIRY_MS = -1
Place = tuple[str, str, int]
"""Where an offset belongs: group, topic, partition."""


class CommittedOffset(NamedTuple):
    """What a group has committed for a partition."""

    log_offset: int
    """Where the record of it is: of two commits, the one that was written later counts."""
    offset: int
    leader_epoch: int
    metadata: str
    commit_ms: int
    expire_ms: int
    """When it expires, if the client said so; `NO_EXPIRY_MS` if offsets.retention.minutes decides."""
    topic_id: Uuid
    """The topic it was committed for; zero if that is not known."""


StoredOffset = tuple[int, int, int, str, int, int, Uuid]
"""What a `CommittedOffset` has, as it is kept. There may be a million of them, and plain tuples of numbers and texts are no
business of the garbage collector's, which would stop the node for a tenth of a second to go over as many named ones."""


class OffsetStore:
    """Offsets of many groups. Nothing that is empty is kept."""

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
        """Those of a group for one topic, by partition: to be put into, since what is empty is not kept."""
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
        """Group, topic, and its offsets by partition."""
        for group_id, topics in self.by_group.items():
            for topic, partitions in topics.items():
                yield group_id, topic, partitions

    def of_group(self, group_id: str) -> Iterator[tuple[Place, CommittedOffset]]:
        for topic, partitions in self.by_group.get(group_id, {}).items():
            for partition, committed in partitions.items():
                yield (group_id, topic, partition), CommittedOffset._make(committed)

    def of_topics(self, names: Mapping[str, object]) -> Iterator[tuple[Place, CommittedOffset]]:
        """Those of all groups for these topics. There may be very many of both: of each group the fewer are gone through."""
        for group_id, topics in self.by_group.items():
            for topic in names if len(names) < len(topics) else topics:
                if topic in names:
                    for partition, committed in topics.get(topic, {}).items():
                        yield (group_id, topic, partition), CommittedOffset._make(committed)

    def __iter__(self) -> Iterator[tuple[Place, CommittedOffset]]:
        for group_id in self.by_group:
            yield from self.of_group(group_id)
