"""Rebalances of classic groups: from one generation to the next, with the timeouts of sessions, joining and syncing.

Owns the timers of classic groups. Every removal of a member goes through here, and is logged with the setting that caused it.
Records to write are in the returned effects.

A heartbeat does not move the session's timer: when the timer is due, it is set again for the time that is left.
"""

from __future__ import annotations

import logging
from functools import partial

from ottla.coordinator.contract import Answer, Effects, Instant
from ottla.coordinator.groups.classic import answers
from ottla.coordinator.groups.classic.group import COMPLETING, EMPTY, PREPARING, STABLE, ClassicGroup, ClassicMember
from ottla.coordinator.groups.classic.records import record_of
from ottla.coordinator.groups.table import GroupTable
from ottla.errors.texts import counted

logger = logging.getLogger("ottla.coordinator")

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""The longest time that a new member's first JoinGroup is parked: its client may be gone, and sends no heartbeats yet."""
WAIT_AGAIN_MIN_MS = 1000
"""The shortest time to wait again for static members that did not rejoin, even if their rebalance timeout is shorter."""
PENDING_PATIENCE_MS = 100
"""The longest extension of an initial rebalance for clients that were just given their member ids and will join with them.
Without it, a short group.initial.rebalance.delay.ms makes a generation of the first of several members that start together, and
the others have to wait for its next heartbeat."""
PENDING_STEP_MS = 1


class Rebalances:
    """Sessions and rebalances of the classic groups of one shard."""

    __slots__ = ("_table",)

    def __init__(self, table: GroupTable) -> None:
        self._table = table

    # -- Sessions

    def listen(self, group: ClassicGroup, member: ClassicMember, now: Instant, timeout_ms: int | None = None) -> None:
        """Restart the member's session, for its session timeout or for `timeout_ms`."""
        member.session_ends_ms = now.steady_ms + (member.session_timeout_ms if timeout_ms is None else timeout_ms)
        name = _session(group, member.member_id)
        deadline_ms = self._table.timers.deadline_of(name)
        if deadline_ms is None or deadline_ms > member.session_ends_ms:
            self._watch(group, member)

    def _watch(self, group: ClassicGroup, member: ClassicMember) -> None:
        name = _session(group, member.member_id)
        self._table.timers.set(name, member.session_ends_ms, partial(self._session_due, group, member.member_id))

    def listen_for_pending(self, group: ClassicGroup, member_id: str, timeout_ms: int, now: Instant) -> None:
        """Start the timeout for the client that was given `member_id` to join with it."""
        name = _session(group, member_id)
        self._table.timers.set(name, now.steady_ms + timeout_ms, partial(self._session_due, group, member_id))

    def _session_due(self, group: ClassicGroup, member_id: str, now: Instant) -> Effects:
        if self._table.by_id.get(group.group_id) is not group:
            return Effects()
        if member_id in group.pending_joins:
            logger.info(
                "group %s: no client joined with the new member id %s within its session.timeout.ms: the id is removed",
                group.group_id,
                member_id,
            )
            return self.forget_pending(group, member_id, now)
        member = group.members.get(member_id)
        if member is None or member.is_kept_waiting:
            return Effects()  # its session restarts when it is answered
        if member.session_ends_ms > now.steady_ms:
            self._watch(group, member)
            return Effects()
        if member.is_new:
            why = f"its JoinGroup has waited for {NEW_MEMBER_JOIN_TIMEOUT_MS} ms, which is all that a new member is given"
        else:
            why = f"it was not heard of for {member.session_timeout_ms} ms (its session.timeout.ms)"
        logger.info("group %s: member %s is removed, because %s", group.group_id, member, why)
        return self.remove(group, member, f"member {member} was removed", now)

    # -- Removal of members

    def drop(self, group: ClassicGroup, member: ClassicMember) -> list[Answer]:
        """Remove a member, and answer its parked requests. The caller starts the rebalance."""
        replies = (group.take_join(member), member.take_sync())
        answered = [answers.removed(reply, group) for reply in replies if reply is not None]
        self.forget(group, member.member_id)
        return answered

    def forget(self, group: ClassicGroup, member_id: str) -> None:
        """Remove a member without parked requests, or a pending member id."""
        group.remove(member_id)
        self._table.timers.cancel(_session(group, member_id))

    def rename(self, group: ClassicGroup, member: ClassicMember, member_id: str) -> None:
        """A static member continues under another id. Its new session begins with the next `listen`."""
        self._table.timers.cancel(_session(group, member.member_id))
        self.synced(group, member)
        group.rename(member, member_id)

    def remove(self, group: ClassicGroup, member: ClassicMember, reason: str, now: Instant) -> Effects:
        """Remove a member: the others rebalance, or no longer wait for it."""
        effects = Effects(answers=self.drop(group, member))
        if group.state in (STABLE, COMPLETING):
            effects.add(self.prepare(group, reason, now))
        elif group.state == PREPARING and group.have_all_joined:
            effects.add(self.complete(group, now))
        return effects

    def forget_pending(self, group: ClassicGroup, member_id: str, now: Instant) -> Effects:
        """Remove a pending member id: the rebalance no longer waits for it."""
        self.forget(group, member_id)
        if group.state == PREPARING and group.have_all_joined:
            return self.complete(group, now)
        return Effects()

    def end(self, group: ClassicGroup) -> None:
        """Cancel all timers of the group."""
        for member_id in (*group.members, *group.pending_joins):
            self._table.timers.cancel(_session(group, member_id))
        self._table.timers.cancel(_join(group))
        self._table.timers.cancel(_sync(group))

    # -- Joining

    def go_on(self, group: ClassicGroup, reason: str, now: Instant) -> Effects:
        """The members have changed: begin a rebalance, or complete the current one if all have joined."""
        if group.state == PREPARING:
            return self.try_complete(group, now)
        return self.prepare(group, reason, now)

    def prepare(self, group: ClassicGroup, reason: str, now: Instant) -> Effects:
        """Begin a rebalance: all members have to join again."""
        effects = Effects()
        if group.state == COMPLETING:
            for member in group.members.values():
                member.assignment = b""
                if (reply := member.take_sync()) is not None:
                    effects.answers.append(answers.rejoin(reply, group, member))
                    self.listen(group, member, now)
        group.pending_syncs.clear()
        self._table.timers.cancel(_sync(group))
        logger.info("group %s rebalances, its generation was %d: %s", group.group_id, group.generation, reason)
        group.is_initial_rebalance = group.state == EMPTY
        group.move_to(PREPARING, now)
        if group.is_initial_rebalance:
            delay_ms = self._table.settings.group_initial_rebalance_delay_ms
            self._put_off(group, delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0), PENDING_PATIENCE_MS, now)
        elif group.have_all_joined:
            effects.add(self.complete(group, now))
        else:
            self._wait_for_joins(group, now)
        return effects

    def _wait_for_joins(self, group: ClassicGroup, now: Instant, min_ms: int = 0) -> None:
        deadline_ms = now.steady_ms + max(group.rebalance_timeout_ms, min_ms)
        self._table.timers.set(_join(group), deadline_ms, partial(self._join_due, group))

    def _join_due(self, group: ClassicGroup, now: Instant) -> Effects:
        return self.complete(group, now) if self._table.by_id.get(group.group_id) is group else Effects()

    def _put_off(self, group: ClassicGroup, delay_ms: int, remaining_ms: int, patience_ms: int, now: Instant) -> None:
        group.has_grown = False
        action = partial(self._initial_due, group, delay_ms, remaining_ms, patience_ms)
        self._table.timers.set(_join(group), now.steady_ms + delay_ms, action)

    def _initial_due(self, group: ClassicGroup, delay_ms: int, remaining_ms: int, patience_ms: int, now: Instant) -> Effects:
        """The delay of an initial rebalance is over: wait again if a member joined during it, up to the rebalance timeout."""
        if self._table.by_id.get(group.group_id) is not group:
            return Effects()
        if group.has_grown and remaining_ms:
            next_delay_ms = min(self._table.settings.group_initial_rebalance_delay_ms, remaining_ms)
            remaining_ms = max(remaining_ms - delay_ms, 0)
        elif group.pending_joins and patience_ms:
            next_delay_ms = min(PENDING_STEP_MS, patience_ms)
            patience_ms -= next_delay_ms
        else:
            return self.complete(group, now)
        self._put_off(group, next_delay_ms, remaining_ms, patience_ms, now)
        return Effects()

    def try_complete(self, group: ClassicGroup, now: Instant) -> Effects:
        """Complete the joining if all members have joined. An initial rebalance always waits for its delay."""
        if group.state == PREPARING and not group.is_initial_rebalance and group.have_all_joined:
            return self.complete(group, now)
        return Effects()

    def complete(self, group: ClassicGroup, now: Instant) -> Effects:
        """Complete the joining: the members that have joined, and all static members, form the next generation."""
        self._table.timers.cancel(_join(group))
        for member in [each for each in group.members.values() if each.join_reply is None and not each.is_static]:
            logger.info(
                "group %s: member %s is removed, because it did not rejoin within %d ms (its rebalance timeout: "
                "max.poll.interval.ms of consumers)",
                group.group_id,
                member,
                group.rebalance_timeout_ms,
            )
            self.forget(group, member.member_id)
        if not group.choose_joined_leader() and group.members:
            logger.warning("group %s: none of its static members rejoined in time; it waits for them again", group.group_id)
            self._wait_for_joins(group, now, WAIT_AGAIN_MIN_MS)
            return Effects()
        group.begin_generation(now)
        if group.state == EMPTY:
            logger.info("group %s is empty in generation %d", group.group_id, group.generation)
            return Effects([record_of(group)])
        logger.info("group %s has %s in generation %d", group.group_id, counted(len(group.members), "member"), group.generation)
        return Effects(answers=self._answer_joined(group, now))

    def _answer_joined(self, group: ClassicGroup, now: Instant) -> list[Answer]:
        answered = []
        for member in group.members.values():
            if (reply := group.take_join(member)) is not None:
                answered.append(Answer(reply, answers.joined(group, member)))
            member.is_new = False
            group.pending_syncs[member.member_id] = None
            self.listen(group, member, now)
        action = partial(self._sync_due, group, group.generation)
        self._table.timers.set(_sync(group), now.steady_ms + group.rebalance_timeout_ms, action)
        return answered

    # -- Syncing

    def synced(self, group: ClassicGroup, member: ClassicMember) -> None:
        """The member has sent its SyncGroup."""
        group.pending_syncs.pop(member.member_id, None)
        if not group.pending_syncs:
            self._table.timers.cancel(_sync(group))

    def _sync_due(self, group: ClassicGroup, generation: int, now: Instant) -> Effects:
        """Remove the members that sent no SyncGroup in time, so that others get their partitions."""
        if self._table.by_id.get(group.group_id) is not group or generation != group.generation:
            return Effects()
        if group.state not in (COMPLETING, STABLE) or not group.pending_syncs:
            return Effects()
        gone = list(group.pending_syncs)
        logger.info(
            "group %s: %s removed, because no SyncGroup came within %d ms (the rebalance timeout: max.poll.interval.ms of "
            "consumers)",
            group.group_id,
            ", ".join(gone),
            group.rebalance_timeout_ms,
        )
        for member_id in gone:
            self.forget(group, member_id)
        return self.prepare(group, f"{', '.join(gone)} did not ask for an assignment", now)


def _session(group: ClassicGroup, member_id: str) -> tuple[str, str, str]:
    return ("classic-session", group.group_id, member_id)


def _join(group: ClassicGroup) -> tuple[str, str]:
    return ("classic-join", group.group_id)


def _sync(group: ClassicGroup) -> tuple[str, str]:
    return ("classic-sync", group.group_id)
