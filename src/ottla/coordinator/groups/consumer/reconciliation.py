"""Reconciles a member with its target: it first revokes partitions, then gets those that no other member holds.

    STABLE ──target changed──▶ UNREVOKED ──revocation confirmed──▶ (next epoch) ──all of it is free──▶ STABLE
                 │                                                      │
                 └── nothing to revoke ────────────────────────────────▶└── some is still held ──▶ UNRELEASED ──▶ STABLE

A partition is assigned only when no member holds it. A member holds what was assigned to it until it confirms the revocation.
A member stays in its epoch until it has revoked all that it must, and then moves to the target's epoch.

Pure functions of the member and its group.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from ottla.coordinator.groups.consumer.group import ConsumerGroup, ConsumerMember, EpochsOf, MemberState, Partitions
from ottla.coordinator.groups.topics import Topics
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid

Owned = Mapping[Uuid, Collection[int]]
"""The partitions that a member reports to hold."""


class Goal(NamedTuple):
    """The target of a member, with the topics that it may have."""

    epoch: int
    target: Partitions
    topic_ids: Collection[Uuid]
    """The topics that it subscribed to. It gets no others, even if the target, of an older subscription, has them."""


def goal_of(group: ConsumerGroup, member: ConsumerMember, topics: Topics) -> Goal:
    ids = (topics.id_of(name) for name in group.topics_of(member))
    return Goal(group.target_epoch, group.target_of(member.member_id), {each for each in ids if each is not None})


def reconcile(
    group: ConsumerGroup, member: ConsumerMember, goal: Goal, owned: Owned | None, has_resubscribed: bool
) -> ConsumerMember:
    """The member's next state. `owned` None: it did not report its partitions. `KafkaError` if it must start over."""
    state = member.state
    if state is MemberState.STABLE and member.epoch == goal.epoch:
        return _without_unsubscribed(member, goal, owned) if has_resubscribed else member
    if state is MemberState.UNREVOKED_PARTITIONS and _holds_any(owned, member.revoking):
        return _without_unsubscribed(member, goal, owned) if has_resubscribed else member
    if state is MemberState.UNKNOWN:
        if owned is None or any(owned.values()):
            raise KafkaError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                f"the state of member {member} in group {group.group_id} was written by a newer version: "
                "let go of all partitions, and join again",
            )
        member = member._replace(epoch=goal.epoch)
    return _next(group, member, goal, owned)


def _holds_any(owned: Owned | None, partitions: EpochsOf) -> bool:
    """Whether the member may hold any of `partitions`; True if it did not report."""
    if owned is None:
        return True
    return any(index in partitions.get(topic_id, ()) for topic_id, indexes in owned.items() for index in indexes)


def _without_unsubscribed(member: ConsumerMember, goal: Goal, owned: Owned | None) -> ConsumerMember:
    """The member with the partitions of unsubscribed topics moved from `assigned` to `revoking`."""
    dropped = {topic_id: held for topic_id, held in member.assigned.items() if topic_id not in goal.topic_ids}
    if not dropped:
        return member
    assigned = {topic_id: held for topic_id, held in member.assigned.items() if topic_id in goal.topic_ids}
    revoking = {topic_id: dict(held) for topic_id, held in member.revoking.items()}
    for topic_id, held in dropped.items():
        revoking[topic_id] = dict(sorted({**revoking.get(topic_id, {}), **held}.items()))
    member = member.in_epoch(member.epoch)._replace(assigned=assigned)
    if not _holds_any(owned, revoking):
        return member
    return member._replace(state=MemberState.UNREVOKED_PARTITIONS, revoking=revoking)


def _next(group: ConsumerGroup, member: ConsumerMember, goal: Goal, owned: Owned | None) -> ConsumerMember:
    kept: dict[Uuid, dict[int, int]] = {}
    given_up: dict[Uuid, dict[int, int]] = {}
    given: dict[Uuid, list[int]] = {}
    is_short = False
    for topic_id in sorted({*goal.target, *member.assigned}):
        target = goal.target.get(topic_id, ()) if topic_id in goal.topic_ids else ()
        held = member.assigned.get(topic_id, {})
        wanted = set(target)
        stays = {index: epoch for index, epoch in held.items() if index in wanted}
        goes = {index: epoch for index, epoch in held.items() if index not in wanted}
        own = member.revoking.get(topic_id, {})
        missing = [index for index in target if index not in stays]
        free = [index for index in missing if index in own or (topic_id, index) not in group.holder_epochs]
        is_short = is_short or len(free) < len(missing)
        if stays:
            kept[topic_id] = stays
        if goes:
            given_up[topic_id] = goes
        if free:
            given[topic_id] = free
    if given_up and _holds_any(owned, given_up):
        return member.in_epoch(member.epoch)._replace(state=MemberState.UNREVOKED_PARTITIONS, assigned=kept, revoking=given_up)
    for topic_id, indexes in given.items():
        epochs = {**kept.get(topic_id, {}), **dict.fromkeys(indexes, goal.epoch)}
        kept[topic_id] = dict(sorted(epochs.items()))
    return member.in_epoch(goal.epoch)._replace(
        state=MemberState.UNRELEASED_PARTITIONS if is_short else MemberState.STABLE,
        assigned={topic_id: kept[topic_id] for topic_id in sorted(kept)},
        revoking={},
    )
