"""Listing and deleting groups, and removing members."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.nodes.fake_node import FakeNode, all_versions

from ottla.client.admin.groups import MemberToRemove
from ottla.errors import GroupIdNotFoundError, GroupNotEmptyError, UnknownMemberIdError, UnsupportedVersionError
from ottla.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse


def test_groups_are_listed_by_state_type_and_protocol(admin: Any, name: str, create: Callable[..., Any], members: Any) -> None:
    create([name])
    simple, classic, new = f"{name}-simple", f"{name}-classic", f"{name}-new"
    admin.alter_consumer_group_offsets(simple, {(name, 0): 1}).raise_first()
    members.join_classic(classic, name)
    members.join_consumer(new, name, "member-of-the-new-protocol")

    def listed(**filters: Any) -> set[str]:
        return {each.group_id for each in admin.list_groups(**filters)} & {simple, classic, new}

    assert listed() == {simple, classic, new}
    assert listed(states=["Empty"]) == {simple}
    assert listed(states=["stable", "reconciling", "assigning"]) == {classic, new}
    assert listed(types=["consumer"]) == {new}
    assert listed(types=["Classic"]) == {simple, classic}
    assert listed(protocols=["consumer"]) == {classic, new}
    found = {each.group_id: each for each in admin.list_consumer_groups()}
    assert found[classic] == (classic, "consumer", "Stable", "Classic", 1)
    assert found[simple].protocol == ""
    assert all(each.is_of_consumers for each in found.values())


def test_types_in_lower_case_are_spelled_as_by_newer_brokers(scripted: Any, node: FakeNode) -> None:
    listed = [ListedGroup(group_id="b", protocol_type="consumer", group_state="Empty", group_type="classic")]
    listed.append(ListedGroup(group_id="a", protocol_type="share", group_state="Empty", group_type="share"))
    node.handlers[ListGroupsRequest] = lambda request, version: ListGroupsResponse(groups=listed)
    assert [(each.type, each.is_of_consumers) for each in scripted.list_groups()] == [("Share", False), ("Classic", True)]
    assert [each.group_id for each in scripted.list_consumer_groups()] == ["b"]


def test_broker_that_is_too_old_for_a_filter_is_told_by_an_error(scripted: Any, node: FakeNode) -> None:
    node.served = all_versions(ListGroups=(0, 3))
    for filters, what in (({"states": ["Empty"]}, "by state"), ({"types": ["Classic"]}, "by type")):
        with pytest.raises(UnsupportedVersionError, match=f"localhost:9092 is too old to list groups {what}: leave that out"):
            scripted.list_groups(**filters)


def test_groups_are_deleted_unless_they_have_members(admin: Any, name: str, create: Callable[..., Any], members: Any) -> None:
    create([name])
    empty, full = f"{name}-empty", f"{name}-full"
    admin.alter_consumer_group_offsets(empty, {(name, 0): 1}).raise_first()
    members.join_classic(full, name)
    results = admin.delete_consumer_groups([empty, full, "missing-group"])
    assert results[empty] is None
    assert isinstance(results.errors[full], GroupNotEmptyError)
    assert isinstance(results.errors["missing-group"], GroupIdNotFoundError)
    assert empty not in {each.group_id for each in admin.list_groups()}


def test_members_are_removed_by_instance_and_member_id(admin: Any, name: str, create: Callable[..., Any], members: Any) -> None:
    create([name])
    by_instance, by_id, all_of = f"{name}-1", f"{name}-2", f"{name}-3"
    members.join_classic(by_instance, name, "instance-a")
    member_id = members.join_classic(by_id, name)
    members.join_classic(all_of, name, "instance-b")
    results = admin.remove_members(by_instance, ["instance-a", "instance-z"], reason="a test")
    assert results[MemberToRemove("instance-a")] is None
    assert isinstance(results.errors[MemberToRemove("instance-z")], UnknownMemberIdError)
    admin.remove_members(by_id, [MemberToRemove(member_id=member_id)]).raise_first()
    assert len(admin.remove_members(all_of).raise_first()) == 1
    described = admin.describe_consumer_groups([by_instance, by_id, all_of])
    assert [(each.state, each.members) for each in described.values()] == [("Empty", ())] * 3


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda admin: admin.list_groups(states="Stable"), TypeError, "states must be a list"),
        (lambda admin: admin.delete_consumer_groups("g"), TypeError, "group_ids must be a list"),
        (lambda admin: admin.delete_consumer_groups([""]), ValueError, "group_ids must not be empty"),
        (lambda admin: admin.remove_members("", ["a"]), ValueError, "group_id must not be empty"),
        (lambda admin: admin.remove_members("g", "a"), TypeError, "members must be a list"),
        (lambda admin: admin.remove_members("g", [MemberToRemove()]), ValueError, "members: a member needs"),
    ],
)
def test_bad_argument_is_named(scripted: Any, call: Callable[[Any], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call(scripted)
