"""What several assignors ask of a group's members and topics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ottla.client_core.group.assignors.base import MemberSubscription, TopicRacks
from ottla.client_core.group.assignors.java_order import hash_order, text_order


def in_hash_order(members: Sequence[MemberSubscription]) -> list[MemberSubscription]:
    """The members in the order in which Kafka's leader walks its map of subscriptions."""
    by_id = {member.member_id: member for member in members}
    return [by_id[member_id] for member_id in hash_order(by_id)]


def in_member_order(members: Iterable[MemberSubscription]) -> list[MemberSubscription]:
    """Static members by group.instance.id, then dynamic ones by member id."""
    return sorted(members, key=_member_order)


def _member_order(member: MemberSubscription) -> tuple[bool, bytes]:
    if member.group_instance_id is not None:
        return False, text_order(member.group_instance_id)
    return True, text_order(member.member_id)


def subscribed_topics(members: Sequence[MemberSubscription], topics: TopicRacks) -> list[str]:
    """The topics that some member wants and that have partitions, in the order in which Kafka's leader walks them."""
    wanted = hash_order(topic for member in in_hash_order(members) for topic in member.topics)
    return hash_order(topic for topic in wanted if topics.get(topic))


def are_racks_useful(member_racks: set[str], partitions: Iterable[frozenset[str]]) -> bool:
    """Whether racks can decide anything: some replica is in a member's rack, and not every partition is in all racks."""
    racks = list(partitions)
    all_racks = frozenset().union(*racks)
    return not member_racks.isdisjoint(all_racks) and any(of_one != all_racks for of_one in racks)
