"""The range assignor: each member gets a contiguous range of every topic that it reads, in the same member order.

Where members read the same topics and the topics have equal partition counts, a member gets the same partition numbers of each
topic (co-partitioning). Static members come first, by instance id, so that a restart moves no partition.
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
