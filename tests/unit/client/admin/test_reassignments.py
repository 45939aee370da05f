"""Reassignments and elections."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.nodes.fake_node import FakeNode

from ottla.errors import (
    ElectionNotNeededError,
    InvalidReplicaAssignmentError,
    NoReassignmentInProgressError,
    UnknownTopicOrPartitionError,
)
from ottla.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


def test_each_partition_has_its_own_result(admin: Any, name: str, create: Callable[..., Any]) -> None:
    create({name: 3})
    results = admin.alter_partition_reassignments({(name, 0): [1], (name, 1): None, (name, 2): [77], ("missing-topic", 0): [1]})
    assert results[name, 0] is None
    assert isinstance(results.errors[name, 1], NoReassignmentInProgressError)
    assert isinstance(results.errors[name, 2], InvalidReplicaAssignmentError)
    assert isinstance(results.errors["missing-topic", 0], UnknownTopicOrPartitionError)
    assert admin.list_partition_reassignments() == {}
    assert admin.list_partition_reassignments([(name, 0)]) == {}


def test_reassignments_under_way_are_listed(scripted: Any, node: FakeNode) -> None:
    partition = OngoingPartitionReassignment(partition_index=3, replicas=[1, 2], adding_replicas=[2], removing_replicas=[1])
    topic = OngoingTopicReassignment(name="orders", partitions=[partition])
    node.handlers[ListPartitionReassignmentsRequest] = lambda request, version: ListPartitionReassignmentsResponse(
        topics=[topic]
    )
    assert scripted.list_partition_reassignments() == {("orders", 3): ((1, 2), (2,), (1,))}


@pytest.mark.parametrize("kind", ["preferred", "unclean"])
def test_election_that_is_not_needed_is_an_error(admin: Any, name: str, create: Callable[..., Any], kind: str) -> None:
    create({name: 1})
    results = admin.elect_leaders(kind, [(name, 0), ("missing-topic", 0)])
    assert isinstance(results.errors[name, 0], ElectionNotNeededError)
    assert isinstance(results.errors["missing-topic", 0], UnknownTopicOrPartitionError)
    assert admin.elect_leaders(kind).raise_first() == {}
    assert admin.elect_leaders(kind, []) == {}


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda admin: admin.alter_partition_reassignments({("a", 0): "12"}), TypeError, "reassignments.* must be a list"),
        (lambda admin: admin.alter_partition_reassignments({("a", 0): [-1]}), ValueError, "reassignments.* is -1"),
        (lambda admin: admin.list_partition_reassignments(["a"]), TypeError, "wanted_partitions: a partition is"),
        (lambda admin: admin.elect_leaders("best"), ValueError, "election_type is 'best'"),
    ],
)
def test_bad_argument_is_named(scripted: Any, call: Callable[[Any], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call(scripted)
