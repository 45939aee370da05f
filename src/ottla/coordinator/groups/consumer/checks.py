"""Validates the fields of a ConsumerGroupHeartbeat, without looking at its group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.coordinator.groups.consumer.member import JOIN_EPOCH, LEAVE_EPOCH, LEAVE_STATIC_EPOCH
from ottla.coordinator.groups.consumer.targets import served_assignors
from ottla.coordinator.groups.settings import GroupSettings
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode

if TYPE_CHECKING:
    from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

MEMBER_ID_SINCE = 1
"""From this version on members generate their own ids."""


def check_heartbeat(request: ConsumerGroupHeartbeatRequest, version: int, settings: GroupSettings) -> None:
    """Raises INVALID_REQUEST or UNSUPPORTED_ASSIGNOR if the request is malformed."""
    epoch = request.member_epoch
    if version >= MEMBER_ID_SINCE or epoch > JOIN_EPOCH or epoch == LEAVE_EPOCH:
        _check_filled("MemberId", request.member_id)
    _check_filled("GroupId", request.group_id)
    _check_filled("InstanceId", request.instance_id)
    _check_filled("RackId", request.rack_id)
    if epoch == JOIN_EPOCH:
        if request.rebalance_timeout_ms == -1:
            raise _invalid("RebalanceTimeoutMs must be given by a member that joins")
        if request.topic_partitions is None or request.topic_partitions:
            raise _invalid("TopicPartitions must be empty, and not null, when a member joins: it holds none yet")
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            raise _invalid("SubscribedTopicNames or SubscribedTopicRegex must be given by a member that joins")
    elif epoch == LEAVE_STATIC_EPOCH and request.instance_id is None:
        raise _invalid(f"InstanceId must be given with the epoch {LEAVE_STATIC_EPOCH}, by which static members leave for now")
    elif epoch < LEAVE_STATIC_EPOCH:
        raise _invalid(f"there is no MemberEpoch {epoch}: it is {LEAVE_STATIC_EPOCH} or more")
    assignor, served = request.server_assignor, served_assignors(settings)
    if assignor is not None and assignor not in served:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"there is no assignor {assignor!r} here (group.consumer.assignors): use one of {', '.join(served)}",
        )


def _check_filled(name: str, value: str | None) -> None:
    if value is not None and not value.strip():
        raise _invalid(f"{name} must not be empty")


def _invalid(what: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, what)
