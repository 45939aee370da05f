"""Applies the records of consumer groups to a group. The only file that changes one.

A member's record replaces the member, and updates what the group derives from its members: the counts, and the holders of
partitions. A removed member has three tombstones, in this order: its current assignment, its target, itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ottla.coordinator.contract import Answer, CoordinatorRecord, Effects
from ottla.coordinator.groups.consumer.group import (
    LEAVE_EPOCH,
    NO_PARTITIONS,
    ClassicProtocol,
    ClassicSide,
    ConsumerGroup,
    ConsumerMember,
    EpochsOf,
    MemberState,
    Resolved,
    sorted_topics,
)
from ottla.errors import BrokenInvariant
from ottla.wire.messages import consumer_group_records as messages


def apply(group: ConsumerGroup, record: CoordinatorRecord) -> bool:
    """Apply `record`, which is about `group`. False if it removed the group."""
    value = None if record.value is None else record.value.message
    return _APPLY[record.key.KEY](group, record.key, value) is not False


def apply_all(group: ConsumerGroup, records: Iterable[CoordinatorRecord]) -> None:
    for record in records:
        apply(group, record)


# -- The group


def _group(group: ConsumerGroup, key: Any, value: messages.ConsumerGroupMetadataValue | None) -> bool:
    if value is None:
        if group.members or group.targets:
            raise BrokenInvariant(f"the log removes group {group.group_id}, and it still has members or targets")
        return False
    group.epoch, group.metadata_hash = value.epoch, value.metadata_hash
    return True


def _partition_metadata(group: ConsumerGroup, key: Any, value: object | None) -> None:
    group.has_partition_metadata = value is not None


def _target_epoch(group: ConsumerGroup, key: Any, value: messages.ConsumerGroupTargetAssignmentMetadataValue | None) -> None:
    if value is None:
        if group.targets:
            raise BrokenInvariant(f"the log removes the target of group {group.group_id}, and members still have theirs")
        group.target_epoch, group.targeted_at_ms = -1, 0
    else:
        group.target_epoch, group.targeted_at_ms = value.assignment_epoch, value.assignment_timestamp


def _target(
    group: ConsumerGroup,
    key: messages.ConsumerGroupTargetAssignmentMemberKey,
    value: messages.ConsumerGroupTargetAssignmentMemberValue | None,
) -> None:
    if value is None:
        group.targets.pop(key.member_id, None)
    else:
        group.targets[key.member_id] = {each.topic_id: tuple(sorted(each.partitions)) for each in value.topic_partitions}


def _regex(
    group: ConsumerGroup,
    key: messages.ConsumerGroupRegularExpressionKey,
    value: messages.ConsumerGroupRegularExpressionValue | None,
) -> None:
    before = group.resolved.pop(key.regular_expression, None)
    if before is not None:
        _count(group.resolved_counts, before.topics, -1)
    if value is not None:
        group.resolved[key.regular_expression] = Resolved(sorted_topics(value.topics), value.version, value.timestamp)
        _count(group.resolved_counts, sorted_topics(value.topics), 1)


# -- A member


def _member(
    group: ConsumerGroup,
    key: messages.ConsumerGroupMemberMetadataKey,
    value: messages.ConsumerGroupMemberMetadataValue | None,
) -> None:
    known = group.members.get(key.member_id)
    if value is None:
        if known is None:
            return
        if known.epoch != LEAVE_EPOCH or key.member_id in group.targets:
            raise BrokenInvariant(f"the log removes member {known} of group {group.group_id}, and it still holds something")
        del group.members[key.member_id]
        _replace(group, known, None)
        return
    classic = value.classic_member_metadata
    member = (known or ConsumerMember(key.member_id))._replace(
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topics=sorted_topics(value.subscribed_topic_names),
        regex=value.subscribed_topic_regex,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        assignor=value.server_assignor,
        classic=None
        if classic is None
        else ClassicSide(
            classic.session_timeout_ms,
            tuple(ClassicProtocol(each.name, bytes(each.metadata)) for each in classic.supported_protocols),
        ),
    )
    group.members[key.member_id] = member
    _replace(group, known, member)


def _current(
    group: ConsumerGroup,
    key: messages.ConsumerGroupCurrentMemberAssignmentKey,
    value: messages.ConsumerGroupCurrentMemberAssignmentValue | None,
) -> None:
    known = group.members.get(key.member_id)
    if value is None:
        if known is None:
            return
        member = known._replace(epoch=LEAVE_EPOCH, previous_epoch=LEAVE_EPOCH, assigned=NO_PARTITIONS, revoking=NO_PARTITIONS)
    else:
        member = (known or ConsumerMember(key.member_id))._replace(
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=MemberState.of(value.state),
            assigned=_held(value.assigned_partitions, value.member_epoch),
            revoking=_held(value.partitions_pending_revocation, value.member_epoch),
        )
    group.members[key.member_id] = member
    if known is not None:
        _release(group, known.assigned, known.epoch)
        _release(group, known.revoking, known.epoch)
    _hold(group, member)


def _held(topics: Iterable[messages.TopicPartitions], member_epoch: int) -> EpochsOf:
    """The partitions in a record, with their epochs. Old records have none: then the member's epoch is used."""
    held = {}
    for each in topics:
        epochs = each.assignment_epochs
        if epochs is None or len(epochs) != len(each.partitions):
            epochs = [max(member_epoch, 0)] * len(each.partitions)
        held[each.topic_id] = dict(sorted(zip(each.partitions, epochs, strict=True)))
    return held


# -- State derived from the members


def _count(counts: dict[str, int], names: Iterable[str], change: int) -> None:
    for name in names:
        count = counts.get(name, 0) + change
        if count:
            counts[name] = count
        else:
            counts.pop(name, None)


def _replace(group: ConsumerGroup, old: ConsumerMember | None, new: ConsumerMember | None) -> None:
    """Count `new` in place of `old`. The partitions that they hold have their own record."""
    for member, change in ((old, -1), (new, 1)):
        if member is None:
            continue
        _count(group.name_counts, member.topics, change)
        if member.regex:
            _count(group.regex_counts, (member.regex,), change)
        if member.assignor is not None:
            _count(group.assignor_counts, (member.assignor,), change)
        if member.classic is not None:
            group.classic_count += change
            _count(group.protocol_counts, (protocol.name for protocol in member.classic.protocols), change)
    if old is not None and old.instance_id is not None and group.static_ids.get(old.instance_id) == old.member_id:
        del group.static_ids[old.instance_id]
    if new is not None and new.instance_id is not None:
        group.static_ids[new.instance_id] = new.member_id


def _release(group: ConsumerGroup, held: EpochsOf, epoch: int) -> None:
    holders = group.holder_epochs
    for topic_id, partitions in held.items():
        for partition in partitions:
            # In a compacted log another member may hold it already.
            if holders.get((topic_id, partition)) == epoch:
                del holders[topic_id, partition]


def _hold(group: ConsumerGroup, member: ConsumerMember) -> None:
    holders, epoch = group.holder_epochs, member.epoch
    for held in (member.assigned, member.revoking):
        for topic_id, partitions in held.items():
            for partition in partitions:
                before = holders.get((topic_id, partition))
                if before is not None and before >= epoch:
                    raise BrokenInvariant(
                        f"the log gives partition {partition} of a topic to member {member} of group {group.group_id} in epoch "
                        f"{epoch}, and another holds it in {before}"
                    )
                holders[topic_id, partition] = epoch


_APPLY: dict[int, Callable[[ConsumerGroup, Any, Any], bool | None]] = {
    messages.ConsumerGroupMetadataKey.KEY: _group,
    messages.ConsumerGroupPartitionMetadataKey.KEY: _partition_metadata,
    messages.ConsumerGroupMemberMetadataKey.KEY: _member,
    messages.ConsumerGroupTargetAssignmentMetadataKey.KEY: _target_epoch,
    messages.ConsumerGroupTargetAssignmentMemberKey.KEY: _target,
    messages.ConsumerGroupCurrentMemberAssignmentKey.KEY: _current,
    messages.ConsumerGroupRegularExpressionKey.KEY: _regex,
}
RECORD_TYPES = frozenset(_APPLY)


# GroupDraft: a decision about one consumer group in progress, with its records and the group after their replay.
#
# Decisions must not change the group, but their steps build on each other: a member subscribes, the group's topics change, a
# new target is computed, the member gets its assignment. The draft applies each record to a copy, made with the first record.


class GroupDraft:
    """Read `group` again after each write: the first one replaces it by a copy."""

    __slots__ = ("_is_copy", "_later", "answers", "group", "records")

    def __init__(self, group: ConsumerGroup, *, is_new: bool = False) -> None:
        self.group = group
        self._is_copy = is_new
        self.records: list[CoordinatorRecord] = []
        self.answers: list[Answer] = []
        """Answers to parked requests of the classic group that this one replaces."""
        self._later: list[Callable[[], None]] = []

    def write(self, records: Iterable[CoordinatorRecord]) -> None:
        """Add `records` to the decision, and apply them to the copy: later steps build on them."""
        for record in records:
            if not self._is_copy:
                self.group, self._is_copy = self.group.copy(), True
            self.records.append(record)
            apply(self.group, record)

    def write_last(self, record: CoordinatorRecord) -> None:
        """Add a record that no later step builds on. It is not applied, so a decision with no other record needs no copy."""
        self.records.append(record)

    def when_decided(self, change: Callable[[], None]) -> None:
        """Run `change` on `finish`: for state that is in no record."""
        self._later.append(change)

    def finish(self) -> Effects:
        """Complete the decision: run the changes of `when_decided`, return records and answers."""
        for change in self._later:
            change()
        return Effects(self.records, self.answers)
