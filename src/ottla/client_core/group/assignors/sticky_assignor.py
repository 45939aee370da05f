"""The sticky and the cooperative-sticky assignor: balanced, with as few partitions moved as possible.

Both compute the same; they differ in how members say what they owned (`sticky_history.py`), and in that cooperative-sticky
withholds a partition that another member still has. That member gives it up, and the next rebalance hands it on.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct

from ottla.client_core.group.assignors.base import (
    NO_GENERATION,
    Assignment,
    Assignor,
    MemberSubscription,
    RebalanceProtocol,
    TopicRacks,
)
from ottla.client_core.group.assignors.members import in_hash_order, subscribed_topics
from ottla.client_core.group.assignors.sticky_constrained import ConstrainedAssignment
from ottla.client_core.group.assignors.sticky_general import GeneralAssignment
from ottla.client_core.group.assignors.sticky_history import History, read_sticky_user_data, settle, write_sticky_user_data
from ottla.client_core.group.assignors.sticky_racks import Racks
from ottla.ids import TopicPartition

_GENERATION = Struct(">i")


class StickyAssignor(Assignor):
    """Kafka's `sticky`."""

    name = "sticky"

    def __init__(self) -> None:
        self._last: tuple[tuple[TopicPartition, ...], int] | None = None

    def subscription_user_data(self, topics: frozenset[str]) -> bytes | None:
        """The last assignment: an eager member joins with nothing."""
        return write_sticky_user_data(*self._last) if self._last is not None else None

    def on_assignment(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        """Remember it for the next join."""
        self._last = tuple(partitions), generation

    def assign(self, members: Sequence[MemberSubscription], topics: TopicRacks) -> Assignment:
        """Keep, then balance."""
        histories = {member.member_id: read_sticky_user_data(member.user_data) for member in members}
        return _assign(members, topics, histories)[0]


class CooperativeStickyAssignor(Assignor):
    """Kafka's `cooperative-sticky`."""

    name = "cooperative-sticky"
    protocols = (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)

    def __init__(self) -> None:
        self._generation = NO_GENERATION

    def subscription_user_data(self, topics: frozenset[str]) -> bytes | None:
        """The generation of the last assignment, for leaders that do not read it from the subscription."""
        return _GENERATION.pack(self._generation)

    def on_assignment(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        """Remember the generation."""
        self._generation = generation

    def assign(self, members: Sequence[MemberSubscription], topics: TopicRacks) -> Assignment:
        """Keep, balance, and withhold what another member has yet to give up."""
        histories = {member.member_id: _history(member) for member in members}
        assignment, transferred = _assign(members, topics, histories)
        if transferred is None:
            transferred = _transferred(members, assignment)
        for partition, member_id in transferred.items():
            assignment[member_id].remove(partition)
        return assignment


def _history(member: MemberSubscription) -> History:
    """What a cooperative member owns. Old clients say the generation in their user data."""
    if member.generation >= 0:
        return History(member.owned, member.generation)
    if member.user_data is None:
        return History(member.owned, None)
    if len(member.user_data) < _GENERATION.size:
        return History(member.owned, NO_GENERATION)
    return History(member.owned, int(_GENERATION.unpack_from(member.user_data)[0]))


def _assign(
    members: Sequence[MemberSubscription], topics: TopicRacks, histories: dict[str, History]
) -> tuple[Assignment, dict[TopicPartition, str] | None]:
    """The assignment, and the partitions that go from one member straight to another with their new owners, if known."""
    members = in_hash_order(members)
    topics = {topic: topics[topic] for topic in subscribed_topics(members, topics)}
    racks = Racks(members, topics)
    ownership = settle(members, histories, topics)
    if ownership.are_alike:
        constrained = ConstrainedAssignment(ownership, topics, racks)
        return constrained.run(), constrained.transferred
    return GeneralAssignment(members, ownership, histories, topics, racks).run(), None


def _transferred(members: Sequence[MemberSubscription], assignment: Assignment) -> dict[TopicPartition, str]:
    """Partitions that some member owns and another one gets."""
    owned = {member.member_id: set(member.owned) for member in members}
    given_up = {p for member_id, has in owned.items() for p in has.difference(assignment[member_id])}
    return {p: member_id for member_id, gets in assignment.items() for p in gets if p in given_up and p not in owned[member_id]}
