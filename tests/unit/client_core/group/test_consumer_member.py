"""The KIP-848 membership against Ottla's own coordinator: heartbeats, reconciliation, errors, leaving, mixed groups."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.shards.fake_metadata import FakeMetadata, topic_id_of
from tests.support.shards.group_world import ClientSettings, GroupClient, GroupWorld

from ottla.client_core.coordinators import CoordinatorFinder
from ottla.client_core.group.assignors import RangeAssignor
from ottla.client_core.group.base_member import Handover, Identity, SubscribedTopics
from ottla.client_core.group.classic_member import ClassicMember
from ottla.client_core.group.consumer_member import (
    LEAVE_STATIC_EPOCH,
    ConsumerMember,
    ConsumerTarget,
    Said,
    heartbeat_request,
    leave_heartbeat,
)
from ottla.client_core.group.membership import Assign, Event, Failed, LeaveOption, Left, Lost, Membership, Revoke, ServerRegex
from ottla.client_core.machine import Channel, Request
from ottla.client_core.metadata import Metadata
from ottla.errors import UnsupportedVersionError, exception_of
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition, Uuid
from ottla.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)
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


# The target of a KIP-848 member: give up first, then take, and wait only for topics that are not known.


class Member:
    """A target with what is around it, and an owner that handles events at once."""

    def __init__(self, **counts: int) -> None:
        self.metadata = FakeMetadata(**counts)
        self.handover = Handover()
        self.topics = SubscribedTopics(self.metadata, exclude_internal=True)
        self.target = ConsumerTarget(self.handover, self.metadata, self.topics)

    def assign(self, by_id: dict[Uuid, list[int]]) -> list[Event]:
        given = [ConsumerGroupHeartbeatResponseTopicPartitions(topic_id=each, partitions=has) for each, has in by_id.items()]
        self.target.set(Assignment(topic_partitions=given))
        return self.advance()

    def advance(self) -> list[Event]:
        """Go on until the target has nothing more to do."""
        events: list[Event] = []
        for _ in range(5):
            self.target.advance()
            taken = self.handover.take_events()
            events += taken
            self.handover.revoked()
            self.handover.assignment_taken()
            if not taken:
                break
        return events


def test_first_target_is_assigned_and_reached() -> None:
    member = Member(t=3)
    assert not member.target.is_reached
    assert member.assign({topic_id_of("t"): [2, 0]}) == [Assign(partitions("t", 0, 2), partitions("t", 0, 2))]
    assert member.target.is_reached
    assert member.target.held() == {topic_id_of("t"): (0, 2)}


def test_empty_first_target_is_an_assignment_of_nothing() -> None:
    member = Member()
    assert member.assign({}) == [Assign(frozenset(), frozenset())]
    assert member.target.is_reached


def test_same_target_again_is_no_event() -> None:
    member = Member(t=2)
    member.assign({topic_id_of("t"): [0]})
    assert member.assign({topic_id_of("t"): [0]}) == []
    assert member.target.is_reached


def test_partitions_are_given_up_before_new_ones_are_taken() -> None:
    member = Member(t=2, u=1)
    member.assign({topic_id_of("t"): [0, 1]})
    events = member.assign({topic_id_of("t"): [1], topic_id_of("u"): [0]})
    has = partitions("t", 1) | partitions("u", 0)
    assert events == [Revoke(partitions("t", 0)), Assign(has, partitions("u", 0))]


def test_nothing_is_taken_while_the_owner_gives_up() -> None:
    member = Member(t=2)
    member.assign({topic_id_of("t"): [0]})
    member.target.set(
        Assignment(topic_partitions=[ConsumerGroupHeartbeatResponseTopicPartitions(topic_id=topic_id_of("t"), partitions=[1])])
    )
    member.target.advance()
    assert member.handover.take_events() == [Revoke(partitions("t", 0))]
    assert not member.target.is_reached
    assert member.target.held() == {topic_id_of("t"): (0,)}


def test_unknown_topic_is_asked_for_and_does_not_hold_up_the_rest() -> None:
    member = Member(t=1)
    events = member.assign({topic_id_of("t"): [0], topic_id_of("later"): [0]})
    assert events == [Assign(partitions("t", 0), partitions("t", 0))]
    assert not member.target.is_reached
    assert len(member.metadata.refreshes) == 1
    assert member.advance() == []
    assert len(member.metadata.refreshes) == 1, "each response is waited for once"
    member.metadata.full_responses += 1
    assert member.advance() == []
    assert len(member.metadata.refreshes) == 2
    member.metadata.put("later", [()])
    has = partitions("t", 0) | partitions("later", 0)
    assert member.advance() == [Assign(has, partitions("later", 0))]
    assert member.target.is_reached


def test_first_target_of_unknown_topics_only_waits() -> None:
    member = Member()
    assert member.assign({topic_id_of("later"): [0]}) == []
    assert not member.target.is_reached


def test_topic_created_again_is_given_up_and_taken_with_its_new_id() -> None:
    member = Member(t=1)
    member.assign({topic_id_of("t"): [0]})
    again = Uuid(b"t again.........")
    member.metadata.put("t", [()], topic_id=again)
    assert member.target.held() == {topic_id_of("t"): (0,)}, "the member still owns the old one"
    events = member.assign({again: [0]})
    assert events == [Revoke(partitions("t", 0)), Assign(partitions("t", 0), partitions("t", 0))]
    assert member.target.held() == {again: (0,)}


def test_topic_that_left_the_metadata_keeps_its_name_while_it_is_owned() -> None:
    member = Member(t=2)
    member.assign({topic_id_of("t"): [0]})
    del member.metadata.topics["t"]
    assert member.assign({topic_id_of("t"): [0, 1]}) == [Assign(partitions("t", 0, 1), partitions("t", 1))]


def test_reset_forgets_the_target() -> None:
    member = Member(t=1)
    member.assign({topic_id_of("t"): [0]})
    member.handover.lose("evicted")
    member.target.reset()
    assert member.advance() == [Lost(partitions("t", 0), "evicted")]
    assert not member.target.is_reached
    assert member.target.held() == {}
    assert member.assign({topic_id_of("t"): [0]}) == [Assign(partitions("t", 0), partitions("t", 0))]


def test_pattern_of_the_coordinator_takes_its_names_from_the_target() -> None:
    member = Member(t=1)
    member.topics.set(ServerRegex("t.*"))
    member.assign({topic_id_of("t"): [0], topic_id_of("t2"): [0]})
    assert member.metadata.is_all_wanted
    member.metadata.put("t2", [()])
    member.advance()
    assert member.topics.names == {"t", "t2"}
    assert not member.metadata.is_all_wanted


# The fields of ConsumerGroupHeartbeat: everything in the first one, then only what has changed.

TOPIC = Uuid(b"t" * 16)
SETTINGS = ClientSettings(client_rack="east", max_poll_interval_ms=30_000, group_remote_assignor="uniform")
NOTHING = Said((), None, {})
HELD = Said(("t",), None, {TOPIC: (0, 2)})


def message(now: Said, before: Said | None, settings: ClientSettings = SETTINGS) -> Any:
    request = heartbeat_request(settings, Identity("g", "i", "m"), 4, now, before, 1)
    assert (request.node, request.channel, request.context) == (1, Channel.GROUP, ("m", -1))
    return request.message


def changes(sent: Any) -> dict[str, Any]:
    """The fields that are not left out."""
    found = {
        "names": sent.subscribed_topic_names,
        "regex": sent.subscribed_topic_regex,
        "held": sent.topic_partitions and {each.topic_id: each.partitions for each in sent.topic_partitions},
        "rack": sent.rack_id,
        "instance": sent.instance_id,
        "assignor": sent.server_assignor,
        "timeout": None if sent.rebalance_timeout_ms == -1 else sent.rebalance_timeout_ms,
    }
    return {name: value for name, value in found.items() if value is not None}


def test_first_heartbeat_says_everything() -> None:
    sent = message(HELD, None)
    assert (sent.group_id, sent.member_id, sent.member_epoch) == ("g", "m", 4)
    assert changes(sent) == {
        "names": ["t"],
        "held": {TOPIC: [0, 2]},
        "rack": "east",
        "instance": "i",
        "assignor": "uniform",
        "timeout": 30_000,
    }


def test_first_heartbeat_says_that_nothing_is_held() -> None:
    assert changes(message(NOTHING, None, ClientSettings()))["held"] == [], "an empty list, not null"
    assert "rack" not in changes(message(NOTHING, None, ClientSettings())), "an empty client.rack is none"


def test_heartbeat_without_changes_says_nothing() -> None:
    assert changes(message(HELD, HELD)) == {}


def test_changed_names_are_sent_alone() -> None:
    assert changes(message(HELD._replace(names=("t", "u")), HELD)) == {"names": ["t", "u"]}


def test_changed_partitions_are_sent_whole() -> None:
    assert changes(message(HELD._replace(held={TOPIC: (0,)}), HELD)) == {"held": {TOPIC: [0]}}
    assert changes(message(HELD._replace(held={}), HELD)) == {"held": []}


def test_pattern_is_sent_once_and_taken_back_with_an_empty_one() -> None:
    pattern = Said((), "t.*", {})
    assert changes(message(pattern, NOTHING)) == {"regex": "t.*"}
    assert changes(message(pattern, pattern)) == {}
    assert changes(message(NOTHING, pattern)) == {"regex": ""}
    assert changes(message(pattern, None))["regex"] == "t.*"


def test_no_pattern_is_left_out_of_the_first_heartbeat() -> None:
    """Version 0 has no field for it, and a broker that speaks no newer one refuses an empty one."""
    assert "regex" not in changes(message(HELD, None))


def test_last_heartbeat_names_the_static_member() -> None:
    request = leave_heartbeat(Identity("g", "i", "m"), LEAVE_STATIC_EPOCH, 1)
    sent: Any = request.message
    assert (sent.group_id, sent.member_id, sent.member_epoch) == ("g", "m", -2)
    assert changes(sent) == {"instance": "i"}
