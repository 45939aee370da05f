"""The KIP-848 membership against Ottla's own coordinator: heartbeats, reconciliation, errors, leaving, mixed groups."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.shards.group_world import ClientSettings, GroupClient, GroupWorld

from ottla.client_core.coordinators import CoordinatorFinder
from ottla.client_core.group.assignors.range_assignor import RangeAssignor
from ottla.client_core.group.classic_member import ClassicMember
from ottla.client_core.group.consumer_member import ConsumerMember
from ottla.client_core.group.membership import Assign, Failed, LeaveOption, Left, Lost, Membership, Revoke, ServerRegex
from ottla.client_core.machine import Request
from ottla.client_core.metadata import Metadata
from ottla.errors import UnsupportedVersionError, exception_of
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from ottla.wire.messages.join_group import JoinGroupRequest

Make = Callable[[ClientSettings, Metadata, CoordinatorFinder], Membership]


def consumer(world: GroupWorld) -> Make:
    return lambda settings, metadata, finder: ConsumerMember(settings, metadata, finder, world.random.randrange)


def classic(settings: ClientSettings, metadata: Metadata, finder: CoordinatorFinder) -> Membership:
    return ClassicMember(settings, [RangeAssignor()], metadata, finder, lambda limit: limit // 2)


def partitions(topic: str, *indexes: int) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(topic, index) for index in indexes)


def joined(world: GroupWorld, count: int, **settings: Any) -> list[GroupClient]:
    """So many members of topic t, settled."""
    clients = [world.add(consumer(world), **settings) for _ in range(count)]
    for client in clients:
        client.member.subscribe(["t"], world.now_ms)
    world.run_until_stable()
    return clients


def heartbeats(client: GroupClient) -> list[ConsumerGroupHeartbeatRequest]:
    return client.messages(ConsumerGroupHeartbeatRequest)


def spoiled(codes: list[int]) -> Callable[[GroupClient, Request, Any], Any]:
    """The next heartbeats are refused with these codes."""

    def spoil(client: GroupClient, request: Request, response: Any) -> Any:
        if codes and isinstance(response, ConsumerGroupHeartbeatResponse):
            return ConsumerGroupHeartbeatResponse(error_code=codes.pop(0))
        return response

    return spoil


def test_one_member_gets_everything_and_says_so() -> None:
    world = GroupWorld({"t": 3})
    (client,) = joined(world, 1, group_remote_assignor="range", client_rack="r1")
    assert client.events == [Assign(partitions("t", 0, 1, 2), partitions("t", 0, 1, 2))]
    first, second = heartbeats(client)[:2]
    assert (first.member_epoch, first.member_id) == (0, client.member.member_id)
    assert (first.subscribed_topic_names, first.topic_partitions, first.rebalance_timeout_ms) == (["t"], [], 30_000)
    assert (first.server_assignor, first.rack_id) == ("range", "r1")
    assert second.member_epoch == client.member.generation_or_epoch > 0
    assert second.topic_partitions is not None
    assert second.topic_partitions[0].partitions == [0, 1, 2]
    assert (second.subscribed_topic_names, second.rebalance_timeout_ms, second.rack_id) == (None, -1, None)


def test_heartbeats_keep_the_servers_interval_and_say_nothing_twice() -> None:
    world = GroupWorld()
    (client,) = joined(world, 1)
    count = len(heartbeats(client))
    world.run_for(20_000)
    later = heartbeats(client)[count:]
    assert 18 <= len(later) <= 21
    assert all(each.topic_partitions is None and each.subscribed_topic_names is None for each in later)


def test_a_second_member_gets_what_the_first_has_given_up() -> None:
    world = GroupWorld({"t": 4})
    (first,) = joined(world, 1)
    first.listener_ms = 2_000
    second = world.add(consumer(world))
    second.member.subscribe(["t"], world.now_ms)
    world.run_until(lambda: first.count(Revoke) == 1)
    world.run_for(1_500)
    assert second.member.assigned == frozenset(), "nothing before the owner has revoked"
    world.run_until_stable()
    assert len(first.member.assigned) == len(second.member.assigned) == 2


def test_a_member_that_leaves_is_replaced_at_once() -> None:
    world = GroupWorld()
    first, second = joined(world, 2)
    first.member.leave(world.now_ms)
    world.run_until(lambda: len(second.member.assigned) == 4, 5_000)
    assert [type(event) for event in first.events[-2:]] == [Revoke, Left]
    assert heartbeats(first)[-1].member_epoch == -1


@pytest.mark.parametrize(
    ("instance_id", "option", "epoch"),
    [
        (None, LeaveOption.DEFAULT, -1),
        (None, LeaveOption.REMAIN_IN_GROUP, None),
        ("i", LeaveOption.DEFAULT, -2),
        ("i", LeaveOption.REMAIN_IN_GROUP, -2),
        ("i", LeaveOption.LEAVE_GROUP, -1),
    ],
)
def test_leave_options(instance_id: str | None, option: LeaveOption, epoch: int | None) -> None:
    world = GroupWorld()
    (client,) = joined(world, 1, group_instance_id=instance_id)
    last = client.member.generation_or_epoch
    client.member.leave(world.now_ms, option)
    world.run_until(lambda: client.count(Left) == 1)
    assert heartbeats(client)[-1].member_epoch == (last if epoch is None else epoch)
    assert client.member.generation_or_epoch == -1


def test_heartbeats_go_on_while_the_owner_revokes_to_leave() -> None:
    world = GroupWorld()
    (client,) = joined(world, 1)
    client.listener_ms = 15_000
    epoch = client.member.generation_or_epoch
    client.member.leave(world.now_ms)
    world.run_until(lambda: client.count(Left) == 1)
    assert client.count(Lost) == 0
    assert [each.member_epoch for each in heartbeats(client)][-3:] == [epoch, epoch, -1]


def test_a_static_member_comes_back_to_its_partitions() -> None:
    world = GroupWorld()
    joined(world, 1)
    static = world.add(consumer(world), group_instance_id="b")
    static.member.subscribe(["t"], world.now_ms)
    world.run_until_stable()
    held = static.member.assigned
    static.member.leave(world.now_ms)
    world.run_until(lambda: static.count(Left) == 1)
    world.clients.remove(static)
    again = world.add(consumer(world), group_instance_id="b")
    again.member.subscribe(["t"], world.now_ms)
    world.run_until_stable()
    assert again.member.assigned == held


def test_an_instance_id_that_is_in_use_fails_with_the_reason() -> None:
    world = GroupWorld()
    (first,) = joined(world, 1, group_instance_id="a")
    second = world.add(consumer(world), group_instance_id="a")
    second.member.subscribe(["t"], world.now_ms)
    world.run_until(lambda: second.count(Failed) == 1)
    failed = second.events[-1]
    assert isinstance(failed, Failed)
    assert failed.error.code == ErrorCode.UNRELEASED_INSTANCE_ID
    second.is_polling = False
    world.run_for(5_000)
    assert first.member.is_stable
    first.member.leave(world.now_ms)
    second.is_polling = True
    world.run_until(lambda: second.member.is_stable)


def test_unsubscribe_and_subscribe_again() -> None:
    world = GroupWorld({"t": 2, "u": 2})
    (client,) = joined(world, 1)
    client.member.unsubscribe(world.now_ms)
    client.member.subscribe(["u"], world.now_ms)
    world.run_until_stable()
    assert client.member.assigned == partitions("u", 0, 1)
    assert [type(event) for event in client.events] == [Assign, Revoke, Left, Assign]


def test_a_changed_subscription_is_said_at_once_and_alone() -> None:
    world = GroupWorld({"t": 2, "u": 2})
    (client,) = joined(world, 1)
    count = len(heartbeats(client))
    client.member.subscribe(["t", "u"], world.now_ms)
    world.run_until(lambda: len(client.member.assigned) == 4, 3_000)
    said = heartbeats(client)[count]
    assert (said.subscribed_topic_names, said.topic_partitions, said.rebalance_timeout_ms) == (["t", "u"], None, -1)


def test_new_partitions_arrive() -> None:
    world = GroupWorld({"t": 2})
    joined(world, 2)
    world.harness.set_topic("t", 4)
    world.run_until(lambda: [len(client.member.assigned) for client in world.clients] == [2, 2])


def test_a_recreated_topic_is_revoked_and_assigned_with_its_new_id() -> None:
    world = GroupWorld({"t": 2, "u": 1})
    client = world.add(consumer(world))
    client.member.subscribe(["t", "u"], world.now_ms)
    world.run_until_stable()
    world.harness.set_topic("t", None)
    world.harness.set_topic("t", 2)
    world.run_until(lambda: client.count(Revoke) == 1)
    world.run_until_stable()
    assert client.member.assigned == partitions("t", 0, 1) | partitions("u", 0)
    new_id = world.harness.topics.id_of("t")
    said = [each for each in heartbeats(client) if each.topic_partitions is not None][-1].topic_partitions
    assert said is not None
    assert new_id in {each.topic_id for each in said}


def test_a_python_pattern_is_matched_by_the_client() -> None:
    world = GroupWorld({"orders-a": 1, "other": 1, "__orders": 1})
    client = world.add(consumer(world))
    client.member.subscribe(re.compile(r"(__)?orders.*"), world.now_ms)
    world.run_until_stable()
    assert client.member.subscribed_topics == {"orders-a"}
    assert heartbeats(client)[0].subscribed_topic_names == ["orders-a"], "it waited for the list of topics"
    world.harness.set_topic("orders-b", 2)
    world.run_until(lambda: client.member.assigned == partitions("orders-a", 0) | partitions("orders-b", 0, 1))


def test_a_server_regex_is_sent_and_its_topics_are_found_by_id() -> None:
    world = GroupWorld({"orders-a": 1, "other": 1})
    client = world.add(consumer(world))
    client.member.subscribe(ServerRegex("orders.*"), world.now_ms)
    world.run_until(lambda: client.member.is_stable and len(client.member.assigned) == 1)
    assert (heartbeats(client)[0].subscribed_topic_regex, heartbeats(client)[0].subscribed_topic_names) == ("orders.*", [])
    assert client.member.subscribed_topics == {"orders-a"}
    count = len(heartbeats(client))
    client.member.subscribe(["other"], world.now_ms)
    world.run_until(lambda: client.member.is_stable and client.member.assigned == partitions("other", 0))
    assert (heartbeats(client)[count].subscribed_topic_regex, heartbeats(client)[count].subscribed_topic_names) == (
        "",
        ["other"],
    )


def test_an_owner_that_does_not_poll_is_put_out_and_comes_back() -> None:
    world = GroupWorld()
    first, second = joined(world, 2)
    first.is_polling = False
    world.run_until(lambda: first.count(Left) == 1)
    assert [type(event) for event in first.events[-2:]] == [Lost, Left]
    assert heartbeats(first)[-1].member_epoch == -1
    world.run_until(lambda: len(second.member.assigned) == 4)
    first.is_polling = True
    world.run_until_stable()


@pytest.mark.parametrize("code", [ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND])
def test_a_fenced_member_loses_its_partitions_and_joins_again(code: ErrorCode) -> None:
    world = GroupWorld()
    (client,) = joined(world, 1)
    member_id = client.member.member_id
    world.spoil = spoiled([code])
    world.run_until(lambda: client.count(Lost) == 1)
    count = len(heartbeats(client))
    world.run_until_stable()
    again = heartbeats(client)[count - 1]
    assert (again.member_id, again.member_epoch, again.topic_partitions, again.subscribed_topic_names) == (
        member_id,
        0,
        [],
        ["t"],
    )


@pytest.mark.parametrize("code", [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR])
def test_a_passing_error_is_followed_by_a_full_heartbeat(code: ErrorCode) -> None:
    world = GroupWorld()
    (client,) = joined(world, 1)
    world.spoil = spoiled([code])
    count = len(heartbeats(client))
    world.run_for(3_000)
    (full,) = [each for each in heartbeats(client)[count:] if each.topic_partitions is not None]
    epoch = client.member.generation_or_epoch
    assert (full.member_epoch, full.subscribed_topic_names, full.rebalance_timeout_ms) == (epoch, ["t"], 30_000)
    assert full.topic_partitions is not None
    assert len(full.topic_partitions) == 1
    assert client.count(Lost) == 0


def test_the_coordinator_moves() -> None:
    world = GroupWorld()
    clients = joined(world, 3)
    before = [client.member.assigned for client in clients]
    world.move_coordinator()
    world.run_for(15_000)
    world.run_until_stable()
    assert [client.member.assigned for client in clients] == before
    assert all(client.count(Lost) == 0 for client in clients)


def test_the_coordinator_moves_away_from_a_node_that_cannot_be_reached() -> None:
    world = GroupWorld()
    clients = joined(world, 3)
    world.unreachable.add(world.coordinator)
    for client in clients:
        world.disconnect(client)
    world.run_for(4_000)  # every member has begun to connect to the old coordinator
    world.move_coordinator()
    asked = [len(client.messages(ConsumerGroupHeartbeatRequest)) for client in clients]
    world.run_until(
        lambda: all(
            len(client.messages(ConsumerGroupHeartbeatRequest)) > count for client, count in zip(clients, asked, strict=True)
        ),
        2_000,
    )
    world.run_for(20_000)
    assert all(client.member.is_stable and client.count(Lost) == 0 for client in clients)


def test_a_fatal_error_is_told_and_the_next_poll_tries_again() -> None:
    world = GroupWorld()
    client = world.add(consumer(world))
    client.member.subscribe(["t"], world.now_ms)
    world.spoil = spoiled([ErrorCode.GROUP_AUTHORIZATION_FAILED])
    world.run_until(lambda: client.count(Failed) == 1)
    world.run_until_stable()


def test_brokers_without_the_protocol_are_named() -> None:
    world = GroupWorld()
    client = world.add(consumer(world))
    client.member.subscribe(["t"], world.now_ms)

    def spoil(client: GroupClient, request: Request, response: Any) -> Any:
        if isinstance(request.message, ConsumerGroupHeartbeatRequest):
            raise UnsupportedVersionError
        return response

    world.spoil = spoil
    world.run_until(lambda: client.count(Failed) == 1)
    failed = client.events[-1]
    assert isinstance(failed, Failed)
    assert "group.protocol=classic" in str(failed.error)


def test_a_refused_commit_tells_the_member() -> None:
    world = GroupWorld()
    (client,) = joined(world, 1)
    fenced = exception_of(ErrorCode.FENCED_MEMBER_EPOCH)
    client.member.commit_refused(fenced, 0, world.now_ms)
    assert client.member.is_stable, "a commit of an older epoch says nothing"
    client.member.commit_refused(fenced, client.member.generation_or_epoch, world.now_ms)
    assert not client.member.is_stable
    world.run_until_stable()
    assert client.count(Lost) == 1


@pytest.mark.parametrize("kinds", [("classic", "consumer", "consumer"), ("consumer", "classic", "classic")])
def test_members_of_both_protocols_share_a_group(kinds: tuple[str, ...]) -> None:
    world = GroupWorld({"t": 6})
    for kind in kinds:
        client = world.add(consumer(world) if kind == "consumer" else classic)
        client.member.subscribe(["t"], world.now_ms)
        world.run_until_stable()
    assert sorted(len(client.member.assigned) for client in world.clients) == [2, 2, 2]
    assert any(client.messages(JoinGroupRequest) for client in world.clients)
