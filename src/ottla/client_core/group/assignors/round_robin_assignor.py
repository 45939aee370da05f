"""The round robin assignor: all partitions of all topics in order, dealt out to the members in turn.

A member that does not subscribe to the partition's topic is passed over.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.client_core.group.assignors.base import Assignment, Assignor, MemberSubscription, TopicRacks
from ottla.client_core.group.assignors.java_order import text_order
from ottla.client_core.group.assignors.members import in_member_order, subscribed_topics
from ottla.ids import TopicPartition


class RoundRobinAssignor(Assignor):
    """Kafka's `roundrobin`."""

    name = "roundrobin"

    def assign(self, members: Sequence[MemberSubscription], topics: TopicRacks) -> Assignment:
        """Deal the partitions out."""
        assignment: Assignment = {member.member_id: [] for member in members}
        ring = in_member_order(members)
        turn = 0
        for topic in sorted(subscribed_topics(members, topics), key=text_order):
            for partition in range(len(topics[topic])):
                while topic not in ring[turn].topics:
                    turn = (turn + 1) % len(ring)
                assignment[ring[turn].member_id].append(TopicPartition(topic, partition))
                turn = (turn + 1) % len(ring)
        return assignment
