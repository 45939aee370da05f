"""Tests of `ottla.coordinator.groups.consumer.describing`."""

from tests.support.shards.consumer_harness import ConsumerHarness

from ottla.coordinator.groups.settings import GroupSettings
from ottla.errors.codes import ErrorCode


def test_a_member_that_revokes_partitions_is_shown_holding_them() -> None:
    harness = ConsumerHarness({"t": 4})
    harness.join("a", rack_id="r", server_assignor="range")
    harness.join("b", instance_id="i")
    harness.heartbeat("a", 2)
    group = harness.shard.consumer.describe("g", 1)
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Reconciling", 3, 3)
    assert group.assignor_name == "range"
    first, second = group.members
    assert (first.member_id, first.rack_id, first.member_epoch, first.member_type) == ("a", "r", 2, 1)
    assert [(each.topic_name, each.partitions) for each in first.assignment.topic_partitions] == [("t", [0, 1, 2, 3])]
    assert [len(each.partitions) for each in first.target_assignment.topic_partitions] == [2]
    assert (second.instance_id, second.member_epoch, second.assignment.topic_partitions) == ("i", 3, [])


def test_deleted_topics_are_left_out() -> None:
    harness = ConsumerHarness({"t": 1})
    harness.join("a")
    harness.set_topic("t", None)
    (member,) = harness.shard.consumer.describe("g", 1).members
    assert member.assignment.topic_partitions == []
    assert member.subscribed_topic_names == ["t"]


def test_unknown_groups_are_described_with_an_error() -> None:
    harness = ConsumerHarness()
    assert harness.shard.consumer.describe("g", 1).error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_the_consumer_protocol_is_refused_when_switched_off() -> None:
    harness = ConsumerHarness({}, GroupSettings(rebalance_protocols=("classic",)))
    assert harness.shard.consumer.describe("g", 1).error_code == ErrorCode.UNSUPPORTED_VERSION
