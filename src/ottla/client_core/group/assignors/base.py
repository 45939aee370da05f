"""The base class of assignors: which member of a classic group gets which partitions. The group's leader runs it.

An own assignor is a subclass with a name of its own and an `assign`:

    class EverythingToOne(Assignor):
        name = "everything-to-one"

        def assign(self, members, topics):
            first = min(member.member_id for member in members)
            everything = [TopicPartition(topic, index) for topic, racks in topics.items() for index in range(len(racks))]
            return {member.member_id: everything if member.member_id == first else [] for member in members}

All members of a group must list one common assignor; the coordinator picks it. One instance serves one consumer and may keep
state between rebalances. It runs on the client's event loop: no waiting inside.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import ClassVar, NamedTuple, TypeAlias

from ottla.ids import TopicPartition

NO_GENERATION = -1


class RebalanceProtocol(IntEnum):
    """How members hand partitions over. The number is Kafka's: a member uses the highest one that all its assignors support."""

    EAGER = 0
    """Every member gives up everything before it joins."""
    COOPERATIVE = 1
    """Members keep what they have, and give up only what the assignment takes away; a second rebalance hands that on."""


class MemberSubscription(NamedTuple):
    """What one member of the group wants and has, as it said in JoinGroup."""

    member_id: str
    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()
    """What it keeps while it joins: nothing in the eager protocol."""
    generation: int = NO_GENERATION
    """The generation in which it got `owned`; `NO_GENERATION` if none, or if the member's client is too old to say."""
    group_instance_id: str | None = None
    rack: str | None = None
    user_data: bytes | None = None


TopicRacks: TypeAlias = Mapping[str, Sequence[frozenset[str]]]
"""For every topic with known metadata its partitions: at index N the racks of partition N's replicas, empty if unknown."""

Assignment: TypeAlias = dict[str, list[TopicPartition]]
"""For every member its partitions."""


class Assignor(ABC):
    """Divides the partitions of the subscribed topics among the members of a group."""

    name: ClassVar[str]
    """What members tell the coordinator; all members of a group need one in common."""
    protocols: ClassVar[tuple[RebalanceProtocol, ...]] = (RebalanceProtocol.EAGER,)
    """The rebalance protocols that assignments of this assignor are safe with."""

    def subscription_user_data(self, topics: frozenset[str]) -> bytes | None:
        """Bytes for the leader's assignor, sent with every join; None for none."""
        return None

    @abstractmethod
    def assign(self, members: Sequence[MemberSubscription], topics: TopicRacks) -> Assignment:
        """The partitions of each member. Every member has an entry; no partition is given twice."""

    def on_assignment(self, partitions: Sequence[TopicPartition], generation: int) -> None:  # noqa: B027  # optional
        """This member got `partitions` in `generation`."""
