"""The classic membership against Ottla's own coordinator: joins, rebalances, errors and leaving."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.shards.group_world import ClientSettings, GroupClient, GroupWorld

from ottla.client_core.coordinators import CoordinatorFinder
from ottla.client_core.group.assignors import Assignor, RangeAssignor
from ottla.client_core.group.base_member import Identity
from ottla.client_core.group.classic_member import ClassicMember, Liveness, leave_request, sends_leave
from ottla.client_core.group.membership import Assign, Failed, LeaveOption, Left, Lost, Membership, Revoke, ServerRegex
from ottla.client_core.group.sticky import CooperativeStickyAssignor
from ottla.client_core.machine import Channel, Request
from ottla.client_core.metadata import Metadata
from ottla.errors import NetworkError, UnsupportedVersionError
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition
from ottla.wire.codec import encode_bytes
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.wire.messages.leave_group import LeaveGroupRequest
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

Make = Callable[[ClientSettings, Metadata, CoordinatorFinder], Membership]


def classic(*assignors: Callable[[], Assignor]) -> Make:
    made = [assignor() for assignor in assignors or (RangeAssignor,)]
    return lambda settings, metadata, finder: ClassicMember(settings, made, metadata, finder, lambda limit: limit // 2)


def partitions(topic: str, *indexes: int) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(topic, index) for index in indexes)


def joined(world: GroupWorld, count: int, *assignors: Callable[[], Assignor], **settings: Any) -> list[GroupClient]:
    """So many members of topic t, settled."""
    clients = [world.add(classic(*assignors), **settings) for _ in range(count)]
    for client in clients:
        client.member.subscribe(["t"], world.now_ms)
    world.run_until_stable()
    return clients


def test_one_member_gets_everything() -> None:
    world = GroupWorld({"t": 3})
    (client,) = joined(world, 1)
    assert client.member.assigned == partitions("t", 0, 1, 2)
    assert client.events == [Assign(partitions("t", 0, 1, 2), partitions("t", 0, 1, 2))]
    assert client.member.generation_or_epoch == 1
    first, second = client.messages(JoinGroupRequest)
    assert (first.member_id, second.member_id) == ("", client.member.member_id), "the second has the id that was given"


def test_nothing_is_joined_before_the_first_poll() -> None:
    world = GroupWorld()
    client = world.add(classic())
    client.is_polling = False
    client.member.subscribe(["t"], world.now_ms)
    world.run_for(10_000)
    assert client.messages(JoinGroupRequest) == []
    client.is_polling = True
    world.run_until_stable()


def test_three_members_share_and_the_eager_protocol_revokes_everything_first() -> None:
    world = GroupWorld({"t": 6})
    clients = joined(world, 2)
    third = world.add(classic())
    third.member.subscribe(["t"], world.now_ms)
    world.run_until_stable()
    assert [len(client.member.assigned) for client in world.clients] == [2, 2, 2]
    for client in clients:
        assert client.events[-2] == Revoke(client.events[-3].partitions)  # type: ignore[union-attr]


def test_cooperative_members_keep_what_they_have() -> None:
    world = GroupWorld({"t": 6})
    (first,) = joined(world, 1, CooperativeStickyAssignor)
    second = world.add(classic(CooperativeStickyAssignor))
    second.member.subscribe(["t"], world.now_ms)
    world.run_until_stable()
    revoked = [event for event in first.events if isinstance(event, Revoke)]
    assert len(revoked) == 1
    assert len(revoked[0].partitions) == 3
    assert second.member.assigned == revoked[0].partitions


@pytest.mark.parametrize("assignor", [RangeAssignor, CooperativeStickyAssignor])
def test_the_owner_is_waited_for(assignor: Callable[[], Assignor]) -> None:
    world = GroupWorld({"t": 2})
    (first,) = joined(world, 1, assignor)
    first.listener_ms = 5_000
    second = world.add(classic(assignor))
    second.member.subscribe(["t"], world.now_ms)
    world.run_until(lambda: first.count(Revoke) == 1)
    world.run_for(4_000)
    assert first.member.assigned >= partitions("t", 0, 1) - second.member.assigned
    world.run_until_stable()
    assert first.count(Lost) == 0


def test_a_member_that_leaves_is_replaced_at_once() -> None:
    world = GroupWorld()
    first, second = joined(world, 2)
    start_ms = world.now_ms
    first.member.leave(world.now_ms)
    world.run_until(lambda: first.count(Left) == 1)
    assert [type(event) for event in first.events[-2:]] == [Revoke, Left]
    world.run_until_stable()
    assert len(second.member.assigned) == 4
    assert world.now_ms - start_ms <= 2 * second.settings.heartbeat_interval_ms
    assert first.messages(LeaveGroupRequest)[0].members[0].reason == "the consumer is being closed"


@pytest.mark.parametrize(
    ("instance_id", "option", "is_sent"),
    [
        (None, LeaveOption.DEFAULT, True),
        (None, LeaveOption.REMAIN_IN_GROUP, False),
        ("i", LeaveOption.DEFAULT, False),
        ("i", LeaveOption.LEAVE_GROUP, True),
    ],
)
def test_leave_options(instance_id: str | None, option: LeaveOption, is_sent: bool) -> None:
    world = GroupWorld()
    (client,) = joined(world, 1, group_instance_id=instance_id)
    client.member.leave(world.now_ms, option)
    world.run_until(lambda: client.count(Left) == 1)
    assert bool(client.messages(LeaveGroupRequest)) is is_sent
    assert (client.member.member_id, client.member.generation_or_epoch) == ("", -1)


def test_a_static_member_that_knows_no_member_id_leaves_without_a_request() -> None:
    """Leaving by group.instance.id alone would remove another process that has joined with it."""
    world = GroupWorld()
    client = world.add(classic(), group_instance_id="i")
    world.spoil = lambda client, request, response: (
        JoinGroupResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        if isinstance(response, JoinGroupResponse)
        else response
    )
    client.member.subscribe(["t"], world.now_ms)
    world.run_until(lambda: len(client.messages(JoinGroupRequest)) == 2)
    client.member.leave(world.now_ms, LeaveOption.LEAVE_GROUP)
    world.run_until(lambda: client.count(Left) == 1)
    assert client.messages(LeaveGroupRequest) == []


def test_unsubscribe_and_subscribe_again() -> None:
    world = GroupWorld({"t": 2, "u": 2})
    (client,) = joined(world, 1)
    client.member.unsubscribe(world.now_ms)
    client.member.subscribe(["u"], world.now_ms)
    world.run_until_stable()
    assert client.member.assigned == partitions("u", 0, 1)
    assert [type(event) for event in client.events] == [Assign, Revoke, Left, Assign]


def test_leaving_with_an_owner_that_revokes_for_longer_than_the_session() -> None:
    """Without answered heartbeats the session is over by then; the world fails if a machine stays due all the time."""
    world = GroupWorld()
    (client,) = joined(world, 1)

    def spoil(client: GroupClient, request: Request, response: Any) -> Any:
        if isinstance(response, HeartbeatResponse):
            return HeartbeatResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return response

    world.spoil = spoil
    client.listener_ms = 3 * client.settings.session_timeout_ms
    client.member.leave(world.now_ms)
    world.run_for(2 * client.settings.session_timeout_ms)
    assert client.count(Left) == 0
    world.run_for(2 * client.settings.session_timeout_ms)
    assert client.count(Left) == 1


def test_leaving_with_a_slow_owner_while_a_join_is_answered() -> None:
    """The answer is not followed up; the world fails if a machine stays due all the time."""
    world = GroupWorld()
    client, _ = joined(world, 2, CooperativeStickyAssignor)
    client.listener_ms = 20_000
    client.member.rejoin("a test", world.now_ms)
    world.run_until(lambda: client.joins_out == 1)
    client.member.leave(world.now_ms)
    world.run_until(lambda: client.joins_out == 0)
    assert client.count(Left) == 0
    world.run_for(30_000)
    assert client.count(Left) == 1


def test_heartbeats_answered_with_a_rebalance_keep_the_session() -> None:
    world = GroupWorld()
    (client,) = joined(world, 1)
    client.listener_ms = 2 * client.settings.session_timeout_ms
    joined_later = world.add(classic())
    joined_later.member.subscribe(["t"], world.now_ms)
    asked = client.count(Revoke)
    world.run_until(lambda: client.count(Revoke) > asked)
    node = client.finder.node()
    world.run_for(client.settings.session_timeout_ms + client.settings.heartbeat_interval_ms)
    assert client.finder.node() == node is not None
    assert client.messages(FindCoordinatorRequest) == client.messages(FindCoordinatorRequest)[:1], "it was never lost"


def test_leaving_while_a_join_is_parked() -> None:
    world = GroupWorld()
    client = world.add(classic())
    client.member.subscribe(["t"], world.now_ms)
    world.run_until(lambda: len(client.messages(JoinGroupRequest)) == 2)
    world.run_for(20)
    assert client.joins_out == 1
    client.member.leave(world.now_ms)
    world.run_until(lambda: client.count(Left) == 1, 1_000)
    world.run_for(1_000)
    assert not world.harness.classic_group().members
    client.member.subscribe(["t"], world.now_ms)
    world.run_until_stable()


def test_a_changed_subscription_rebalances() -> None:
    world = GroupWorld({"t": 2, "u": 2})
    (client,) = joined(world, 1)
    client.member.subscribe(["t", "u"], world.now_ms)
    world.run_until(lambda: len(client.member.assigned) == 4)
    client.member.subscribe(["u"], world.now_ms)
    world.run_until(lambda: client.member.assigned == partitions("u", 0, 1))
    assert client.messages(JoinGroupRequest)[-1].reason == "the subscription has changed"


def test_new_partitions_rebalance() -> None:
    world = GroupWorld({"t": 2})
    joined(world, 2)
    world.harness.set_topic("t", 4)
    world.run_until(lambda: [len(client.member.assigned) for client in world.clients] == [2, 2])
    leader = next(client for client in world.clients if client.messages(SyncGroupRequest)[-1].assignments)
    assert leader.messages(JoinGroupRequest)[-1].reason == "the partitions of a subscribed topic have changed"


def test_a_pattern_follows_new_topics_and_skips_internal_ones() -> None:
    world = GroupWorld({"orders-a": 1, "other": 1, "__orders": 1})
    client = world.add(classic())
    client.member.subscribe(re.compile(r"(__)?orders.*"), world.now_ms)
    world.run_until_stable()
    assert client.member.subscribed_topics == {"orders-a"}
    assert len(client.messages(JoinGroupRequest)) == 2, "it waited for the list of topics"
    world.harness.set_topic("orders-b", 2)
    world.run_until(lambda: client.member.assigned == partitions("orders-a", 0) | partitions("orders-b", 0, 1))


def test_a_pattern_for_the_coordinator_is_refused_at_the_call() -> None:
    world = GroupWorld()
    with pytest.raises(UnsupportedVersionError, match=r"group\.protocol=consumer"):
        world.add(classic()).member.subscribe(ServerRegex("a.*"), 0)


def test_a_topic_that_does_not_exist_yet_is_assigned_when_it_does() -> None:
    world = GroupWorld({"t": 1})
    client = world.add(classic())
    client.member.subscribe(["t", "later"], world.now_ms)
    world.run_until(lambda: client.member.is_stable)
    world.harness.set_topic("later", 2)
    world.run_until(lambda: len(client.member.assigned) == 3)


def test_an_owner_that_does_not_poll_is_put_out_and_comes_back() -> None:
    world = GroupWorld()
    first, second = joined(world, 2)
    first.is_polling = False
    world.run_until(lambda: first.count(Left) == 1)
    assert [type(event) for event in first.events[-2:]] == [Lost, Left]
    left = first.events[-1]
    assert isinstance(left, Left)
    assert "max.poll.interval.ms=30000" in left.reason
    assert first.messages(LeaveGroupRequest)[-1].members[0].reason == left.reason[:255]
    world.run_until(lambda: len(second.member.assigned) == 4)
    first.is_polling = True
    world.run_until_stable()
    assert len(first.member.assigned) == 2


def test_an_evicted_member_loses_its_partitions_and_rejoins() -> None:
    world = GroupWorld()
    (client,) = joined(world, 1)
    world.spoil = unanswered(HeartbeatRequest)
    world.run_for(12_000)
    world.spoil = lambda client, request, response: response
    world.run_until_stable()
    assert client.count(Lost) == 0, "the coordinator has heard the heartbeats"

    def unheard(client: GroupClient, request: Request, response: Any) -> Any:
        return (
            HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID) if isinstance(response, HeartbeatResponse) else response
        )

    world.spoil = unheard
    world.run_until(lambda: client.count(Lost) == 1)
    world.spoil = lambda client, request, response: response
    world.is_exclusive = False
    world.run_until_stable()


def unanswered(kind: type) -> Callable[[GroupClient, Request, Any], Any]:
    def spoil(client: GroupClient, request: Request, response: Any) -> Any:
        if isinstance(request.message, kind):
            raise NetworkError
        return response

    return spoil


def test_static_member_comes_back_without_a_rebalance() -> None:
    world = GroupWorld()
    clients = joined(world, 1, group_instance_id="a")
    other = world.add(classic(), group_instance_id="b")
    other.member.subscribe(["t"], world.now_ms)
    world.run_until_stable()
    generation = other.member.generation_or_epoch
    held = other.member.assigned
    other.member.leave(world.now_ms)
    world.run_until(lambda: other.count(Left) == 1)
    world.clients.remove(other)
    again = world.add(classic(), group_instance_id="b")
    again.member.subscribe(["t"], world.now_ms)
    world.run_until_stable()
    assert again.member.generation_or_epoch == generation
    assert again.member.assigned == held
    assert clients[0].member.generation_or_epoch == generation


def test_a_second_consumer_with_the_same_instance_id_fences_the_first() -> None:
    world = GroupWorld()
    (first,) = joined(world, 1, group_instance_id="a")
    world.is_exclusive = False
    second = world.add(classic(), group_instance_id="a")
    second.member.subscribe(["t"], world.now_ms)
    world.run_until(lambda: first.count(Failed) == 1)
    assert [type(event) for event in first.events[-2:]] == [Lost, Failed]
    failed = first.events[-1]
    assert isinstance(failed, Failed)
    assert failed.error.code == ErrorCode.FENCED_INSTANCE_ID
    joins = len(first.messages(JoinGroupRequest))
    world.run_for(20_000)
    assert len(first.messages(JoinGroupRequest)) == joins, "polls do not fence the second in turn"
    assert second.member.is_stable


@pytest.mark.parametrize("assignor", [RangeAssignor, CooperativeStickyAssignor])
def test_the_coordinator_moves(assignor: Callable[[], Assignor]) -> None:
    world = GroupWorld()
    clients = joined(world, 3, assignor)
    before = [client.member.assigned for client in clients]
    world.move_coordinator()
    world.run_for(15_000)
    world.run_until_stable()
    assert [client.member.assigned for client in clients] == before
    assert all(client.count(Lost) == 0 for client in clients)


def test_the_coordinator_moves_away_from_a_node_that_cannot_be_reached() -> None:
    world = GroupWorld()
    clients = joined(world, 3, RangeAssignor)
    world.unreachable.add(world.coordinator)
    for client in clients:
        world.disconnect(client)
    world.run_for(4_000)  # every member has begun to connect to the old coordinator
    world.move_coordinator()
    asked = [len(client.messages(HeartbeatRequest)) for client in clients]
    world.run_until(
        lambda: all(len(client.messages(HeartbeatRequest)) > count for client, count in zip(clients, asked, strict=True)),
        2_000,
    )
    world.run_for(20_000)
    assert all(client.member.is_stable and client.count(Lost) == 0 for client in clients)


@pytest.mark.parametrize("code", [ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.GROUP_MAX_SIZE_REACHED])
def test_a_fatal_error_is_told_and_the_next_poll_tries_again(code: ErrorCode) -> None:
    world = GroupWorld()
    client = world.add(classic())
    client.member.subscribe(["t"], world.now_ms)

    def refuse(client: GroupClient, request: Request, response: Any) -> Any:
        return JoinGroupResponse(error_code=code) if isinstance(response, JoinGroupResponse) else response

    world.spoil = refuse
    world.run_until(lambda: client.count(Failed) == 1)
    failed = client.events[-1]
    assert isinstance(failed, Failed)
    assert failed.error.code == code
    assert "group g: JoinGroup was refused" in str(failed.error)
    world.spoil = lambda client, request, response: response
    world.run_until_stable()


def test_an_own_assignor_that_fails_is_named() -> None:
    class Broken(Assignor):
        name = "broken"

        def assign(self, members: Any, topics: Any) -> Any:
            raise KeyError("no such member")

    world = GroupWorld()
    client = world.add(classic(Broken))
    client.member.subscribe(["t"], world.now_ms)
    world.run_until(lambda: client.count(Failed) == 1)
    failed = client.events[-1]
    assert isinstance(failed, Failed)
    assert "the assignor 'broken' failed: KeyError('no such member')" in str(failed.error)


@pytest.mark.parametrize(("code", "is_lost"), [(ErrorCode.ILLEGAL_GENERATION, True), (ErrorCode.REBALANCE_IN_PROGRESS, False)])
def test_a_refused_commit_tells_the_member(code: ErrorCode, is_lost: bool) -> None:
    from ottla.errors import exception_of

    world = GroupWorld()
    (client,) = joined(world, 1)
    world.is_exclusive = False
    client.member.commit_refused(exception_of(code), 0, world.now_ms)
    assert client.member.is_stable, "a commit of an older generation says nothing"
    client.member.commit_refused(exception_of(code), client.member.generation_or_epoch, world.now_ms)
    assert not client.member.is_stable
    world.run_until_stable()
    assert bool(client.count(Lost)) is is_lost


def test_commits_go_past_a_parked_join_and_an_old_generation_costs_nothing_meanwhile() -> None:
    from ottla.errors import exception_of

    world = GroupWorld()
    clients = joined(world, 2, CooperativeStickyAssignor)
    member = clients[0].member
    assert member.free_channel is Channel.GROUP
    member.rejoin("for the test", world.now_ms)
    world.run_until(lambda: member.free_channel is Channel.HEARTBEAT)
    member.commit_refused(exception_of(ErrorCode.ILLEGAL_GENERATION), member.generation_or_epoch, world.now_ms)
    world.run_until_stable()
    assert member.free_channel is Channel.GROUP
    assert not any(each.count(Lost) for each in clients)


def test_sync_group_that_is_refused_joins_again() -> None:
    world = GroupWorld()
    client = world.add(classic())
    client.member.subscribe(["t"], world.now_ms)
    codes = [ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.NOT_COORDINATOR, ErrorCode.UNKNOWN_MEMBER_ID]

    def refuse(client: GroupClient, request: Request, response: Any) -> Any:
        return SyncGroupResponse(error_code=codes.pop()) if codes and isinstance(response, SyncGroupResponse) else response

    world.spoil = refuse
    world.run_until(lambda: client.member.is_stable)
    assert not codes


def test_heartbeats_carry_the_generation_and_keep_the_interval() -> None:
    world = GroupWorld()
    (client,) = joined(world, 1)
    world.run_for(31_000)
    heartbeats = client.messages(HeartbeatRequest)
    assert 9 <= len(heartbeats) <= 11
    assert {(each.generation_id, each.member_id) for each in heartbeats} == {(1, client.member.member_id)}


# LeaveGroup: which members send it, and its form in each version.


@pytest.mark.parametrize(
    ("option", "instance_id", "is_sent"),
    [
        (LeaveOption.DEFAULT, None, True),
        (LeaveOption.DEFAULT, "i", False),
        (LeaveOption.LEAVE_GROUP, None, True),
        (LeaveOption.LEAVE_GROUP, "i", True),
        (LeaveOption.REMAIN_IN_GROUP, None, False),
        (LeaveOption.REMAIN_IN_GROUP, "i", False),
    ],
)
def test_only_static_members_stay_by_default(option: LeaveOption, instance_id: str | None, is_sent: bool) -> None:
    assert sends_leave(option, instance_id) is is_sent


def message(version: int, reason: str = "closed") -> Any:
    request = leave_request(Identity("g", "i", "m"), 3, reason)
    assert (request.node, request.channel) == (3, Channel.HEARTBEAT)
    assert request.adapt is not None
    return request.adapt(version)


def test_old_version_names_one_member() -> None:
    assert (message(2).group_id, message(2).member_id, message(2).members) == ("g", "m", [])


def test_newer_version_lists_the_member_with_its_instance_id_and_reason() -> None:
    (member,) = message(5).members
    assert (member.member_id, member.group_instance_id, member.reason) == ("m", "i", "closed")


@pytest.mark.parametrize("version", range(6))
def test_every_version_can_be_encoded(version: int) -> None:
    assert b"m" in encode_bytes(message(version), version)


def test_long_reason_is_cut_to_what_brokers_accept() -> None:
    assert len(message(5, "x" * 1_000).members[0].reason) == 255


def test_request_keeps_the_id_that_the_member_had_when_it_left() -> None:
    identity = Identity("g", None, "m")
    request = leave_request(identity, 3, "closed")
    identity.forget()
    assert request.adapt is not None
    left: Any = request.adapt(5)
    assert left.members[0].member_id == "m"


# The heartbeats of a classic member: due times, the session, and answers of older generations.

NODE = 1
SETTINGS = ClientSettings(heartbeat_interval_ms=3_000, session_timeout_ms=10_000, max_poll_interval_ms=30_000)


@pytest.fixture
def identity() -> Identity:
    identity = Identity("g", "i", "m")
    identity.generation = 5
    return identity


@pytest.fixture
def liveness(identity: Identity) -> Liveness:
    liveness = Liveness(SETTINGS, identity)
    liveness.joined(1_000)
    return liveness


def sent(liveness: Liveness, now_ms: int) -> Request:
    assert liveness.is_due(now_ms)
    return liveness.send(NODE, now_ms)


def test_first_heartbeat_is_due_one_interval_after_the_join(liveness: Liveness) -> None:
    assert liveness.due_ms == 4_000
    assert not liveness.is_due(3_999)
    request = sent(liveness, 4_000)
    message: Any = request.message
    assert (message.group_id, message.generation_id, message.member_id, message.group_instance_id) == ("g", 5, "m", "i")
    assert (request.node, request.channel) == (NODE, Channel.HEARTBEAT)


def test_one_heartbeat_is_out_at_a_time(liveness: Liveness) -> None:
    request = sent(liveness, 4_000)
    assert liveness.is_mine(request)
    assert liveness.due_ms is None
    assert not liveness.is_due(20_000)
    assert liveness.answered(request, keeps_session=True, now_ms=5_000)
    assert not liveness.is_mine(request)
    assert liveness.due_ms == 7_000, "one interval after the last was sent"


def test_good_answer_extends_the_session_and_a_bad_one_does_not(liveness: Liveness) -> None:
    assert liveness.session_ends_ms == 11_000
    assert liveness.answered(sent(liveness, 4_000), keeps_session=True, now_ms=4_500)
    assert liveness.session_ends_ms == 14_500
    assert liveness.answered(sent(liveness, 8_000), keeps_session=False, now_ms=8_500)
    assert liveness.session_ends_ms == 14_500


def test_answer_to_an_older_generation_says_nothing(liveness: Liveness, identity: Identity) -> None:
    request = sent(liveness, 4_000)
    identity.generation = 6
    assert not liveness.answered(request, keeps_session=True, now_ms=4_500)
    assert liveness.session_ends_ms == 11_000
    assert liveness.due_ms == 7_000, "the next may go out"


def test_failed_heartbeat_is_sent_again_after_the_backoff(liveness: Liveness) -> None:
    sent(liveness, 4_000)
    liveness.failed(4_200)
    assert liveness.due_ms == 4_300


def test_heartbeat_that_fails_late_does_not_delay_the_next(liveness: Liveness) -> None:
    sent(liveness, 4_000)
    liveness.failed(6_950)
    assert liveness.due_ms == 7_000


def test_poll_moves_the_deadline_of_polls_only(liveness: Liveness) -> None:
    liveness.polled(2_000)
    assert (liveness.poll_due_ms, liveness.session_ends_ms) == (32_000, 11_000)
