"""MetadataImage: all of the cluster's metadata at one offset of the metadata log. Immutable; replaced as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import NamedTuple

from ottla.metadata.features import METADATA_VERSION, METADATA_VERSION_MIN
from ottla.metadata.image.cluster import ClusterImage
from ottla.metadata.image.security import SecurityImage
from ottla.metadata.image.topics import TopicsImage
from ottla.wire.base import Message


class ResourceType(IntEnum):
    """The kinds of resource that have settings, as numbered in records and requests."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


ConfigResource = tuple[int, str]
"""(resource type, name). A broker's name is its id; the empty name stands for all brokers."""


class Provenance(NamedTuple):
    """The position in the log that an image covers: the last record's offset and epoch, and its batch's time."""

    offset: int = -1
    epoch: int = -1
    timestamp_ms: int = -1


class MetadataImage(NamedTuple):
    """The state of the metadata log up to `provenance`."""

    provenance: Provenance = Provenance()
    features: Mapping[str, int] = MappingProxyType({})
    """Finalised levels by name, including metadata.version; features at level 0 are absent."""
    cluster: ClusterImage = ClusterImage()
    topics: TopicsImage = TopicsImage()
    configs: Mapping[ConfigResource, Mapping[str, str]] = MappingProxyType({})
    """Dynamic settings, by resource."""
    next_producer_id: int = 0
    security: SecurityImage = SecurityImage()
    open_transaction: tuple[Message, ...] | None = None
    """Records of a metadata transaction that has not ended; they apply when it ends. None: no transaction is open."""

    @property
    def metadata_version(self) -> int:
        """The finalised level of metadata.version; the lowest supported one before any is written."""
        return self.features.get(METADATA_VERSION, METADATA_VERSION_MIN)
