"""The interface of memberships: both machines have all of it, and start with nothing."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest
from tests.support.shards.group_world import ClientSettings, GroupWorld

from ottla.client_core.coordinators import CoordinatorFinder
from ottla.client_core.group.assignors import RangeAssignor
from ottla.client_core.group.classic_member import ClassicMember
from ottla.client_core.group.consumer_member import ConsumerMember
from ottla.client_core.group.membership import NO_PARTITIONS, Failed, Left, Membership
from ottla.client_core.metadata import Metadata

Make = Callable[[ClientSettings, Metadata, CoordinatorFinder], Membership]


def classic(settings: ClientSettings, metadata: Metadata, finder: CoordinatorFinder) -> Membership:
    return ClassicMember(settings, [RangeAssignor()], metadata, finder, lambda limit: limit // 2)


def consumer(settings: ClientSettings, metadata: Metadata, finder: CoordinatorFinder) -> Membership:
    return ConsumerMember(settings, metadata, finder, lambda limit: limit // 2)


both = pytest.mark.parametrize("make", [classic, consumer])


@pytest.mark.parametrize("machine", [ClassicMember, ConsumerMember])
def test_machine_has_every_call_with_the_same_parameters(machine: type[Membership]) -> None:
    calls = [name for name, call in vars(Membership).items() if inspect.isfunction(call) and not name.startswith("_")]
    assert {"subscribe", "revoked", "commit_refused", "take_events"} <= set(calls)
    for name in calls:
        expected = list(inspect.signature(getattr(Membership, name)).parameters.values())
        found = list(inspect.signature(getattr(machine, name)).parameters.values())
        assert [(p.name, p.default) for p in found] == [(p.name, p.default) for p in expected], name


@both
def test_new_membership_is_in_no_group(make: Make) -> None:
    member = GroupWorld().add(make, group_instance_id="i").member
    assert (member.group_id, member.group_instance_id) == ("g", "i")
    assert member.generation_or_epoch == -1
    assert member.assigned == NO_PARTITIONS
    assert not member.is_stable
    assert member.subscribed_topics == frozenset()
    assert member.take_events() == []


@both
def test_answers_of_the_owner_that_were_not_asked_for_do_nothing(make: Make) -> None:
    world = GroupWorld()
    member = world.add(make).member
    member.revoked(world.now_ms)
    member.assignment_taken(world.now_ms)
    assert member.take_events() == []


@both
def test_membership_that_never_joined_leaves_without_a_request(make: Make) -> None:
    world = GroupWorld()
    client = world.add(make)
    client.member.leave(world.now_ms)
    assert client.member.step(world.now_ms) == []
    assert [type(event) for event in client.member.take_events()] == [Left]


@both
def test_membership_without_a_subscription_sends_nothing(make: Make) -> None:
    world = GroupWorld()
    client = world.add(make)
    world.run_for(10_000)
    assert [request for request in client.sent if request.node > 0] == []
    assert client.count(Failed) == 0
