"""ConsumerGroups: the entry point to the consumer groups of one shard, for requests, replay, loading and changed topics."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from ottla.coordinator.contract import Caller, CoordinatorRecord, Effects, Instant, Reply
from ottla.coordinator.groups.classic.group import ClassicGroup
from ottla.coordinator.groups.classic.groups import ClassicGroups
from ottla.coordinator.groups.consumer import classic_members, membership
from ottla.coordinator.groups.consumer.context import ConsumerContext
from ottla.coordinator.groups.consumer.group import JOIN_EPOCH, ConsumerGroup, ConsumerMember
from ottla.coordinator.groups.consumer.heartbeat import check_heartbeat, heartbeat
from ottla.coordinator.groups.consumer.replay import RECORD_TYPES, apply
from ottla.coordinator.groups.consumer.targets import served_assignors
from ottla.coordinator.groups.group import CONSUMER
from ottla.coordinator.groups.table import GroupTable
from ottla.coordinator.groups.topics import Topics
from ottla.errors import BrokenInvariant, KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid
from ottla.wire.messages.consumer_group_describe import Assignment, DescribedGroup, Member, TopicPartitions

if TYPE_CHECKING:
    from ottla.wire.messages.consumer_group_describe import DescribedGroup
    from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
    from ottla.wire.messages.heartbeat import HeartbeatRequest
    from ottla.wire.messages.join_group import JoinGroupRequest
    from ottla.wire.messages.leave_group import LeaveGroupRequest
    from ottla.wire.messages.sync_group import SyncGroupRequest

logger = logging.getLogger("ottla.coordinator")


# Builds a consumer group's part of the ConsumerGroupDescribe response.

_CLASSIC, _CONSUMER = 0, 1


def described(group: ConsumerGroup, default_assignor: str, topics: Topics) -> DescribedGroup:
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=group.preferred_assignor(default_assignor),
        members=[_member(group, member, topics) for member in group.members.values()],
    )


def _member(group: ConsumerGroup, member: ConsumerMember, topics: Topics) -> Member:
    # A member holds partitions that it must revoke until it has confirmed that.
    held = {topic_id: list(partitions) for topic_id, partitions in member.assigned.items()}
    for topic_id, partitions in member.revoking.items():
        held[topic_id] = [*held.get(topic_id, ()), *partitions]
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topics),
        subscribed_topic_regex=member.regex,
        assignment=_assignment(held, topics),
        target_assignment=_assignment(group.target_of(member.member_id), topics),
        member_type=_CLASSIC if member.is_classic else _CONSUMER,
    )


def _assignment(partitions: Mapping[Uuid, Iterable[int]], topics: Topics) -> Assignment:
    """The partitions of topics that still exist."""
    named = ((topics.name_of(topic_id), topic_id, indexes) for topic_id, indexes in partitions.items())
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, topic_name=name, partitions=sorted(indexes))
            for name, topic_id, indexes in named
            if name is not None
        ]
    )


class ConsumerGroups:
    """The consumer groups of one shard, and the classic members in them."""

    def __init__(self, table: GroupTable, classic: ClassicGroups) -> None:
        self._table = table
        self._context = ConsumerContext(table, classic, self._evict)

    def _evict(self, group_id: str, member_id: str, why: str, now: Instant) -> Effects:
        return membership.evict(self._context, group_id, member_id, why, now)

    # -- Requests

    def heartbeat(self, request: ConsumerGroupHeartbeatRequest, caller: Caller, reply: Reply, now: Instant) -> Effects:
        """A member joins, stays or leaves."""
        self._check_served()
        check_heartbeat(request, caller.version, self._table.settings)
        if request.member_epoch < JOIN_EPOCH:
            return membership.leave(self._context, request, reply, now)
        return heartbeat(self._context, request, caller, reply, now)

    def describe(self, group_id: str, version: int) -> DescribedGroup:
        """The group as ConsumerGroupDescribe shows it, with GROUP_ID_NOT_FOUND in it if it is unknown or a classic group."""
        try:
            self._check_served()
            group = self._context.find(group_id)
        except KafkaError as error:
            return DescribedGroup(group_id=group_id, error_code=error.code, error_message=str(error))
        return described(group, served_assignors(self._table.settings)[0], self._table.topics)

    def _check_served(self) -> None:
        if CONSUMER not in self._table.settings.rebalance_protocols:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                "the consumer protocol is not served: it needs the feature group.version, and consumer in "
                "group.coordinator.rebalance.protocols",
            )

    # -- Requests of the classic protocol about a consumer group

    def classic_join(self, request: JoinGroupRequest, caller: Caller, reply: Reply, now: Instant) -> Effects:
        return classic_members.join(self._context, request, caller, reply, now)

    def classic_sync(self, request: SyncGroupRequest, caller: Caller, reply: Reply, now: Instant) -> Effects:
        return classic_members.sync(self._context, request, reply, now)

    def classic_heartbeat(self, request: HeartbeatRequest, caller: Caller, reply: Reply, now: Instant) -> Effects:
        return classic_members.heartbeat(self._context, request, reply, now)

    def classic_leave(self, request: LeaveGroupRequest, caller: Caller, reply: Reply, now: Instant) -> Effects:
        return classic_members.leave(self._context, request, reply, now)

    # -- Replay, loading and changed topics

    def replay(self, record: CoordinatorRecord) -> None:
        """Apply a record of a consumer group. Records of group types that are not served are ignored."""
        if record.key.KEY not in RECORD_TYPES:
            return
        group_id: str = record.key.group_id  # type: ignore[attr-defined]  # all keys of these types have one
        group = self._table.by_id.get(group_id)
        if not isinstance(group, ConsumerGroup):
            if record.value is None:
                return
            if isinstance(group, ClassicGroup) and (group.members or group.protocol_type):
                raise BrokenInvariant(f"the log has a record of the consumer group {group_id}, which is a classic group")
            group = self._table.by_id[group_id] = ConsumerGroup(group_id)
        if not apply(group, record):
            del self._table.by_id[group_id]
            self._table.emptied_ms.pop(group_id, None)
            self._context.watch.forget(group_id)

    def loaded(self, now: Instant) -> Effects:
        """All records have been replayed: every member gets a new session."""
        sessions = self._context.sessions
        for group in list(self._table.by_id.values()):
            if isinstance(group, ConsumerGroup):
                for member in group.members.values():
                    sessions.heard(group.group_id, member, now)
                    if not member.is_classic:
                        sessions.told(group.group_id, member, now)
        return Effects()

    def topics_changed(self, names: Collection[str] | None = None) -> None:
        """These topics were created, deleted or changed; None: any may have been."""
        self._context.watch.topics_changed(names)
