"""Tests of `ottla.coordinator.groups.consumer.group`: the interface `Group`."""

import pytest
from tests.support.shards.consumer_harness import ConsumerHarness, topic_id
from tests.support.shards.mixed_harness import MixedHarness

from ottla.coordinator.groups.consumer.group import ConsumerGroup
from ottla.coordinator.groups.settings import GroupSettings
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode


def _moved() -> ConsumerHarness:
    """Member "a" holds 0 and 1 since epoch 2 and is in 3; "b" holds 2 and 3 since epoch 3."""
    harness = ConsumerHarness({"t": 4})
    harness.join("a")
    harness.join("b")
    harness.heartbeat("a", 2)
    harness.heartbeat("a", 2, {"t": [0, 1]})
    harness.heartbeat("b", 3)
    return harness


def _commit(harness: ConsumerHarness, member_id: str, epoch: int, partition: int = 0, version: int = 9) -> int:
    try:
        check = harness.group().check_commit(member_id, None, epoch, version, False, harness.now)
        if check is not None:
            check("t", topic_id(1), partition)
    except KafkaError as refused:
        return refused.code
    return 0


def test_commits_in_the_members_epoch() -> None:
    harness = _moved()
    assert _commit(harness, "a", 3) == 0
    assert _commit(harness, "a", 3, 3) == 0, "as in Apache Kafka, a member in its epoch may commit for any partition"
    assert _commit(harness, "a", 4) == ErrorCode.STALE_MEMBER_EPOCH
    assert _commit(harness, "unknown", 3) == ErrorCode.UNKNOWN_MEMBER_ID
    assert _commit(harness, "a", 3, version=8) == ErrorCode.UNSUPPORTED_VERSION
    assert _commit(harness, "", -1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_commits_in_an_older_epoch_only_for_what_was_held_then() -> None:
    harness = _moved()
    assert _commit(harness, "a", 2, 0) == 0
    assert _commit(harness, "a", 2, 2) == ErrorCode.STALE_MEMBER_EPOCH
    assert _commit(harness, "a", 1, 0) == ErrorCode.STALE_MEMBER_EPOCH
    assert _commit(harness, "b", 2, 2) == ErrorCode.STALE_MEMBER_EPOCH


def test_commits_are_accepted_for_partitions_being_revoked() -> None:
    harness = ConsumerHarness({"t": 4})
    harness.join("a")
    harness.join("b")
    harness.heartbeat("a", 2)
    assert _commit(harness, "a", 2, 3) == 0


def test_stale_commits_of_classic_members_get_illegal_generation() -> None:
    harness = MixedHarness({"t": 2})
    harness.join("new")
    member_id = harness.new_id()
    generation = harness.classic_join(member_id).answer.generation_id
    assert _commit(harness, member_id, generation, version=8) == 0
    assert _commit(harness, member_id, generation + 1) == ErrorCode.ILLEGAL_GENERATION
    assert _commit(harness, member_id, generation - 1) == ErrorCode.ILLEGAL_GENERATION


def test_commits_to_an_empty_group_and_in_transactions() -> None:
    harness = ConsumerHarness({"t": 1})
    harness.join("a")
    group = harness.group()
    assert group.check_commit("", None, -1, 9, True, harness.now) is None
    with pytest.raises(KafkaError):
        group.check_commit("", None, -1, 9, False, harness.now)
    harness.heartbeat("a", -1)
    assert harness.group().check_commit("", None, -1, 9, False, harness.now) is None


def test_fetching_offsets() -> None:
    group = _moved().group()
    group.check_fetch(None, -1)
    group.check_fetch("a", 3)
    for member_id, epoch, code in (
        ("a", 2, ErrorCode.STALE_MEMBER_EPOCH),
        ("x", 3, ErrorCode.UNKNOWN_MEMBER_ID),
        (None, 3, ErrorCode.UNKNOWN_MEMBER_ID),
    ):
        with pytest.raises(KafkaError) as refused:
            group.check_fetch(member_id, epoch)
        assert refused.value.code == code


def test_a_group_with_members_cannot_be_deleted() -> None:
    harness = ConsumerHarness({"t": 1})
    harness.join("a", None, subscribed_topic_regex="t")
    with pytest.raises(KafkaError) as refused:
        harness.group().check_delete()
    assert refused.value.code == ErrorCode.NON_EMPTY_GROUP
    harness.heartbeat("a", -1)
    group = harness.group()
    group.check_delete()
    for record in group.tombstones():
        harness.shard.replay(record, 0, None)
    assert "g" not in harness.shard.table.by_id


def test_how_a_group_is_listed_and_which_offsets_it_keeps() -> None:
    harness = ConsumerHarness({"t": 1})
    harness.join("a")
    group = harness.group()
    listed = group.listed()
    assert (listed.group_type, listed.protocol_type, listed.group_state) == ("consumer", "consumer", "Stable")
    assert group.offsets_expire_from_ms("t", 5) is None
    assert group.offsets_expire_from_ms("u", 5) == 5
    group.check_offset_delete()


def test_changing_a_copy_leaves_the_group_unchanged() -> None:
    harness = _moved()
    group = harness.group()
    before = vars(group).copy()
    copy = group.copy()
    assert vars(copy) == vars(group)
    copy.members.clear()
    copy.holder_epochs.clear()
    copy.epoch = 99
    assert vars(group) == before


def test_is_subscribed_to_any_finds_names_and_expressions() -> None:
    group = ConsumerGroup("g")
    group.name_counts, group.resolved_counts = {"named": 1}, {"matched": 1}
    assert group.is_subscribed_to_any(frozenset({"named"}))
    assert group.is_subscribed_to_any(frozenset({"x", "y", "matched"}))
    assert not group.is_subscribed_to_any(frozenset({"x", "y", "z"}))
    assert not group.is_subscribed_to_any(frozenset())


# Tests of `ottla.coordinator.groups.consumer.groups`.


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
