"""ClassicGroups: the entry point to the classic groups of one shard, for requests, replay and loading.

`join.py` decides on JoinGroup, `rebalance.py` on rebalances and timeouts; this file handles SyncGroup, Heartbeat,
LeaveGroup and DescribeGroups.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ottla.coordinator.contract import Answer, Caller, CoordinatorRecord, Effects, Instant, Reply
from ottla.coordinator.groups.classic import answers
from ottla.coordinator.groups.classic.group import COMPLETING, DEAD, PREPARING, STABLE, ClassicGroup, ClassicMember
from ottla.coordinator.groups.classic.join import Join, Joining
from ottla.coordinator.groups.classic.rebalance import Rebalances
from ottla.coordinator.groups.classic.records import record_of, take
from ottla.coordinator.groups.memory import size_of
from ottla.coordinator.groups.table import GroupTable
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.errors.texts import counted
from ottla.wire.messages.classic_group_records import GroupMetadataKey
from ottla.wire.messages.describe_groups import DescribedGroup, DescribedGroupMember
from ottla.wire.messages.heartbeat import HeartbeatResponse
from ottla.wire.messages.leave_group import LeaveGroupResponse, MemberResponse

if TYPE_CHECKING:
    from ottla.wire.messages.describe_groups import DescribedGroup
    from ottla.wire.messages.heartbeat import HeartbeatRequest
    from ottla.wire.messages.join_group import JoinGroupRequest
    from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
    from ottla.wire.messages.sync_group import SyncGroupRequest

logger = logging.getLogger("ottla.coordinator")


class ClassicGroups:
    """The classic groups of one shard. A consumer group in the table counts as unknown here."""

    __slots__ = ("_joining", "_rebalances", "_table")

    def __init__(self, table: GroupTable) -> None:
        self._table = table
        self._rebalances = Rebalances(table)
        self._joining = Joining(table, self._rebalances)

    def _find(self, group_id: str) -> ClassicGroup | None:
        group = self._table.by_id.get(group_id)
        return group if isinstance(group, ClassicGroup) else None

    def _all(self) -> Iterator[ClassicGroup]:
        return (group for group in self._table.by_id.values() if isinstance(group, ClassicGroup))

    # -- Requests

    def join(self, request: JoinGroupRequest, caller: Caller, reply: Reply, now: Instant) -> Effects:
        """Join, or rejoin for the next generation. Parked until all members have joined."""
        return self._joining.join(self._find(request.group_id), Join(request, caller, reply, now))

    def sync(self, request: SyncGroupRequest, caller: Caller, reply: Reply, now: Instant) -> Effects:
        """The leader sends the assignment; other members ask for theirs, and are parked until the leader has sent it."""
        group = self._existing(request.group_id, request.member_id)
        member = group.member_in(request.member_id, request.group_instance_id)
        group.check_generation(request.generation_id)
        for asked, chosen in ((request.protocol_type, group.protocol_type), (request.protocol_name, group.protocol_name)):
            if asked is not None and chosen and asked != chosen:
                raise KafkaError(
                    ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                    f"group {group.group_id} uses {chosen!r}, not {asked!r}: join again",
                )
        if group.state == PREPARING:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, f"group {group.group_id} rebalances again: join again")
        if group.state == COMPLETING and group.is_leader(member.member_id):
            return self._assign(group, {each.member_id: each.assignment for each in request.assignments}, member, reply, now)
        self._rebalances.synced(group, member)
        if group.state == STABLE:
            return Effects.answer(reply, answers.synced(group, member.assignment))
        before, member.sync_reply = member.sync_reply, reply
        return Effects(answers=[] if before is None else [answers.superseded(before, group, member)])

    def _assign(
        self, group: ClassicGroup, assignments: dict[str, bytes], leader: ClassicMember, reply: Reply, now: Instant
    ) -> Effects:
        """The leader has sent the assignment. Replaying the record makes the group stable.

        If the record is refused because it is too large, the parked requests fail, and the group still waits for the leader:
        until the timeout or a rejoin. Their members' sessions expire as usual meanwhile.
        """
        before_bytes = size_of(*(member.assignment for member in group.members.values()))
        self._table.memory.take(size_of(*assignments.values()) - before_bytes, group.group_id, now)
        answered = []
        for member in group.members.values():
            waiting = reply if member is leader else member.take_sync()
            if waiting is None:
                continue
            answered.append(Answer(waiting, answers.synced(group, assignments.get(member.member_id, b""))))
            self._rebalances.listen(group, member, now)
        return Effects([record_of(group, assignments)], answered)

    def heartbeat(self, request: HeartbeatRequest, caller: Caller, reply: Reply, now: Instant) -> Effects:
        """Extend the member's session; the response says whether it has to rejoin."""
        group = self._existing(request.group_id, request.member_id)
        member = group.member_in(request.member_id, request.group_instance_id)
        group.check_generation(request.generation_id)
        self._rebalances.listen(group, member, now)
        error = ErrorCode.REBALANCE_IN_PROGRESS if group.state == PREPARING else ErrorCode.NONE
        return Effects.answer(reply, HeartbeatResponse(error_code=error))

    def leave(self, request: LeaveGroupRequest, caller: Caller, reply: Reply, now: Instant) -> Effects:
        """Members leave, or an operator removes static members by their instance ids."""
        group = self._existing(request.group_id, "the leaving member")
        effects, gone, results = Effects(), [], []
        for leaver in request.members:
            result = MemberResponse(member_id=leaver.member_id, group_instance_id=leaver.group_instance_id)
            results.append(result)
            try:
                effects.answers += self._let_go(group, leaver)
                gone.append(leaver.member_id or leaver.group_instance_id or "")
            except KafkaError as refused:
                result.error_code = refused.code
        if gone:
            if group.state in (STABLE, COMPLETING):
                effects.add(self._rebalances.prepare(group, f"{', '.join(gone)} left", now))
            else:
                effects.add(self._rebalances.try_complete(group, now))
        effects.answers.append(Answer(reply, LeaveGroupResponse(members=results)))
        return effects

    def _let_go(self, group: ClassicGroup, leaver: MemberIdentity) -> list[Answer]:
        member_id = leaver.member_id
        if not member_id and leaver.group_instance_id is not None:
            member_id = group.static_ids.get(leaver.group_instance_id, "")
        if member_id in group.pending_joins:
            self._rebalances.forget(group, member_id)
            answered: list[Answer] = []
        else:
            answered = self._rebalances.drop(group, group.member_in(member_id, leaver.group_instance_id))
        logger.info("group %s: member %s left (its reason: %s)", group.group_id, member_id, leaver.reason or "not given")
        return answered

    def _existing(self, group_id: str, member_id: str) -> ClassicGroup:
        group = self._find(group_id)
        if group is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"there is no group {group_id}, so {member_id} is not in it: join it")
        return group

    def describe(self, group_id: str) -> DescribedGroup:
        """The group as DescribeGroups shows it. An unknown group is Dead, with GROUP_ID_NOT_FOUND.

        The caller must drop that error before version 6 of the request.
        """
        group = self._find(group_id)
        if group is None:
            return DescribedGroup(
                group_id=group_id,
                group_state=DEAD,
                error_code=ErrorCode.GROUP_ID_NOT_FOUND,
                error_message=f"there is no classic group {group_id}",
            )
        chosen = group.protocol_name if group.state == STABLE else None
        members = [
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=b"" if chosen is None else member.metadata(chosen),
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ]
        return DescribedGroup(
            group_id=group_id,
            group_state=group.state,
            protocol_type=group.protocol_type,
            protocol_data=chosen or "",
            members=members,
        )

    # -- Replay and loading

    def replay(self, record: CoordinatorRecord) -> None:
        """Apply a GroupMetadata record: the whole group, or a tombstone."""
        assert isinstance(record.key, GroupMetadataKey)
        group = self._find(record.key.group)
        if record.value is None:
            if group is not None:
                self._rebalances.end(group)
                del self._table.by_id[group.group_id]
            return
        if group is None:
            group = self._table.by_id[record.key.group] = ClassicGroup(record.key.group)
        take(group, record.value.message)
        if group.pending_syncs and group.leader_id is not None:
            self._rebalances.synced(group, group.members[group.leader_id])  # the record is the leader's assignment

    def loaded(self, now: Instant) -> Effects:
        """All records have been replayed: every member gets a new session."""
        effects = Effects()
        for group in list(self._all()):
            effects.add(self._watch(group, now))
        return effects

    def _watch(self, group: ClassicGroup, now: Instant) -> Effects:
        for member in group.members.values():
            self._rebalances.listen(group, member, now)
        max_size = self._table.settings.group_max_size
        if len(group.members) > max_size:
            reason = f"it has {counted(len(group.members), 'member')}, and group.max.size is {max_size}"
            return self._rebalances.prepare(group, reason, now)
        if group.must_rebalance:
            reason = "it was a consumer group, and the rebalance that began when it became a classic one is not over"
            return self._rebalances.prepare(group, reason, now)
        return Effects()

    def refuse_waiting(self, failure: KafkaError) -> Iterator[Answer]:
        """Answers with `failure` for every parked JoinGroup and SyncGroup."""
        for group in self._all():
            for member in group.members.values():
                for reply in (member.join_reply, member.sync_reply):
                    if reply is not None:
                        yield answers.lost(reply, member, failure)

    # -- Upgrade to and downgrade from consumer groups

    def take_over(self, group: ClassicGroup, now: Instant, rebalance_reason: str | None = None) -> Effects:
        """A consumer group has been downgraded to `group`: put it in the table, start its members' sessions.

        With a reason, its members have to rejoin. The caller writes the record, taken before this call: `record_of(group)`,
        with a reason also `must_rebalance`.
        """
        self._table.by_id[group.group_id] = group
        for member in group.members.values():
            self._rebalances.listen(group, member, now)
        return Effects() if rebalance_reason is None else self._rebalances.prepare(group, rebalance_reason, now)

    def hand_over(self, group: ClassicGroup, now: Instant) -> Effects:
        """The group is upgraded to a consumer group: parked members have to rejoin.

        Its timers are cancelled when its tombstone is replayed. If the upgrade's records are too large, it stays a classic
        group, and needs them.
        """
        answered = []
        for member in group.members.values():
            for reply in (group.take_join(member), member.take_sync()):
                if reply is not None:
                    answered.append(answers.rejoin(reply, group, member))
                    self._rebalances.listen(group, member, now)
        return Effects(answers=answered)
