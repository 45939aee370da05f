"""Computes a group's new target assignment with an assignor, and writes the records of what changed."""

from __future__ import annotations

import logging

from ottla.coordinator.contract import Instant
from ottla.coordinator.groups.consumer.assignors import AssignedMember, Assignor, GroupView, assign_ranges, assign_uniformly
from ottla.coordinator.groups.consumer.group import ConsumerGroup, target_epoch_record, target_record
from ottla.coordinator.groups.consumer.replay import GroupDraft
from ottla.coordinator.groups.settings import GroupSettings, assignment_interval_ms
from ottla.coordinator.groups.topics import Topics
from ottla.ids import Uuid

logger = logging.getLogger("ottla.coordinator")

ASSIGNORS: dict[str, Assignor] = {"uniform": assign_uniformly, "range": assign_ranges}


def served_assignors(settings: GroupSettings) -> list[str]:
    """The assignors that members may request, the default first. Java classes, which Kafka would load, are ignored."""
    names = [name for name in settings.group_consumer_assignors if name in ASSIGNORS]
    return names or list(ASSIGNORS)


def assign(draft: GroupDraft, settings: GroupSettings, topics: Topics, now: Instant) -> None:
    """Compute a new target if the group's epoch is newer than the target's and the assignment interval has passed."""
    group = draft.group
    if group.target_epoch >= group.epoch or not _may_assign(group, settings, now):
        return
    name = group.preferred_assignor(served_assignors(settings)[0])
    targets = ASSIGNORS.get(name, assign_uniformly)(_view(group, topics))
    group_id, epoch = group.group_id, group.epoch
    records = [
        target_record(group_id, member_id, target)
        for member_id, target in targets.items()
        if group.targets.get(member_id) != target
    ]
    records.append(target_epoch_record(group_id, epoch, now.wall_ms))
    draft.write(records)
    logger.info("group %s has a new target for epoch %d, made by the assignor %s", group_id, epoch, name)


def _may_assign(group: ConsumerGroup, settings: GroupSettings, now: Instant) -> bool:
    """Whether the assignment interval has passed: members that join in a row share one assignment."""
    interval_ms = assignment_interval_ms(settings, group.group_id)
    return not group.targeted_at_ms or not interval_ms or now.wall_ms >= group.targeted_at_ms + interval_ms


def _view(group: ConsumerGroup, topics: Topics) -> GroupView:
    ids: dict[str, Uuid | None] = {name: topics.id_of(name) for name in group.subscribed()}
    known: dict[tuple[str, ...], frozenset[Uuid]] = {}  # most members of a group read the same topics
    members = {}
    for member_id, member in group.members.items():
        names = group.topics_of(member)
        read = known.get(names)
        if read is None:
            found = (ids[name] for name in names)
            read = known[names] = frozenset(each for each in found if each is not None)
        members[member_id] = AssignedMember(member.instance_id, read, group.target_of(member_id))
    counts = {topic_id: topics.partition_count(name) for name, topic_id in ids.items() if topic_id is not None}
    return GroupView(members, group.is_homogeneous, counts)
