"""Decides on JoinGroup of classic groups: whether a member may join, its member id, and whether the group rebalances.

`rebalance.py` carries out the rebalance. A member without an id gets one. From version 4 on it has to join again with that id
before it becomes a member, so that a client that gives up and retries leaves no dead members behind.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ottla.coordinator.contract import Caller, Effects, Instant, Reply
from ottla.coordinator.groups.classic import answers
from ottla.coordinator.groups.classic.group import COMPLETING, EMPTY, PREPARING, STABLE, ClassicGroup, ClassicMember, Protocol
from ottla.coordinator.groups.classic.rebalance import NEW_MEMBER_JOIN_TIMEOUT_MS, Rebalances
from ottla.coordinator.groups.classic.records import beginning_of, record_of
from ottla.coordinator.groups.memory import MEMBER_BYTES, size_of
from ottla.coordinator.groups.table import GroupTable
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid

if TYPE_CHECKING:
    from ottla.wire.messages.join_group import JoinGroupRequest

logger = logging.getLogger("ottla.coordinator")

ID_HANDSHAKE_SINCE = 4
SKIP_ASSIGNMENT_SINCE = 9


class Join:
    """One JoinGroup: the request, its sender, its time, and the destination of the answer."""

    __slots__ = ("caller", "now", "protocols", "reply", "request")

    def __init__(self, request: JoinGroupRequest, caller: Caller, reply: Reply, now: Instant) -> None:
        self.request = request
        self.caller = caller
        self.reply = reply
        self.now = now
        self.protocols = [Protocol(each.name, each.metadata) for each in request.protocols]

    @property
    def reason(self) -> str:
        return self.request.reason or "not given"

    def is_refused(self, code: int, text: str) -> KafkaError:
        return KafkaError(code, f"group {self.request.group_id}: {text}")


class Joining:
    """Adds members to the classic groups of one shard."""

    __slots__ = ("_rebalances", "_table")

    def __init__(self, table: GroupTable, rebalances: Rebalances) -> None:
        self._table = table
        self._rebalances = rebalances

    def join(self, group: ClassicGroup | None, join: Join) -> Effects:
        """Add a member, or let it rejoin. For a member without an id, a missing group is created."""
        request, is_made = join.request, group is None
        if group is None:
            if request.member_id:
                raise join.is_refused(ErrorCode.UNKNOWN_MEMBER_ID, f"there is no such group with a member {request.member_id}")
            self._table.limit.check_room(f"the new group {request.group_id!r}")
            group = ClassicGroup(request.group_id)
            group.move_to(EMPTY, join.now)
        elif not self._has_room(group, join):
            return self._turn_away(group, join)
        if not group.can_follow(request.protocol_type, join.protocols):
            raise join.is_refused(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                f"a member with the protocol type {request.protocol_type!r} and the protocols "
                f"{[each.name for each in join.protocols]} has none in common with all other members "
                f"(protocol type {group.protocol_type!r}): give them the same partition.assignment.strategy",
            )
        self._check_memory(group, join)
        if is_made:
            self._table.by_id[group.group_id] = group
            effects = self._new(group, join)
            effects.records.insert(0, beginning_of(group))
            effects.is_bound = True
            return effects
        return self._again(group, join) if request.member_id else self._new(group, join)

    # -- Limits

    def _has_room(self, group: ClassicGroup, join: Join) -> bool:
        """Whether group.max.size allows the member. Current members stay; in a rebalance the last to rejoin may be refused."""
        if group.state == EMPTY:
            return True
        known = group.members.get(join.request.member_id)
        if join.request.group_instance_id is not None and not join.request.member_id:
            # Apache counts a restarted static member as a new one, and refuses it in a full group.
            known = group.members.get(group.static_ids.get(join.request.group_instance_id, ""))
        max_size = self._table.settings.group_max_size
        if group.state == PREPARING:
            return (known is not None and known.join_reply is not None) or group.joined_count < max_size
        return known is not None or len(group.members) < max_size

    def _check_memory(self, group: ClassicGroup, join: Join) -> None:
        """Raises `KafkaError` if there is no memory for the member's growth."""
        request, before_bytes = join.request, 0
        known = group.members.get(request.member_id or group.static_ids.get(request.group_instance_id or "", ""))
        parts: list[str | bytes] = [part for protocol in join.protocols for part in protocol]
        if known is not None:
            before_bytes = known.size_bytes
            parts.append(known.assignment)
        client_id = join.caller.client_id  # a new member id begins with it
        size_bytes = MEMBER_BYTES + size_of(request.member_id or client_id, request.group_instance_id, client_id, *parts)
        self._table.memory.take(size_bytes - before_bytes, group.group_id, join.now)

    def _turn_away(self, group: ClassicGroup, join: Join) -> Effects:
        member_id = join.request.member_id
        logger.info(
            "group %s: %s is turned away, the group is full (group.max.size is %d)",
            group.group_id,
            f"member {member_id}" if member_id else "a new member",
            self._table.settings.group_max_size,
        )
        effects = Effects.answer(join.reply, answers.not_joined(ErrorCode.GROUP_MAX_SIZE_REACHED, "", join.caller.version))
        member = group.members.get(member_id)
        if member is not None:
            effects.answers += self._rebalances.drop(group, member)
        elif member_id in group.pending_joins:
            self._rebalances.forget(group, member_id)
        effects.add(self._rebalances.try_complete(group, join.now))
        return effects

    # -- Members without an id

    def _new(self, group: ClassicGroup, join: Join) -> Effects:
        instance_id = join.request.group_instance_id
        member_id = f"{join.caller.client_id if instance_id is None else instance_id}-{_hyphened(self._table.new_uuid())}"
        if instance_id is not None:
            replaced = group.static_ids.get(instance_id)
            if replaced is not None:
                return self._replace(group, group.members[replaced], member_id, join)
        elif join.caller.version >= ID_HANDSHAKE_SINCE:
            group.pending_joins[member_id] = None
            self._rebalances.listen_for_pending(group, member_id, join.request.session_timeout_ms, join.now)
            response = answers.not_joined(ErrorCode.MEMBER_ID_REQUIRED, member_id, join.caller.version)
            return Effects.answer(join.reply, response)
        return self._add(group, member_id, join)

    def _add(self, group: ClassicGroup, member_id: str, join: Join) -> Effects:
        request = join.request
        member = ClassicMember(
            member_id,
            request.group_instance_id,
            join.caller.client_id,
            join.caller.host,
            request.rebalance_timeout_ms,
            request.session_timeout_ms,
            join.protocols,
        )
        member.is_new = True
        group.has_grown = group.is_initial_rebalance
        group.add(member, request.protocol_type)
        group.park_join(member, join.reply)
        self._rebalances.listen(group, member, join.now, NEW_MEMBER_JOIN_TIMEOUT_MS)
        return self._rebalances.go_on(group, f"member {member} joins (its reason: {join.reason})", join.now)

    def _replace(self, group: ClassicGroup, member: ClassicMember, member_id: str, join: Join) -> Effects:
        """A static member was restarted: it continues under another member id, and the old id is fenced."""
        old_id, old_leader = member.member_id, group.leader_id
        logger.info(
            "group %s: member %s is fenced, because another came with its instance id (group.instance.id) %s, as %s",
            group.group_id,
            old_id,
            member.instance_id,
            member_id,
        )
        replies = (group.take_join(member), member.take_sync())
        effects = Effects(answers=[answers.fenced(each, group, member) for each in replies if each is not None])
        self._rebalances.rename(group, member, member_id)
        member.is_new = False
        self._update(group, member, join)
        self._rebalances.listen(group, member, join.now)
        if group.state == STABLE and group.vote() == group.protocol_name:
            effects.add(self._keep_generation(group, member, old_leader, join))
            return effects
        group.park_join(member, join.reply)
        reason = f"static member {member} was restarted (its reason: {join.reason})"
        effects.add(self._rebalances.go_on(group, reason, join.now))
        return effects

    def _keep_generation(self, group: ClassicGroup, member: ClassicMember, old_leader: str | None, join: Join) -> Effects:
        """The restarted member keeps its assignment, without a rebalance."""
        response = answers.joined(group, member)
        if join.caller.version >= SKIP_ASSIGNMENT_SINCE:
            response.skip_assignment = group.is_leader(member.member_id)
        else:
            # A leader would assign again without a rebalance. So the response names the old member id as the leader.
            response.leader, response.members = old_leader or "", []
        effects = Effects.answer(join.reply, response, [record_of(group)])
        effects.is_bound = True
        return effects

    # -- Members with an id

    def _again(self, group: ClassicGroup, join: Join) -> Effects:
        request = join.request
        if request.member_id in group.pending_joins:
            if request.group_instance_id is not None:
                raise join.is_refused(
                    ErrorCode.UNKNOWN_SERVER_ERROR,
                    f"the id {request.member_id} was given to a member without an instance id, and comes back with one",
                )
            return self._add(group, request.member_id, join)
        member = group.member_in(request.member_id, request.group_instance_id)
        if group.state == PREPARING:
            return self._rejoin(group, member, join, "joins again")
        if group.state == COMPLETING:
            if self._is_same(member, join):
                return Effects.answer(join.reply, answers.joined(group, member))  # a retry: the response may have been lost
            return self._rejoin(group, member, join, "has changed what it can or wants to read")
        if group.is_leader(member.member_id):
            # The input of its assignment may have changed, for example the number of partitions.
            return self._rejoin(group, member, join, "leads, and asks for a new assignment")
        if not self._is_same(member, join):
            return self._rejoin(group, member, join, "has changed what it can or wants to read")
        return Effects.answer(join.reply, answers.joined(group, member))

    @staticmethod
    def _is_same(member: ClassicMember, join: Join) -> bool:
        return list(member.protocols) == join.protocols

    def _rejoin(self, group: ClassicGroup, member: ClassicMember, join: Join, what: str) -> Effects:
        before = group.take_join(member)
        answered = [] if before is None else [answers.superseded(before, group, member)]
        self._update(group, member, join)
        group.park_join(member, join.reply)
        effects = Effects(answers=answered)
        effects.add(self._rebalances.go_on(group, f"member {member} {what} (its reason: {join.reason})", join.now))
        return effects

    @staticmethod
    def _update(group: ClassicGroup, member: ClassicMember, join: Join) -> None:
        group.set_protocols(member, join.protocols)
        member.rebalance_timeout_ms = join.request.rebalance_timeout_ms
        member.session_timeout_ms = join.request.session_timeout_ms


def _hyphened(uuid: Uuid) -> str:
    """A UUID as Java prints it: member ids end with one."""
    digits = uuid.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
