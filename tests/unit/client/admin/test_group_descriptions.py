"""Descriptions of groups of both protocols."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.nodes.fake_node import FakeNode, all_versions

from ottla.client.admin.acl_types import AclOperation
from ottla.errors import GroupIdNotFoundError, InconsistentGroupProtocolError
from ottla.ids import TopicPartition
from ottla.wire.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from ottla.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse


def test_groups_of_both_protocols_are_described(
    admin: Any, name: str, create: Callable[..., Any], members: Any, eventually: Callable[..., None]
) -> None:
    create({name: 2})
    classic, new = f"{name}-classic", f"{name}-new"
    members.join_classic(classic, name, "an-instance")
    members.join_consumer(new, name, "member-of-the-new-protocol")
    results = admin.describe_consumer_groups([classic, new, "missing-group"])
    assert isinstance(results.errors["missing-group"], GroupIdNotFoundError)
    group = results[classic]
    assert (group.type, group.state, group.assignor, group.coordinator) == ("Classic", "Stable", "range", 1)
    (member,) = group.members
    assert (member.group_instance_id, member.assignment) == ("an-instance", (TopicPartition(name, 0),))
    assert not group.is_simple
    assert group.authorized_operations is None

    def target() -> Any:
        # Each time a heartbeat: the coordinator assigns a new topic at the first one after it has heard of it.
        members.join_consumer(new, name, "member-of-the-new-protocol")
        (found,) = admin.describe_consumer_groups([new])[new].members
        return found.target_assignment

    eventually(target, (TopicPartition(name, 0), TopicPartition(name, 1)))
    group = admin.describe_consumer_groups([new])[new]
    (member,) = group.members
    assert (group.type, member.member_id, member.subscribed_topics) == ("Consumer", "member-of-the-new-protocol", (name,))
    assert group.group_epoch >= member.member_epoch >= 1
    assert member.is_classic is False


def test_simple_group_and_authorized_operations(admin: Any, name: str, create: Callable[..., Any]) -> None:
    create([name])
    admin.alter_consumer_group_offsets(name, {(name, 0): 1}).raise_first()
    group = admin.describe_consumer_groups([name], include_authorized_operations=True)[name]
    assert group.is_simple
    assert {AclOperation.READ, AclOperation.DELETE, AclOperation.DESCRIBE} <= group.authorized_operations


def test_classic_groups_keep_the_bytes_of_their_protocol(
    admin: Any, name: str, create: Callable[..., Any], members: Any
) -> None:
    create([name])
    member_id = members.join_classic(name, name)
    results = admin.describe_classic_groups([name, "missing-group"])
    assert isinstance(results.errors["missing-group"], GroupIdNotFoundError)
    group = results[name]
    assert (group.protocol, group.state, group.assignor) == ("consumer", "Stable", "range")
    (member,) = group.members
    assert member.member_id == member_id
    assert name.encode() in member.metadata
    assert name.encode() in member.assignment


@pytest.fixture
def coordinator(node: FakeNode) -> FakeNode:
    """A scripted broker that has classic groups only."""
    node.served = all_versions(ConsumerGroupDescribe=None)
    node.handlers[FindCoordinatorRequest] = lambda request, version: FindCoordinatorResponse(
        coordinators=[Coordinator(key=key, node_id=1, host="localhost", port=9092) for key in request.coordinator_keys]
    )
    return node


def test_older_broker_has_classic_groups_only(scripted: Any, coordinator: FakeNode) -> None:
    groups = [
        DescribedGroup(group_id="dead", group_state="Dead"),
        DescribedGroup(group_id="workers", group_state="Stable", protocol_type="connect"),
        DescribedGroup(
            group_id="odd",
            group_state="Stable",
            protocol_type="consumer",
            members=[DescribedGroupMember(member_id="m", member_assignment=b"\0")],
        ),
    ]
    coordinator.handlers[DescribeGroupsRequest] = lambda request, version: DescribeGroupsResponse(groups=groups)
    results = scripted.describe_consumer_groups(["dead", "workers", "odd"])
    assert isinstance(results.errors["dead"], GroupIdNotFoundError)
    assert isinstance(results.errors["workers"], InconsistentGroupProtocolError)
    assert "describe_classic_groups" in str(results.errors["workers"])
    assert results["odd"].members[0].assignment == ()


def test_bad_argument_is_named(scripted: Any) -> None:
    with pytest.raises(TypeError, match="group_ids must be a list"):
        scripted.describe_consumer_groups("g")
    with pytest.raises(ValueError, match="group_ids must not be empty"):
        scripted.describe_classic_groups([""])
