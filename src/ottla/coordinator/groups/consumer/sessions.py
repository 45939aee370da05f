"""Sessions: the deadlines of members of consumer groups. Sets and cancels them; `leaving.py` evicts the members."""

from __future__ import annotations

from collections.abc import Callable

from ottla.coordinator.contract import Effects, Instant
from ottla.coordinator.groups.consumer.member import ConsumerMember, MemberState
from ottla.coordinator.groups.consumer.own_settings import session_timeout_ms
from ottla.coordinator.groups.table import GroupTable

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
