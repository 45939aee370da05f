"""ConsumerContext: what all decisions about consumer groups share, and the look-up of a request's group."""

from __future__ import annotations

import logging
from collections.abc import Callable

from ottla.coordinator.contract import Effects, Instant
from ottla.coordinator.groups.classic.group import ClassicGroup
from ottla.coordinator.groups.classic.groups import ClassicGroups
from ottla.coordinator.groups.consumer.group import ConsumerGroup, ConsumerMember, MemberState
from ottla.coordinator.groups.consumer.migration import check_upgrade, upgrade
from ottla.coordinator.groups.consumer.replay import GroupDraft
from ottla.coordinator.groups.consumer.watch import Watch
from ottla.coordinator.groups.settings import session_timeout_ms
from ottla.coordinator.groups.table import GroupTable
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.errors.texts import counted

logger = logging.getLogger("ottla.coordinator")


# Sessions: the deadlines of members of consumer groups. Sets and cancels them; `membership.py` evicts the members.

Evict = Callable[[str, str, str, Instant], Effects]
"""Group id, member id, why, now."""

_SESSION, _REBALANCE, _JOIN, _SYNC = "consumer session", "consumer rebalance", "consumer join", "consumer sync"
_KINDS = (_SESSION, _REBALANCE, _JOIN, _SYNC)


class Sessions:
    """The deadlines of all members of one shard's consumer groups."""

    def __init__(self, table: GroupTable, evict: Evict) -> None:
        self._table = table
        self._evict = evict

    def _set(self, kind: str, group_id: str, member_id: str, timeout_ms: int, why: str, now: Instant) -> None:
        self._table.timers.set(
            (kind, group_id, member_id), now.steady_ms + timeout_ms, lambda then: self._evict(group_id, member_id, why, then)
        )

    def heard(self, group_id: str, member: ConsumerMember, now: Instant) -> None:
        """Restart the member's session: a request of it came."""
        classic = member.classic
        timeout_ms = session_timeout_ms(self._table.settings, group_id) if classic is None else classic.session_timeout_ms
        setting = "its session.timeout.ms" if member.is_classic else "group.consumer.session.timeout.ms"
        self._set(_SESSION, group_id, member.member_id, timeout_ms, f"it was not heard of for {timeout_ms} ms ({setting})", now)

    def told(self, group_id: str, member: ConsumerMember, now: Instant) -> None:
        """The member gets a new assignment. If it must revoke partitions, it has its rebalance timeout to confirm that."""
        name = (_REBALANCE, group_id, member.member_id)
        if member.state is not MemberState.UNREVOKED_PARTITIONS:
            self._table.timers.cancel(name)
            return
        timeout_ms, epoch = member.rebalance_timeout_ms, member.epoch
        why = f"it did not confirm to have revoked partitions in epoch {epoch} within {timeout_ms} ms (max.poll.interval.ms)"
        self._set(_REBALANCE, group_id, member.member_id, timeout_ms, why, now)

    # -- Members of the classic protocol

    def must_join(self, group_id: str, member: ConsumerMember, now: Instant) -> None:
        """The member must join again within its rebalance timeout."""
        if (_JOIN, group_id, member.member_id) not in self._table.timers:
            timeout_ms = member.rebalance_timeout_ms
            why = f"it did not join again within {timeout_ms} ms (its max.poll.interval.ms)"
            self._set(_JOIN, group_id, member.member_id, timeout_ms, why, now)

    def joined(self, group_id: str, member: ConsumerMember, now: Instant) -> None:
        """The member has joined, and must send SyncGroup within its rebalance timeout."""
        self._table.timers.cancel((_JOIN, group_id, member.member_id))
        timeout_ms = member.rebalance_timeout_ms
        why = f"it did not ask for its assignment within {timeout_ms} ms (its max.poll.interval.ms)"
        self._set(_SYNC, group_id, member.member_id, timeout_ms, why, now)

    def synced(self, group_id: str, member: ConsumerMember) -> None:
        self._table.timers.cancel((_SYNC, group_id, member.member_id))

    def forget(self, group_id: str, member_id: str) -> None:
        """Cancel all deadlines of a removed member."""
        for kind in _KINDS:
            self._table.timers.cancel((kind, group_id, member_id))


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
