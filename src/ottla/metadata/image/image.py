"""The whole of the cluster's metadata at one offset of its log. Immutable; swapped whole.

Of what Ottla does not serve yet (access control lists, quotas, credentials, tokens) the records themselves are kept, by what
identifies them: a directory that Apache Kafka filled must not lose them when Ottla writes a snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import NamedTuple

from ottla.metadata.features import METADATA_VERSION, METADATA_VERSION_MIN
from ottla.metadata.image.cluster import ClusterImage
from ottla.metadata.image.topics import TopicsImage
from ottla.wire.base import Message


class ResourceType(IntEnum):
    """What a setting can belong to, as numbered in records and requests."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


ConfigResource = tuple[int, str]
"""(resource type, name). A broker's name is its id; the empty name stands for all brokers."""


class Provenance(NamedTuple):
    """Up to where the log has been taken in: the last record's offset and epoch, and its batch's time."""

    offset: int = -1
    epoch: int = -1
    timestamp_ms: int = -1


class MetadataImage(NamedTuple):
    """Everything the metadata log says, up to `provenance`."""

    provenance: Provenance = Provenance()
    features: Mapping[str, int] = MappingProxyType({})
    """Finalised levels by name, metadata.version among them; a feature at level 0 is not there."""
    cluster: ClusterImage = ClusterImage()
    topics: TopicsImage = TopicsImage()
    configs: Mapping[ConfigResource, Mapping[str, str]] = MappingProxyType({})
    """What was set at run time, by resource."""
    next_producer_id: int = 0
    other: Mapping[tuple[object, ...], Message] = MappingProxyType({})
    """Records of subjects that are only kept, by (record type, key …)."""
    open_transaction: tuple[Message, ...] | None = None
    """Records between the begin of a metadata transaction and its end: they count once it ends. None: there is none."""

    @property
    def metadata_version(self) -> int:
        """The finalised level of metadata.version; that of the oldest cluster while none is written."""
        return self.features.get(METADATA_VERSION, METADATA_VERSION_MIN)
