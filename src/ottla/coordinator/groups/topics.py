"""What groups need to know of the cluster's topics. The host makes another with every change of the metadata."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from ottla.ids import Uuid


class DeletedTopic(NamedTuple):
    """A topic that is gone; another may have its name by now."""

    name: str
    id: Uuid


class Topics(Protocol):
    """The topics of the cluster as of one moment."""

    @property
    def version(self) -> int:
        """Up to where the metadata log is in it: later changes have greater ones."""
        ...

    def names(self) -> Iterable[str]:
        """Every topic's name, internal ones too, sorted."""
        ...

    def id_of(self, name: str) -> Uuid | None: ...

    def name_of(self, topic_id: Uuid) -> str | None: ...

    def partition_count(self, name: str) -> int:
        """How many partitions the topic has; 0 if there is none of that name."""
        ...

    def racks(self, name: str, partition: int) -> Sequence[str]:
        """Where the partition's replicas are, sorted, one per replica; empty where brokers name none."""
        ...
