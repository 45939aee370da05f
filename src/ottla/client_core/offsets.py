"""`OffsetAndMetadata` and `ConsumerGroupMetadata`: what is committed for a group, and which member commits it."""

from __future__ import annotations

from typing import NamedTuple


class OffsetAndMetadata(NamedTuple):
    """A committed offset: the next to read, with a text for people and the leader epoch of the record before it."""

    offset: int
    metadata: str = ""
    leader_epoch: int | None = None


class ConsumerGroupMetadata(NamedTuple):
    """Which member of its group a consumer is: what a producer's transaction needs to commit the group's offsets."""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
