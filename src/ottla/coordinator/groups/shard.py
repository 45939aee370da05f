"""GroupShard: the state of one partition of __consumer_offsets, its groups and their offsets.

Joins `classic/`, `consumer/` and `offsets/`. It only routes: requests of the classic protocol go to `consumer/` if the group is
a consumer group, while its members are being upgraded or downgraded.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

from ottla.coordinator.contract import Answer, Caller, CoordinatorRecord, Effects, Instant, Producer, Reply
from ottla.coordinator.groups.classic.groups import ClassicGroups
from ottla.coordinator.groups.consumer.groups import ConsumerGroups
from ottla.coordinator.groups.group import CONSUMER
from ottla.coordinator.groups.offsets.offset_replay import FastOffsetReplay
from ottla.coordinator.groups.offsets.offsets import Offsets
from ottla.coordinator.groups.settings import GroupSettings
from ottla.coordinator.groups.table import GroupTable
from ottla.coordinator.groups.topics import DeletedTopic, Topics
from ottla.errors import KafkaError
from ottla.ids import Uuid

if TYPE_CHECKING:
    from ottla.wire.messages.heartbeat import HeartbeatRequest
    from ottla.wire.messages.join_group import JoinGroupRequest
    from ottla.wire.messages.leave_group import LeaveGroupRequest
    from ottla.wire.messages.sync_group import SyncGroupRequest

_OFFSET_TYPES = (0, 1)
_CLASSIC_TYPE = 2


class GroupShard:
    """Implements `Shard`, and the requests about groups."""

    def __init__(self, settings: GroupSettings, topics: Topics, new_uuid: Callable[[], Uuid]) -> None:
        self.table = GroupTable(settings, topics, new_uuid)
        self.offsets = Offsets(self.table)
        self.classic = ClassicGroups(self.table)
        self.consumer = ConsumerGroups(self.table, self.classic)

    # -- Contract with the runtime

    @property
    def next_deadline_ms(self) -> int | None:
        return self.table.timers.next_deadline_ms

    def replay(self, record: CoordinatorRecord, offset: int, producer: Producer | None) -> None:
        kind = record.key.KEY
        if kind in _OFFSET_TYPES:
            self.offsets.replay(record, offset, producer)
        elif kind == _CLASSIC_TYPE:
            self.classic.replay(record)
        else:
            self.consumer.replay(record)

    def replay_end(self, producer: Producer, is_commit: bool) -> None:
        self.offsets.replay_end(producer, is_commit)

    def fast_replay(self) -> FastOffsetReplay:
        return FastOffsetReplay(self.offsets)

    def refuse_waiting(self, failure: KafkaError) -> Iterable[Answer]:
        return self.classic.refuse_waiting(failure)

    def loaded(self, now: Instant) -> Effects:
        effects = self.classic.loaded(now)
        effects.add(self.consumer.loaded(now))
        effects.add(self.offsets.loaded(now))
        return effects

    def expire(self, now: Instant) -> Effects:
        action = self.table.timers.pop_due(now)
        return Effects() if action is None else action(now)

    def follow(
        self,
        settings: GroupSettings,
        topics: Topics,
        deleted_topics: Iterable[DeletedTopic],
        changed_names: Collection[str] | None = None,
    ) -> Effects:
        """Use new settings and topics. `changed_names` are the topics that were created, deleted or changed."""
        self.table.settings, self.table.topics = settings, topics
        self.consumer.topics_changed(changed_names)
        return self.offsets.forget_topics(deleted_topics)

    # -- Requests of the classic protocol

    def join(self, request: JoinGroupRequest, caller: Caller, reply: Reply, now: Instant) -> Effects:
        if self._is_consumer(request.group_id):
            return self.consumer.classic_join(request, caller, reply, now)
        return self.classic.join(request, caller, reply, now)

    def sync(self, request: SyncGroupRequest, caller: Caller, reply: Reply, now: Instant) -> Effects:
        if self._is_consumer(request.group_id):
            return self.consumer.classic_sync(request, caller, reply, now)
        return self.classic.sync(request, caller, reply, now)

    def heartbeat(self, request: HeartbeatRequest, caller: Caller, reply: Reply, now: Instant) -> Effects:
        if self._is_consumer(request.group_id):
            return self.consumer.classic_heartbeat(request, caller, reply, now)
        return self.classic.heartbeat(request, caller, reply, now)

    def leave(self, request: LeaveGroupRequest, caller: Caller, reply: Reply, now: Instant) -> Effects:
        if self._is_consumer(request.group_id):
            return self.consumer.classic_leave(request, caller, reply, now)
        return self.classic.leave(request, caller, reply, now)

    def _is_consumer(self, group_id: str) -> bool:
        group = self.table.by_id.get(group_id)
        return group is not None and group.type == CONSUMER
