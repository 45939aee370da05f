"""Tests of `ottla.coordinator.groups.consumer.replay`: records, or an order of them, that Ottla's decisions never write."""

import pytest
from tests.support.shards.consumer_harness import ConsumerHarness, topic_id

from ottla.coordinator.contract import CoordinatorRecord, put, tombstone
from ottla.coordinator.groups.consumer.group import ConsumerGroup, MemberState
from ottla.coordinator.groups.consumer.replay import apply
from ottla.errors import BrokenInvariant
from ottla.wire.messages.consumer_group_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    TopicPartitions,
)
from ottla.wire.messages.streams_group_records import StreamsGroupMetadataKey, StreamsGroupMetadataValue

T = topic_id(1)


def _current(member_id: str, epoch: int, partitions: list[int], epochs: list[int] | None, state: int = 0) -> CoordinatorRecord:
    held = [TopicPartitions(topic_id=T, partitions=partitions, assignment_epochs=epochs)] if partitions else []
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=epoch, previous_member_epoch=epoch, state=state, assigned_partitions=held
    )
    return put(ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id=member_id), value)


@pytest.mark.parametrize("epochs", [None, [], [1, 2, 3]])
def test_partitions_without_epochs_get_the_members_epoch(epochs: list[int] | None) -> None:
    group = ConsumerGroup("g")
    apply(group, _current("a", 5, [0, 1], epochs))
    assert group.members["a"].assigned == {T: {0: 5, 1: 5}}
    apply(group, _current("a", -2, [0], epochs))
    assert group.members["a"].assigned == {T: {0: 0}}


def test_an_unknown_member_state_is_read_as_unknown() -> None:
    group = ConsumerGroup("g")
    apply(group, _current("a", 5, [], None, state=9))
    assert group.members["a"].state is MemberState.UNKNOWN


def test_a_later_holder_stays_when_an_earlier_one_releases() -> None:
    group = ConsumerGroup("g")
    apply(group, _current("a", 5, [0], [5]))
    apply(group, _current("b", 6, [0], [6]))  # what "a" wrote in between was compacted away
    apply(group, _current("a", 7, [], None))
    assert group.holder_epochs == {(T, 0): 6}


def test_two_holders_in_one_epoch_are_a_broken_invariant() -> None:
    group = ConsumerGroup("g")
    apply(group, _current("a", 5, [0], [5]))
    with pytest.raises(BrokenInvariant, match="another holds it"):
        apply(group, _current("b", 5, [0], [5]))


def test_tombstones_of_unknown_members_are_ignored() -> None:
    harness = ConsumerHarness()
    for key in (
        ConsumerGroupMemberMetadataKey(group_id="g", member_id="a"),
        ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="a"),
        ConsumerGroupMetadataKey(group_id="g"),
    ):
        harness.shard.replay(tombstone(key), 0, None)
    assert not harness.shard.table.by_id
    group = ConsumerGroup("g")
    assert apply(group, tombstone(ConsumerGroupMemberMetadataKey(group_id="g", member_id="a")))
    assert apply(group, tombstone(ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="a")))


def test_tombstones_out_of_order_are_a_broken_invariant() -> None:
    group = ConsumerGroup("g")
    apply(group, _current("a", 5, [0], [5]))
    with pytest.raises(BrokenInvariant, match="still holds something"):
        apply(group, tombstone(ConsumerGroupMemberMetadataKey(group_id="g", member_id="a")))
    with pytest.raises(BrokenInvariant, match="still has members"):
        apply(group, tombstone(ConsumerGroupMetadataKey(group_id="g")))


def test_a_record_of_kafka_4_0_is_deleted_at_the_next_change() -> None:
    harness = ConsumerHarness({"t": 1})
    harness.join("a")
    old = put(ConsumerGroupPartitionMetadataKey(group_id="g"), ConsumerGroupPartitionMetadataValue())
    harness.shard.replay(old, 0, None)
    harness.set_topic("t", 2)
    start = len(harness.log)
    harness.heartbeat("a", 2)
    assert (4, None) in harness.written(start)
    assert not harness.group().has_partition_metadata


def test_records_of_unserved_group_types_are_ignored() -> None:
    harness = ConsumerHarness()
    harness.shard.replay(put(StreamsGroupMetadataKey(group_id="s"), StreamsGroupMetadataValue(epoch=1)), 0, None)
    assert not harness.shard.table.by_id


def test_a_member_in_an_unknown_state_must_join_again() -> None:
    harness = ConsumerHarness({"t": 1})
    harness.join("a")
    harness.shard.replay(_current("a", 2, [0], [2], state=9), 0, None)
    assert harness.heartbeat("a", 2).code == 110
    assert harness.given(harness.join("a")) == {"t": [0]}
    assert harness.group().members["a"].state is MemberState.STABLE
