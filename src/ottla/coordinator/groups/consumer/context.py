"""ConsumerContext: what all decisions about consumer groups share, and the look-up of a request's group."""

from __future__ import annotations

import logging

from ottla.coordinator.contract import Instant
from ottla.coordinator.groups.classic.group import ClassicGroup
from ottla.coordinator.groups.classic.groups import ClassicGroups
from ottla.coordinator.groups.consumer.draft import GroupDraft
from ottla.coordinator.groups.consumer.group import ConsumerGroup
from ottla.coordinator.groups.consumer.member import ConsumerMember
from ottla.coordinator.groups.consumer.sessions import Evict, Sessions
from ottla.coordinator.groups.consumer.upgrading import check_upgrade, upgrade
from ottla.coordinator.groups.consumer.watch import Watch
from ottla.coordinator.groups.table import GroupTable
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.errors.texts import counted

logger = logging.getLogger("ottla.coordinator")


class ConsumerContext:
    """The consumer groups of one shard, with the collaborators of their decisions."""

    __slots__ = ("classic", "sessions", "table", "watch")

    def __init__(self, table: GroupTable, classic: ClassicGroups, evict: Evict) -> None:
        self.table = table
        self.classic = classic
        self.watch = Watch(table)
        self.sessions = Sessions(table, evict)

    def find(self, group_id: str) -> ConsumerGroup:
        """The consumer group; GROUP_ID_NOT_FOUND if it is unknown or a classic group."""
        group = self.table.by_id.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        what = "there is no group" if group is None else f"not a consumer group but a {group.type} one:"
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"{what} {group_id}")

    def open(self, group_id: str, is_joining: bool, now: Instant) -> GroupDraft:
        """A draft of the group. A joining member creates an unknown group, and upgrades a classic one."""
        group = self.table.by_id.get(group_id)
        if isinstance(group, ConsumerGroup) or not is_joining:
            return GroupDraft(self.find(group_id))
        if group is None:
            self.table.limit.check_room(f"the new group {group_id!r}")
            return GroupDraft(ConsumerGroup(group_id), is_new=True)
        assert isinstance(group, ClassicGroup), f"{group} is of no known kind"
        if not group.members:
            draft = GroupDraft(ConsumerGroup(group_id), is_new=True)
            draft.records += group.tombstones()
            logger.info("group %s, a classic one without members, is a consumer group from now on", group_id)
        else:
            check_upgrade(group, self.table.settings)
            draft = upgrade(group, self.table.topics, self.watch)
        draft.when_decided(lambda: self._taken(group, draft, now))
        return draft

    def _taken(self, classic: ClassicGroup, draft: GroupDraft, now: Instant) -> None:
        """The classic group is replaced: answer its parked requests, and start sessions for its members."""
        draft.answers += self.classic.hand_over(classic, now).answers
        for member_id in classic.members:
            if member_id in draft.group.members:
                self.sessions.heard(classic.group_id, draft.group.members[member_id], now)

    def check_memory(self, group: ConsumerGroup, before: ConsumerMember, after: ConsumerMember, now: Instant) -> None:
        """Raises `KafkaError` if there is no memory for the member's growth."""
        before_bytes = before.size_bytes if before.member_id in group.members else 0
        self.table.memory.take(after.size_bytes - before_bytes, group.group_id, now)

    def check_size(self, group: ConsumerGroup, member_id: str) -> None:
        max_size = self.table.settings.group_consumer_max_size
        if len(group.members) >= max_size and member_id not in group.members:
            logger.info(
                "group %s: member %s is turned away, the group is full (group.consumer.max.size is %d)",
                group.group_id,
                member_id or "without an id",
                max_size,
            )
            raise KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"group {group.group_id} has {counted(len(group.members), 'member')}, and "
                f"group.consumer.max.size allows {max_size}",
            )
