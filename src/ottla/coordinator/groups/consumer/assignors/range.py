"""The range assignor: of every topic each reader gets a run of partitions, the runs in the same order for all topics.

With readers of the same topics, and topics of as many partitions, equal partitions go to the same member: data that belongs
together is read together. Static members come first, by instance id, so that a restart moves nothing.
"""

from __future__ import annotations

from ottla.coordinator.groups.consumer.assignors.view import Assignment, GroupView
from ottla.ids import Uuid


def assign_ranges(view: GroupView) -> dict[str, Assignment]:
    members = view.members

    def place(member_id: str) -> tuple[bool, str]:
        instance_id = members[member_id].instance_id
        return (True, member_id) if instance_id is None else (False, instance_id)

    ordered = sorted(members, key=place)
    readers: dict[Uuid, list[str]] = {}
    for member_id in ordered:
        for topic_id in members[member_id].topics:
            readers.setdefault(topic_id, []).append(member_id)
    targets: dict[str, dict[Uuid, tuple[int, ...]]] = {member_id: {} for member_id in ordered}
    for topic_id in sorted(readers):
        least, extra = divmod(view.partition_counts[topic_id], len(readers[topic_id]))
        start = 0
        for index, member_id in enumerate(readers[topic_id]):
            end = start + least + (index < extra)
            if end > start:
                targets[member_id][topic_id] = tuple(range(start, end))
            start = end
    return dict(targets)
