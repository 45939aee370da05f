"""Tests of `ottla.coordinator.groups.consumer.group`: the interface `Group`."""

import pytest
from tests.support.shards.consumer_shard import ConsumerBench, topic_id
from tests.support.shards.mixed_shard import MixedBench

from ottla.coordinator.groups.consumer.group import ConsumerGroup
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode


def _moved() -> ConsumerBench:
    """Member "a" holds 0 and 1 since epoch 2 and is in 3; "b" holds 2 and 3 since epoch 3."""
    bench = ConsumerBench({"t": 4})
    bench.join("a")
    bench.join("b")
    bench.heartbeat("a", 2)
    bench.heartbeat("a", 2, {"t": [0, 1]})
    bench.heartbeat("b", 3)
    return bench


def _commit(bench: ConsumerBench, member_id: str, epoch: int, partition: int = 0, version: int = 9) -> int:
    try:
        check = bench.group().check_commit(member_id, None, epoch, version, False, bench.now)
        if check is not None:
            check("t", topic_id(1), partition)
    except KafkaError as refused:
        return refused.code
    return 0


def test_commits_in_the_members_epoch() -> None:
    bench = _moved()
    assert _commit(bench, "a", 3) == 0
    assert _commit(bench, "a", 3, 3) == 0, "as in Apache Kafka, a member in its epoch may commit for any partition"
    assert _commit(bench, "a", 4) == ErrorCode.STALE_MEMBER_EPOCH
    assert _commit(bench, "unknown", 3) == ErrorCode.UNKNOWN_MEMBER_ID
    assert _commit(bench, "a", 3, version=8) == ErrorCode.UNSUPPORTED_VERSION
    assert _commit(bench, "", -1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_commits_in_an_older_epoch_only_for_what_was_held_then() -> None:
    bench = _moved()
    assert _commit(bench, "a", 2, 0) == 0
    assert _commit(bench, "a", 2, 2) == ErrorCode.STALE_MEMBER_EPOCH
    assert _commit(bench, "a", 1, 0) == ErrorCode.STALE_MEMBER_EPOCH
    assert _commit(bench, "b", 2, 2) == ErrorCode.STALE_MEMBER_EPOCH


def test_commits_are_accepted_for_partitions_being_revoked() -> None:
    bench = ConsumerBench({"t": 4})
    bench.join("a")
    bench.join("b")
    bench.heartbeat("a", 2)
    assert _commit(bench, "a", 2, 3) == 0


def test_stale_commits_of_classic_members_get_illegal_generation() -> None:
    bench = MixedBench({"t": 2})
    bench.join("new")
    member_id = bench.new_id()
    generation = bench.classic_join(member_id).answer.generation_id
    assert _commit(bench, member_id, generation, version=8) == 0
    assert _commit(bench, member_id, generation + 1) == ErrorCode.ILLEGAL_GENERATION
    assert _commit(bench, member_id, generation - 1) == ErrorCode.ILLEGAL_GENERATION


def test_commits_to_an_empty_group_and_in_transactions() -> None:
    bench = ConsumerBench({"t": 1})
    bench.join("a")
    group = bench.group()
    assert group.check_commit("", None, -1, 9, True, bench.now) is None
    with pytest.raises(KafkaError):
        group.check_commit("", None, -1, 9, False, bench.now)
    bench.heartbeat("a", -1)
    assert bench.group().check_commit("", None, -1, 9, False, bench.now) is None


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
    bench = ConsumerBench({"t": 1})
    bench.join("a", None, subscribed_topic_regex="t")
    with pytest.raises(KafkaError) as refused:
        bench.group().check_delete()
    assert refused.value.code == ErrorCode.NON_EMPTY_GROUP
    bench.heartbeat("a", -1)
    group = bench.group()
    group.check_delete()
    for record in group.tombstones():
        bench.shard.replay(record, 0, None)
    assert "g" not in bench.shard.table.by_id


def test_how_a_group_is_listed_and_which_offsets_it_keeps() -> None:
    bench = ConsumerBench({"t": 1})
    bench.join("a")
    group = bench.group()
    listed = group.listed()
    assert (listed.group_type, listed.protocol_type, listed.group_state) == ("consumer", "consumer", "Stable")
    assert group.offsets_expire_from_ms("t", 5) is None
    assert group.offsets_expire_from_ms("u", 5) == 5
    group.check_offset_delete()


def test_changing_a_copy_leaves_the_group_unchanged() -> None:
    bench = _moved()
    group = bench.group()
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
