"""The bytes between members of a classic group, and what its leader makes of them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.support.shards.fake_metadata import FakeMetadata

from ottla.client_core.group.assignors.base import Assignment, Assignor, MemberSubscription, RebalanceProtocol, TopicRacks
from ottla.client_core.group.assignors.range_assignor import RangeAssignor
from ottla.client_core.group.assignors.sticky_assignor import CooperativeStickyAssignor
from ottla.client_core.group.classic_leader import (
    read_assigned,
    read_members,
    rebalance_protocol_of,
    run_assignor,
    subscription_protocols,
    topic_racks,
)
from ottla.client_core.metadata import Node
from ottla.errors import ConfigError, DecodeError
from ottla.ids import TopicPartition
from ottla.wire.consumer_protocol import write
from ottla.wire.messages.consumer_protocol import ConsumerProtocolSubscription
from ottla.wire.messages.join_group import JoinGroupResponseMember

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


class OnlyCooperative(Assignor):
    name = "only-cooperative"
    protocols = (RebalanceProtocol.COOPERATIVE,)

    def assign(self, members: Sequence[MemberSubscription], topics: TopicRacks) -> Assignment:
        return {members[0].member_id: [U0, T1, T0]}


def test_protocol_is_the_highest_that_all_assignors_support() -> None:
    assert rebalance_protocol_of([CooperativeStickyAssignor()]) is RebalanceProtocol.COOPERATIVE
    assert rebalance_protocol_of([RangeAssignor(), CooperativeStickyAssignor()]) is RebalanceProtocol.EAGER


@pytest.mark.parametrize(
    ("assignors", "named"), [([RangeAssignor(), OnlyCooperative()], "range, only-cooperative"), ([], "an empty list")]
)
def test_assignors_without_a_common_protocol_are_named_in_the_error(assignors: list[Assignor], named: str) -> None:
    with pytest.raises(ConfigError, match=rf"partition\.assignment\.strategy: {named} have no rebalance protocol in common"):
        rebalance_protocol_of(assignors)


def test_subscription_is_read_by_the_leader_as_the_member_wrote_it() -> None:
    assignors = [RangeAssignor(), CooperativeStickyAssignor()]
    protocols = subscription_protocols(assignors, frozenset({"u", "t"}), frozenset({U0, T1, T0}), 6, "east")
    assert [protocol.name for protocol in protocols] == ["range", "cooperative-sticky"]
    members = read_members(
        JoinGroupResponseMember(member_id=name, group_instance_id="i", metadata=protocol.metadata)
        for name, protocol in zip("ab", protocols, strict=True)
    )
    first = MemberSubscription("a", ("t", "u"), (T0, T1, U0), 6, "i", "east", None)
    assert members == [first, first._replace(member_id="b", user_data=b"\xff\xff\xff\xff")]


def test_subscription_of_an_old_client_has_no_generation_and_no_rack() -> None:
    metadata = write(ConsumerProtocolSubscription(topics=["t"]), 0)
    (member,) = read_members([JoinGroupResponseMember(member_id="a", metadata=metadata)])
    assert member == MemberSubscription("a", ("t",))


def test_subscription_that_is_none_is_an_error() -> None:
    with pytest.raises(DecodeError):
        read_members([JoinGroupResponseMember(member_id="a", metadata=b"\x00")])


def test_topic_racks_are_those_of_replicas_in_known_topics() -> None:
    metadata = FakeMetadata()
    metadata.nodes = {1: Node(1, "h", 1, "east"), 2: Node(2, "h", 2, "west"), 3: Node(3, "h", 3)}
    metadata.put("t", [(1, 2), (3,), (1, 9)])
    assert topic_racks(metadata, ["t", "unknown"]) == {"t": [frozenset({"east", "west"}), frozenset(), frozenset({"east"})]}


def test_every_member_gets_bytes_that_it_can_read() -> None:
    members = [MemberSubscription("a", ("t", "u")), MemberSubscription("b", ("t", "u"))]
    first, second = run_assignor(OnlyCooperative(), members, {})
    assert (first.member_id, read_assigned(first.assignment)) == ("a", [U0, T1, T0]), "in the assignor's order"
    assert (second.member_id, read_assigned(second.assignment)) == ("b", []), "a member that the assignor left out"


def test_assignment_of_no_bytes_is_empty() -> None:
    assert read_assigned(b"") == []


def test_assignment_that_is_none_is_an_error() -> None:
    with pytest.raises(DecodeError):
        read_assigned(b"\x00\x03\x00")
