"""Committed offsets of groups."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.nodes.fake_node import FakeNode, all_versions

from ottla.client_core.offsets import OffsetAndMetadata
from ottla.errors import GroupSubscribedToTopicError, UnknownMemberIdError, UnknownTopicOrPartitionError
from ottla.ids import TopicPartition
from ottla.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)


def test_offsets_of_many_groups_are_listed(admin: Any, name: str, create: Callable[..., Any]) -> None:
    create({name: 2})
    first, second = f"{name}-1", f"{name}-2"
    admin.alter_consumer_group_offsets(first, {(name, 0): 5, (name, 1): OffsetAndMetadata(7, "a note", 3)}).raise_first()
    admin.alter_consumer_group_offsets(second, {(name, 0): 9}).raise_first()
    everything = admin.list_consumer_group_offsets([first, second, f"{name}-none"])
    assert everything[first] == {(name, 0): OffsetAndMetadata(5), (name, 1): OffsetAndMetadata(7, "a note", 3)}
    assert everything[second] == {(name, 0): OffsetAndMetadata(9)}
    assert everything[f"{name}-none"] == {}
    some = admin.list_consumer_group_offsets({first: [(name, 0)], second: [(name, 1)]}, require_stable=True)
    assert some[first] == {(name, 0): OffsetAndMetadata(5)}
    assert some[second] == {(name, 1): None}


def test_offsets_are_deleted(admin: Any, name: str, create: Callable[..., Any]) -> None:
    create({name: 2})
    admin.alter_consumer_group_offsets(name, {(name, 0): 5, (name, 1): 6}).raise_first()
    results = admin.delete_consumer_group_offsets(name, [(name, 0), ("missing-topic", 0)])
    assert results[name, 0] is None
    assert isinstance(results.errors["missing-topic", 0], UnknownTopicOrPartitionError)
    assert list(admin.list_consumer_group_offsets([name])[name]) == [TopicPartition(name, 1)]


def test_offsets_of_a_group_with_members_are_protected(admin: Any, name: str, create: Callable[..., Any], members: Any) -> None:
    create([name])
    members.join_classic(name, name)
    altered = admin.alter_consumer_group_offsets(name, {(name, 0): 5})
    assert isinstance(altered.errors[name, 0], UnknownMemberIdError)
    deleted = admin.delete_consumer_group_offsets(name, [(name, 0)])
    assert isinstance(deleted.errors[name, 0], GroupSubscribedToTopicError)


@pytest.fixture
def coordinator(node: FakeNode) -> FakeNode:
    node.handlers[FindCoordinatorRequest] = lambda request, version: FindCoordinatorResponse(
        coordinators=[Coordinator(key=key, node_id=1, host="localhost", port=9092) for key in request.coordinator_keys]
    )
    return node


def test_older_broker_is_asked_about_one_group_at_a_time(scripted: Any, coordinator: FakeNode) -> None:
    coordinator.served = all_versions(OffsetFetch=(1, 7))
    partition = OffsetFetchResponsePartition(partition_index=0, committed_offset=4)
    coordinator.handlers[OffsetFetchRequest] = lambda request, version: OffsetFetchResponse(
        topics=[OffsetFetchResponseTopic(name=f"topic-of-{request.group_id}", partitions=[partition])]
    )
    results = scripted.list_consumer_group_offsets(["a", "b"])
    assert {key: list(results[key]) for key in results} == {"a": [("topic-of-a", 0)], "b": [("topic-of-b", 0)]}


def test_coordinator_that_has_moved_is_located_and_asked_again(scripted: Any, coordinator: FakeNode) -> None:
    codes = iter([16, 14, 0])

    def commit(request: OffsetCommitRequest, version: int) -> OffsetCommitResponse:
        assert version == 9
        partition = OffsetCommitResponsePartition(partition_index=0, error_code=next(codes))
        return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="orders", partitions=[partition])])

    coordinator.handlers[OffsetCommitRequest] = commit
    assert scripted.alter_consumer_group_offsets("g", {("orders", 0): 1}).raise_first()["orders", 0] is None
    assert len(coordinator.asked_for(FindCoordinatorRequest)) == 3


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda admin: admin.list_consumer_group_offsets("g"), TypeError, "groups must be a list or a mapping"),
        (lambda admin: admin.list_consumer_group_offsets({"g": ["a"]}), TypeError, r"groups\['g'\]: a partition is"),
        (lambda admin: admin.alter_consumer_group_offsets("", {}), ValueError, "group_id must not be empty"),
        (lambda admin: admin.alter_consumer_group_offsets("g", {("a", 0): -1}), ValueError, "offsets.*is -1"),
        (lambda admin: admin.delete_consumer_group_offsets("g", ("a", 0)), TypeError, "wanted_partitions: a partition is"),
    ],
)
def test_bad_argument_is_named(scripted: Any, call: Callable[[Any], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call(scripted)
