"""Converts a classic group from and to its record: one record per group, written when a generation has its assignment.

    key    group id
    value  protocol type, generation, protocol, leader, since when, members (with subscription and assignment)

Written in version 3, as Apache does; version 4 is only read. State between two records (members that are joining, parked
requests) is not recorded: a loaded coordinator continues with the last complete generation. A member that left since is still
in it, and starts a rebalance when its session expires. The record of a downgrade lacks the member that left: with no leader in
it, it tells the loaded coordinator to rebalance.
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla.coordinator.contract import CoordinatorRecord, put
from ottla.coordinator.groups.classic.group import EMPTY, PREPARING, STABLE, ClassicGroup, ClassicMember, Protocol
from ottla.wire.messages.classic_group_records import GroupMetadataKey, GroupMetadataValue, MemberMetadata

VALUE_VERSION = 3
_NO_TIMEOUT = -1


def record_of(
    group: ClassicGroup, assignments: Mapping[str, bytes] | None = None, *, must_rebalance: bool = False
) -> CoordinatorRecord:
    """The record of the group; with `assignments` by member id, or with the members' current ones.

    With `must_rebalance`, a coordinator that loads it has the members rejoin.
    """
    members = [
        MemberMetadata(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout=member.rebalance_timeout_ms,
            session_timeout=member.session_timeout_ms,
            subscription=member.metadata(group.protocol_name),
            assignment=member.assignment if assignments is None else assignments.get(member.member_id, b""),
        )
        for member in group.members.values()
    ]
    value = GroupMetadataValue(
        protocol_type=group.protocol_type,
        generation=group.generation,
        protocol=group.protocol_name,
        leader=None if must_rebalance else group.leader_id,
        current_state_timestamp=group.state_since_ms,
        members=members,
    )
    return put(GroupMetadataKey(group=group.group_id), value, VALUE_VERSION)


def beginning_of(group: ClassicGroup) -> CoordinatorRecord:
    """The record of a new group, without the members that are joining."""
    value = GroupMetadataValue(protocol=None, leader=None, current_state_timestamp=group.state_since_ms)
    return put(GroupMetadataKey(group=group.group_id), value, VALUE_VERSION)


def take(group: ClassicGroup, value: GroupMetadataValue) -> None:
    """Set the group to the state in its record. Known members keep their state that is not in records.

    A group in PreparingRebalance is ahead of the record: the decision that wrote it also began the rebalance.
    """
    if group.state == PREPARING:
        return
    known, pending_syncs = dict(group.members), group.pending_syncs
    group.reset_members()
    for each in value.members:
        member = known.get(each.member_id)
        if member is None:
            group.add(_member(each, value.protocol), value.protocol_type)
        else:
            group.add(_updated(member, each, value.protocol), value.protocol_type)
    group.pending_syncs = {member_id: None for member_id in pending_syncs if member_id in group.members}
    group.protocol_type = value.protocol_type
    group.protocol_name = value.protocol
    group.generation = value.generation
    group.leader_id = value.leader if value.leader in group.members else next(iter(group.members), None)
    group.must_rebalance = value.leader is None and bool(group.members)
    group.state = STABLE if group.members else EMPTY
    group.state_since_ms = value.current_state_timestamp
    group.learn_subscriptions()


def _member(recorded: MemberMetadata, protocol: str | None) -> ClassicMember:
    return ClassicMember(
        recorded.member_id,
        recorded.group_instance_id,
        recorded.client_id,
        recorded.client_host,
        _rebalance_timeout_ms(recorded),
        recorded.session_timeout,
        [Protocol(protocol or "", recorded.subscription)],
        recorded.assignment,
    )


def _updated(member: ClassicMember, recorded: MemberMetadata, protocol: str | None) -> ClassicMember:
    chosen = Protocol(protocol or "", recorded.subscription)
    if chosen not in member.protocols:
        member.set_protocols([chosen])
    member.instance_id = recorded.group_instance_id
    member.client_id, member.client_host = recorded.client_id, recorded.client_host
    member.rebalance_timeout_ms, member.session_timeout_ms = _rebalance_timeout_ms(recorded), recorded.session_timeout
    member.assignment = recorded.assignment
    member.sync_reply = None  # answered by the decision that wrote the record
    return member


def _rebalance_timeout_ms(recorded: MemberMetadata) -> int:
    """Records of the oldest clients have no rebalance timeout: the session timeout was used for both."""
    return recorded.session_timeout if recorded.rebalance_timeout == _NO_TIMEOUT else recorded.rebalance_timeout
