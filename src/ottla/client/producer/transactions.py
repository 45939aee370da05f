"""What users pass for offsets and groups in a transaction, in the form that the machine takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ottla.client_core.offsets import ConsumerGroupMetadata, OffsetAndMetadata

Offsets = Mapping[Any, Any]
"""(topic, partition) → the offset of the next record to read, or an `OffsetAndMetadata`."""


def as_offsets(offsets: Offsets) -> dict[tuple[str, int], OffsetAndMetadata]:
    """Offsets with plain keys; a wrong one is named."""
    made: dict[tuple[str, int], OffsetAndMetadata] = {}
    for key, position in offsets.items():
        try:
            topic, partition = key
        except (TypeError, ValueError):
            raise TypeError(f"offsets are given by (topic, partition), not by {key!r}") from None
        offset = getattr(position, "offset", position)
        if not isinstance(offset, int) or offset < 0:
            raise ValueError(f"the offset of {topic}-{partition} is {offset!r}: give the offset of the next record to read")
        metadata = getattr(position, "metadata", "") or ""
        made[str(topic), int(partition)] = OffsetAndMetadata(offset, metadata, getattr(position, "leader_epoch", None))
    return made


def as_group(group: Any) -> ConsumerGroupMetadata:
    """The group's member; a group id alone is enough for consumers that assign partitions themselves."""
    if isinstance(group, str):
        return ConsumerGroupMetadata(group)
    if not isinstance(group, ConsumerGroupMetadata):
        raise TypeError(f"a group is its id, or what Consumer.group_metadata() returns, not {group!r}")
    return group
