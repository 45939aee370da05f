"""One rebalance of a classic member: JoinGroup, the leader's assignment, SyncGroup, and every way in which they end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.support.shards.fake_metadata import FakeMetadata
from tests.support.shards.group_world import ClientSettings

from ottla.client_core.group.assignors import (
    Assignment,
    Assignor,
    MemberSubscription,
    RangeAssignor,
    RebalanceProtocol,
    RoundRobinAssignor,
    TopicRacks,
)
from ottla.client_core.group.base_member import Identity
from ottla.client_core.group.classic_rebalance import (
    METADATA_WAIT_MS,
    Assigned,
    JoinExchange,
    Overtaken,
    Phase,
    Refused,
    read_assigned,
    read_members,
    rebalance_protocol_of,
    run_assignor,
    subscription_protocols,
    topic_racks,
)
from ottla.client_core.group.sticky import CooperativeStickyAssignor
from ottla.client_core.machine import Channel, Request
from ottla.client_core.metadata import Node
from ottla.errors import ClientError, ConfigError, DecodeError, NetworkError, UnknownTopicOrPartitionError
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition
from ottla.wire.consumer_protocol import read_subscription, write
from ottla.wire.messages.consumer_protocol import ConsumerProtocolSubscription
from ottla.wire.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from ottla.wire.messages.sync_group import SyncGroupResponse

NODE = 1
TOPICS = frozenset({"t"})
OWNED = frozenset({TopicPartition("t", 1)})


class Remembering(RangeAssignor):
    """Range, with a note of what it was given."""

    name = "remembering"

    def __init__(self) -> None:
        self.taken: list[tuple[Sequence[TopicPartition], int]] = []

    def on_assignment(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        self.taken.append((partitions, generation))


class Broken(Assignor):
    name = "broken"

    def assign(self, members: Sequence[MemberSubscription], topics: TopicRacks) -> Assignment:
        raise ValueError("no idea")


class Member:
    """An exchange with what is around it."""

    def __init__(self, *assignors: Assignor, **settings: Any) -> None:
        self.settings = ClientSettings(**settings)
        self.metadata = FakeMetadata(t=2)
        self.identity = Identity("g", self.settings.group_instance_id)
        self.assignors = assignors or (RangeAssignor(), RoundRobinAssignor())
        self.exchange = JoinExchange(self.settings, self.identity, self.assignors, self.metadata)

    def start(self, reason: str = "new") -> Request:
        return self.exchange.start(NODE, TOPICS, OWNED, reason)

    def join(self, *, leads: Sequence[Sequence[str]] = (), **fields: Any) -> Any:
        """Start, and let JoinGroup succeed; `leads`: the topics of each member, if this one leads."""
        self.start()
        return self.joined(leads=leads, **fields)

    def joined(self, *, leads: Sequence[Sequence[str]] = (), **fields: Any) -> Any:
        members = [
            JoinGroupResponseMember(member_id=f"m{i}", metadata=write(ConsumerProtocolSubscription(topics=list(topics))))
            for i, topics in enumerate(leads)
        ]
        known: dict[str, Any] = {
            "generation_id": 5,
            "protocol_type": "consumer",
            "protocol_name": self.assignors[0].name,
            "leader": "m0" if leads else "other",
            "member_id": "m0",
            "members": members,
        }
        return self.exchange.answered(JoinGroupResponse(**{**known, **fields}), 1_000)

    def sync(self, now_ms: int = 1_000) -> Any:
        """The SyncGroup that is due."""
        requests = self.exchange.step(NODE, now_ms)
        assert isinstance(requests, list)
        (request,) = requests
        assert self.exchange.is_mine(request)
        return request.message


def test_join_carries_the_subscription_once_for_each_assignor() -> None:
    member = Member(client_rack="east", max_poll_interval_ms=30_000, group_instance_id="i")
    request = member.start("x" * 300)
    message: Any = request.message
    assert member.exchange.phase is Phase.JOINING
    assert (request.node, request.channel) == (NODE, Channel.GROUP)
    assert (message.group_id, message.member_id, message.group_instance_id) == ("g", "", "i")
    assert (message.session_timeout_ms, message.rebalance_timeout_ms) == (10_000, 30_000)
    assert [protocol.name for protocol in message.protocols] == ["range", "roundrobin"]
    subscription = read_subscription(message.protocols[1].metadata)
    assert (subscription.topics, subscription.rack_id) == (["t"], "east")
    assert len(message.reason) == 255


@pytest.mark.parametrize(("poll_ms", "request_ms", "expected_ms"), [(30_000, 5_000, 35_000), (1_000, 40_000, 40_000)])
def test_join_is_waited_for_longer_than_a_rebalance_takes(poll_ms: int, request_ms: int, expected_ms: int) -> None:
    member = Member(max_poll_interval_ms=poll_ms, request_timeout_ms=request_ms)
    assert member.start().timeout_ms == expected_ms


def test_follower_sends_an_empty_sync_and_gets_its_assignment() -> None:
    assignor = Remembering()
    member = Member(assignor)
    assert member.join() is None
    assert member.exchange.phase is Phase.JOINED
    assert (member.identity.member_id, member.identity.generation) == ("m0", 5)
    message = member.sync()
    assert (message.generation_id, message.member_id, message.protocol_name) == (5, "m0", "remembering")
    assert message.assignments == []
    given = run_assignor(RangeAssignor(), [MemberSubscription("m0", ("t",))], {"t": [frozenset()] * 2})[0].assignment
    outcome = member.exchange.answered(SyncGroupResponse(assignment=given), 2_000)
    assert outcome == Assigned((TopicPartition("t", 0), TopicPartition("t", 1)))
    assert member.exchange.phase is Phase.IDLE
    assert assignor.taken == [], "not before the member takes it"
    member.exchange.accepted(outcome)
    assert assignor.taken == [(outcome.partitions, 5)]


def test_leader_assigns_for_all_members() -> None:
    member = Member()
    member.join(leads=[["t"], ["t"]])
    assert member.exchange.group_topics == {"t"}
    given = {each.member_id: read_assigned(each.assignment) for each in member.sync().assignments}
    assert given == {"m0": [("t", 0)], "m1": [("t", 1)]}


def test_leader_waits_for_topics_of_other_members() -> None:
    member = Member()
    member.join(leads=[["t"], ["u"]])
    assert member.exchange.step(NODE, 1_000) == []
    member.metadata.put("u", [()])
    assert [read_assigned(each.assignment) for each in member.sync().assignments] == [[("t", 0), ("t", 1)], [("u", 0)]]


def test_leader_does_not_wait_for_a_topic_that_does_not_exist() -> None:
    member = Member()
    member.join(leads=[["t"], ["u"]])
    member.metadata.errors["u"] = UnknownTopicOrPartitionError()
    assert read_assigned(member.sync().assignments[1].assignment) == []


def test_leader_assigns_without_topics_that_stay_unknown() -> None:
    member = Member()
    member.join(leads=[["t"], ["u"]])
    until_ms = member.exchange.metadata_until_ms
    assert until_ms == 1_000 + METADATA_WAIT_MS
    assert member.exchange.step(NODE, until_ms - 1) == []
    assert len(member.sync(until_ms).assignments) == 2


def test_sync_waits_for_a_coordinator() -> None:
    member = Member()
    member.join()
    assert member.exchange.step(None, 1_000) == []
    assert member.exchange.phase is Phase.JOINED


def test_static_leader_that_skips_the_assignment_sends_an_empty_sync() -> None:
    member = Member(group_instance_id="i")
    member.join(leads=[["t"]], skip_assignment=True)
    assert member.sync().assignments == []
    assert member.exchange.is_led_as_known()
    member.metadata.put("t", [()] * 3)
    assert not member.exchange.is_led_as_known(), "it watches the topics all the same"


def test_leader_notices_new_partitions_and_a_follower_does_not() -> None:
    for leads, is_noticed in (([["t"]], True), ([], False)):
        member = Member()
        member.join(leads=leads)
        member.sync()
        assert member.exchange.is_led_as_known()
        member.metadata.put("t", [()] * 3)
        assert member.exchange.is_led_as_known() is not is_noticed


@pytest.mark.parametrize("rack", ["east", ""])
def test_changed_racks_count_only_for_a_leader_that_has_one(rack: str) -> None:
    member = Member(client_rack=rack)
    member.metadata.nodes = {1: Node(1, "h", 1, "east"), 2: Node(2, "h", 2, "west")}
    member.metadata.put("t", [(1,), (2,)])
    member.join(leads=[["t"]])
    member.sync()
    member.metadata.put("t", [(2,), (2,)])
    assert member.exchange.is_led_as_known() is not bool(rack)


def test_member_id_that_the_coordinator_gives_is_used_by_the_next_join() -> None:
    member = Member()
    outcome = member.join(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="given")
    assert isinstance(outcome, Refused)
    assert outcome.error.code == ErrorCode.MEMBER_ID_REQUIRED
    message: Any = member.start().message
    assert message.member_id == "given"


@pytest.mark.parametrize("fields", [{"protocol_name": "unheard-of"}, {"protocol_type": "connect"}, {"protocol_name": None}])
def test_protocol_that_was_not_offered_is_refused(fields: dict[str, Any]) -> None:
    outcome = Member().join(**fields)
    assert isinstance(outcome, Refused)
    assert outcome.error.code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert "partition.assignment.strategy" in str(outcome.error)


def test_protocol_type_is_missing_before_version_7() -> None:
    assert Member().join(protocol_type=None) is None


def test_subscription_that_cannot_be_read_ends_the_exchange() -> None:
    outcome = Member().join(leader="m0", members=[JoinGroupResponseMember(member_id="m1", metadata=b"?")])
    assert isinstance(outcome, Refused)
    assert "a member has sent a subscription that cannot be read" in str(outcome.error)


def test_assignor_that_raises_ends_the_exchange_with_its_name() -> None:
    member = Member(Broken())
    member.join(leads=[["t"]])
    outcome = member.exchange.step(NODE, 1_000)
    assert isinstance(outcome, Refused)
    assert isinstance(outcome.error, ClientError)
    assert "group g: the assignor 'broken' failed: ValueError('no idea')" in str(outcome.error)
    assert member.exchange.phase is Phase.IDLE


def test_refused_sync_says_so() -> None:
    member = Member()
    member.join()
    member.sync()
    outcome = member.exchange.answered(SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS), 2_000)
    assert isinstance(outcome, Refused)
    assert (outcome.error.code, outcome.is_join) == (ErrorCode.REBALANCE_IN_PROGRESS, False)
    assert "group g: SyncGroup was refused" in str(outcome.error)


def test_assignment_that_cannot_be_read_ends_the_exchange() -> None:
    member = Member()
    member.join()
    member.sync()
    outcome = member.exchange.answered(SyncGroupResponse(assignment=b"?"), 2_000)
    assert isinstance(outcome, Refused)
    assert "its assignment cannot be read" in str(outcome.error)


def test_request_without_an_answer_ends_the_exchange() -> None:
    member, error = Member(), NetworkError()
    request = member.start()
    assert member.exchange.failed(error) == Refused(error, is_join=True)
    assert not member.exchange.is_mine(request)
    member.join()
    member.sync()
    assert member.exchange.failed(error) == Refused(error, is_join=False)
    assert member.exchange.phase is Phase.IDLE


def test_abandoned_join_is_waited_for_and_tells_the_member_id() -> None:
    member = Member()
    request = member.start()
    member.exchange.abandon()
    assert member.exchange.is_mine(request), "two JoinGroups must not be out"
    assert member.joined() == Overtaken("m0")
    assert member.identity.generation == -1
    assert member.exchange.phase is Phase.IDLE
    assert member.join() is None, "the next one counts"


def test_abandoned_join_that_was_refused_or_lost_leaves_no_member() -> None:
    member = Member()
    member.start()
    member.exchange.abandon()
    assert member.joined(error_code=ErrorCode.UNKNOWN_MEMBER_ID) == Overtaken("")
    member.start()
    member.exchange.abandon()
    assert member.exchange.failed(NetworkError()) == Overtaken("")


def test_abandoned_sync_is_dropped() -> None:
    member = Member()
    member.join()
    requests = member.exchange.step(NODE, 1_000)
    assert isinstance(requests, list)
    member.exchange.abandon()
    assert not member.exchange.is_mine(requests[0])
    assert member.exchange.phase is Phase.IDLE


# The bytes between members of a classic group, and what its leader makes of them.

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
