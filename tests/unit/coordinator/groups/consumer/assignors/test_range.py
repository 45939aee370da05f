"""Tests of `ottla.coordinator.groups.consumer.assignors.range`: contiguous ranges, the same of every topic."""

from ottla.coordinator.groups.consumer.assignors.range import assign_ranges
from ottla.coordinator.groups.consumer.assignors.view import AssignedMember, GroupView
from ottla.ids import Uuid

T, U = (Uuid(bytes(15) + bytes([number])) for number in (1, 2))


def _view(members: dict[str, tuple[str | None, set[Uuid]]], counts: dict[Uuid, int]) -> GroupView:
    found = {each: AssignedMember(instance_id, frozenset(topics), {}) for each, (instance_id, topics) in members.items()}
    return GroupView(found, False, counts)


def test_equal_topics_are_shared_equally() -> None:
    targets = assign_ranges(_view({"b": (None, {T, U}), "a": (None, {T, U})}, {T: 3, U: 3}))
    assert targets == {"a": {T: (0, 1), U: (0, 1)}, "b": {T: (2,), U: (2,)}}


def test_more_members_than_partitions() -> None:
    targets = assign_ranges(_view({"a": (None, {T}), "b": (None, {T}), "c": (None, {T})}, {T: 2}))
    assert targets == {"a": {T: (0,)}, "b": {T: (1,)}, "c": {}}


def test_each_topic_goes_to_its_readers() -> None:
    targets = assign_ranges(_view({"a": (None, {T}), "b": (None, {T, U}), "c": (None, set())}, {T: 4, U: 3}))
    assert targets == {"a": {T: (0, 1)}, "b": {T: (2, 3), U: (0, 1, 2)}, "c": {}}


def test_static_members_come_first_in_order_of_instance_id() -> None:
    targets = assign_ranges(_view({"a": (None, {T}), "z": ("1", {T}), "y": ("2", {T})}, {T: 3}))
    assert targets == {"z": {T: (0,)}, "y": {T: (1,)}, "a": {T: (2,)}}
