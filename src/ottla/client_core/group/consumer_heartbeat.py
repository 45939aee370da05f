"""The fields of ConsumerGroupHeartbeat: what a member says of itself, and which of it has changed since it last said so.

A heartbeat carries only what has changed. After an error, or if the coordinator may not know the member, it carries all of it.

Version notes: v1: the member makes its id itself; subscription by a pattern in RE2 syntax.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from ottla.client_core.group.collaborators import GroupSettings
from ottla.client_core.group.identity import Identity
from ottla.client_core.machine import Channel, Request
from ottla.ids import Uuid
from ottla.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
LEAVE_STATIC_EPOCH: Final = -2
"""A static member goes, and will be back."""

PartitionsById: TypeAlias = Mapping[Uuid, tuple[int, ...]]


class Said(NamedTuple):
    """What can change between heartbeats."""

    names: tuple[str, ...]
    regex: str | None
    held: PartitionsById


def heartbeat_request(
    settings: GroupSettings, identity: Identity, epoch: int, now: Said, before: Said | None, node: int
) -> Request:
    """A heartbeat with what differs from `before`; with everything if that is None, as in the first one."""
    message = ConsumerGroupHeartbeatRequest(group_id=identity.group_id, member_id=identity.member_id, member_epoch=epoch)
    if before is None:
        message.instance_id = identity.group_instance_id
        message.rack_id = settings.client_rack or None
        message.rebalance_timeout_ms = settings.max_poll_interval_ms
        message.server_assignor = settings.group_remote_assignor
    if before is None or now.names != before.names:
        message.subscribed_topic_names = list(now.names)
    if now.regex != (None if before is None else before.regex):
        message.subscribed_topic_regex = now.regex or ""
    if before is None or now.held != before.held:
        message.topic_partitions = [
            ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=topic_id, partitions=list(partitions))
            for topic_id, partitions in now.held.items()
        ]
    return Request(message, node, channel=Channel.GROUP, context=identity.now)


def leave_heartbeat(identity: Identity, epoch: int, node: int) -> Request:
    """The last heartbeat of a member."""
    message = ConsumerGroupHeartbeatRequest(
        group_id=identity.group_id,
        member_id=identity.member_id,
        member_epoch=epoch,
        instance_id=identity.group_instance_id,
    )
    return Request(message, node, channel=Channel.GROUP)
