"""Errors that groups of both protocols give to requests of members."""

from __future__ import annotations

import logging

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode

logger = logging.getLogger("ottla.coordinator")


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
