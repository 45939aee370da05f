"""Topics: the view of the cluster's topics that groups need. The runtime builds a new one with every change of the metadata."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from ottla.ids import Uuid


class DeletedTopic(NamedTuple):
    """A deleted topic. A new topic may have its name by now."""

    name: str
    id: Uuid


class Topics(Protocol):
    """The topics of the cluster as of one moment."""

    @property
    def version(self) -> int:
        """The offset of the metadata log that this view covers: later views have greater versions."""
        ...

    def names(self) -> Iterable[str]:
        """Every topic's name, internal ones too, sorted."""
        ...

    def id_of(self, name: str) -> Uuid | None: ...

    def name_of(self, topic_id: Uuid) -> str | None: ...

    def partition_count(self, name: str) -> int:
        """The topic's number of partitions; 0 if there is no such topic."""
        ...

    def racks(self, name: str, partition: int) -> Sequence[str]:
        """The racks of the partition's replicas, sorted, one per replica; empty where brokers have no rack."""
        ...
