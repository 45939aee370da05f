"""What every group is to the rest of the coordinator, whatever its protocol: offsets, listings and deletion ask only this."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from ottla.coordinator.contract import CoordinatorRecord, Instant
from ottla.ids import Uuid

if TYPE_CHECKING:
    from ottla.wire.messages.list_groups import ListedGroup

CLASSIC, CONSUMER = "classic", "consumer"
"""A group's type, as ListGroups names it."""

EMPTY = "Empty"
"""The state of a group without members."""

PartitionCheck = Callable[[str, Uuid, int], None]
"""May offsets of this partition be committed: topic name, topic id, number? A `KafkaError` refuses the whole request."""


class Group(Protocol):
    """One group. Refusals are `KafkaError`s."""

    group_id: str
    type: str

    @property
    def state(self) -> str:
        """As ListGroups names it: Empty, Stable, PreparingRebalance, CompletingRebalance, Assigning, Reconciling, Dead."""
        ...

    def listed(self) -> ListedGroup:
        """The group's line in ListGroups."""
        ...

    def members_bytes(self) -> int:
        """What its members take, about."""
        ...

    def check_commit(
        self, member_id: str, instance_id: str | None, generation: int, version: int, is_transactional: bool, now: Instant
    ) -> PartitionCheck | None:
        """May this member commit offsets now, with this generation id or member epoch, in this version of the request?

        A classic member has been heard of thereby: its session starts anew. A member of a consumer group in an older epoch
        may still commit for partitions that it has had since then: the check that is returned says of each whether it may.
        """
        ...

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """May offsets be read by this member, in this epoch? Who names neither may always."""
        ...

    def check_offset_delete(self) -> None:
        """May offsets be deleted at all, while the group is as it is?"""
        ...

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member reads the topic, so that its offsets neither expire nor can be deleted."""
        ...

    def check_delete(self) -> None:
        """May the group be deleted?"""
        ...

    def tombstones(self) -> list[CoordinatorRecord]:
        """The records that take the group away; its offsets have their own."""
        ...

    def offsets_expire_from_ms(self, topic: str, commit_ms: int) -> int | None:
        """From when (wall) offsets.retention.minutes counts for an offset committed at `commit_ms`; None: it is kept."""
        ...
