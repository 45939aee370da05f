"""Metadata that a test sets itself, for the parts of a group membership: it answers at once, and notes what is wanted."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ottla.client_core.metadata import Node, PartitionInfo, TopicInfo
from ottla.errors import KafkaError
from ottla.ids import Uuid


def topic_id_of(name: str) -> Uuid:
    """The id that `FakeMetadata` gives a topic."""
    return Uuid(name.encode().ljust(16, b"."))


class FakeMetadata:
    """A `MetadataView`."""

    def __init__(self, **counts: int) -> None:
        self.version = 0
        self.full_responses = 0
        self.nodes: dict[int, Node] = {}
        self.topics: dict[str, TopicInfo] = {}
        self.errors: dict[str, KafkaError] = {}
        self.wanted: set[str] = set()
        self.is_all_wanted = False
        self.refreshes: list[str] = []
        for name, count in counts.items():
            self.put(name, [()] * count)

    def put(
        self, name: str, replicas: Sequence[tuple[int, ...]], *, is_internal: bool = False, topic_id: Uuid | None = None
    ) -> None:
        """Learn of a topic: per partition the nodes of its replicas."""
        partitions = tuple(PartitionInfo(index, -1, -1, nodes) for index, nodes in enumerate(replicas))
        self.topics[name] = TopicInfo(name, topic_id or topic_id_of(name), is_internal, partitions)
        self.version += 1
        self.full_responses += 1

    def topic(self, name: str, /) -> TopicInfo | None:
        return self.topics.get(name)

    def topic_of_id(self, uuid: Uuid, /) -> TopicInfo | None:
        return next((topic for topic in self.topics.values() if topic.id == uuid), None)

    def topic_names(self) -> Collection[str]:
        return self.topics.keys()

    def topic_error(self, name: str, /) -> KafkaError | None:
        return self.errors.get(name)

    def want(self, names: Collection[str], /) -> None:
        assert self.wanted.isdisjoint(names), "wanted twice"
        self.wanted.update(names)

    def unwant(self, names: Collection[str], /) -> None:
        assert self.wanted.issuperset(names), "not wanted before"
        self.wanted.difference_update(names)

    def want_all(self, all_topics: bool, /) -> None:
        self.is_all_wanted = all_topics

    def refresh(self, reason: str, /) -> None:
        self.refreshes.append(reason)
