"""The metadata that requests see: the newest committed image, replaced as a whole when more is committed."""

from __future__ import annotations

from ottla.ids import Uuid
from ottla.metadata.image.image import MetadataImage
from ottla.metadata.image.topics import PartitionState, Topic


class MetadataCache:
    """Handlers read `image`; only the node's publisher sets it, after partitions and settings have been updated."""

    __slots__ = ("features_offset", "image")

    def __init__(self) -> None:
        self.image = MetadataImage()
        self.features_offset = -1
        """The metadata offset at which the features last changed, or were first read."""

    def topic(self, name: str) -> Topic | None:
        return self.image.topics.by_name.get(name)

    def topic_by_id(self, topic_id: Uuid) -> Topic | None:
        return self.image.topics.by_id.get(topic_id)

    def partition(self, name: str, index: int) -> PartitionState | None:
        topic = self.image.topics.by_name.get(name)
        return None if topic is None else topic.partitions.get(index)
