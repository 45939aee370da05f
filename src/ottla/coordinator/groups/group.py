"""Group: the interface of classic and consumer groups that offsets, listings and deletion use."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from ottla.coordinator.contract import CoordinatorRecord, Instant
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid

if TYPE_CHECKING:
    from ottla.wire.messages.list_groups import ListedGroup

logger = logging.getLogger("ottla.coordinator")

CLASSIC, CONSUMER = "classic", "consumer"
"""A group's type, as ListGroups names it."""

EMPTY = "Empty"
"""The state of a group without members."""

PartitionCheck = Callable[[str, Uuid, int], None]
"""Called with topic name, topic id and partition number. Raises `KafkaError` to refuse the whole commit."""


class Group(Protocol):
    """One group. The `check_` methods raise `KafkaError` to refuse."""

    group_id: str
    type: str

    @property
    def state(self) -> str:
        """The state as in ListGroups: Empty, Stable, PreparingRebalance, CompletingRebalance, Assigning, Reconciling, Dead."""
        ...

    def listed(self) -> ListedGroup:
        """The group's entry in ListGroups."""
        ...

    def members_bytes(self) -> int:
        """The approximate memory of its members."""
        ...

    def check_commit(
        self, member_id: str, instance_id: str | None, generation: int, version: int, is_transactional: bool, now: Instant
    ) -> PartitionCheck | None:
        """Raises `KafkaError` unless this member may commit offsets with this generation id or member epoch.

        `version` is that of the request. A commit restarts a classic member's session. A consumer group's member in an older
        epoch may still commit for partitions that it has had since then: the returned check decides for each partition.
        """
        ...

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raises `KafkaError` unless this member may read offsets in this epoch. A caller that names neither always may."""
        ...

    def check_offset_delete(self) -> None:
        """Raises `KafkaError` if the group's state forbids deleting offsets."""
        ...

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member reads the topic: then its offsets neither expire nor can be deleted."""
        ...

    def check_delete(self) -> None:
        """Raises `KafkaError` if the group cannot be deleted."""
        ...

    def tombstones(self) -> list[CoordinatorRecord]:
        """The records that remove the group; its offsets have their own."""
        ...

    def offsets_expire_from_ms(self, topic: str, commit_ms: int) -> int | None:
        """The wall time at which offsets.retention.minutes starts for an offset committed at `commit_ms`; None: no expiry."""
        ...


# Errors that groups of both protocols give to requests of members.


def unknown_member(group_id: str, member_id: str) -> KafkaError:
    return KafkaError(
        ErrorCode.UNKNOWN_MEMBER_ID, f"{member_id or 'a member without an id'} is not in group {group_id}: join it again"
    )


def check_instance_owner(group_id: str, instance_id: str, member_id: str, owner_id: str | None) -> None:
    """Raises `KafkaError` unless the caller `member_id` is the current owner (`owner_id`) of the instance id."""
    if owner_id is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_MEMBER_ID, f"group {group_id} has no member with the instance id {instance_id}: join it"
        )
    if owner_id != member_id:
        logger.info(
            "group %s: a request of member %s is refused, because %s has its instance id (group.instance.id) %s now",
            group_id,
            member_id,
            owner_id,
            instance_id,
        )
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"another process has joined group {group_id} with the instance id {instance_id} as {owner_id}: "
            "no two may use one group.instance.id at a time",
        )
