"""Tests of `ottla.coordinator.groups.consumer.upgrading`: a classic group with members becomes a consumer group."""

import pytest
from tests.support.shards.consumer_shard import told_by_records
from tests.support.shards.mixed_shard import MixedBench, assignment, held_by

from ottla.coordinator.groups.settings import GroupSettings
from ottla.errors.codes import ErrorCode

JOIN = {"subscribed_topic_names": ["t"], "rebalance_timeout_ms": 60_000}


def test_classic_members_of_an_upgraded_group_revoke_step_by_step() -> None:
    bench = MixedBench({"t": 4})
    first, second = bench.stable_classic([{"t": [0, 1]}, {"t": [2, 3]}])
    joined = bench.join("new")
    assert (joined.member_epoch, bench.given(joined)) == (2, {})
    group = bench.group()
    assert group.state == "Reconciling"
    assert group.members[first].is_classic
    assert told_by_records(bench.reloaded().shard) == told_by_records(bench.shard)

    moved = [each for each in (first, second) if len(next(iter(group.target_of(each).values()))) == 1]
    loser = moved[0]
    codes = {each: bench.classic_heartbeat(each, 1) for each in (first, second)}
    assert set(codes.values()) == {ErrorCode.REBALANCE_IN_PROGRESS}
    for member_id, owned in ((first, [0, 1]), (second, [2, 3])):
        answer = bench.classic_join(member_id, owned={"t": owned}).answer
        assert (answer.member_id, answer.protocol_name, answer.leader, answer.members) == (member_id, "range", "", [])
        synced = bench.classic_sync(member_id, answer.generation_id)
        kept = held_by(synced.answer.assignment)["t"]
        assert set(kept) <= set(owned)
        if member_id == loser:
            assert answer.generation_id == 1
            assert bench.classic_heartbeat(member_id, 1) == ErrorCode.REBALANCE_IN_PROGRESS
            assert bench.given(bench.heartbeat("new", 2)) is None
            answer = bench.classic_join(member_id, owned={"t": kept}).answer
        assert answer.generation_id == 2
        assert bench.classic_sync(member_id, 2).code == 0
        assert bench.classic_heartbeat(member_id, 2) == 0
    assert sum(len(held) for held in (bench.given(bench.heartbeat("new", 2)) or {}).values()) == 1
    assert bench.group().state == "Stable"
    assert told_by_records(bench.reloaded().shard) == told_by_records(bench.shard)


def test_parked_members_of_an_upgraded_group_have_to_rejoin() -> None:
    bench = MixedBench({"t": 2})
    first = bench.new_id()
    parked = bench.classic_join(first)
    assert not parked.is_answered
    bench.join("new")
    assert parked.code == ErrorCode.REBALANCE_IN_PROGRESS
    bench.advance(9_999)
    assert set(bench.group().members) == {first, "new"}
    bench.heartbeat("new", bench.group().members["new"].epoch)
    bench.advance(1)
    assert set(bench.group().members) == {"new"}, "its session is the one it asked for"


def test_a_second_upgrade_gives_no_partition_two_holders() -> None:
    bench = MixedBench({"t": 4})
    first, second = bench.stable_classic([{"t": [0, 1]}, {"t": [2, 3]}])
    bench.join("new")
    late = bench.classic_join(bench.new_id()).answer.member_id
    target = bench.group().target_of(late)
    assert bench.group().members[late].held() == {} != target, "it waits for others to give something up"
    bench.heartbeat("new", -1)
    assert set(bench.classic_group().members) == {first, second, late}
    bench.join("again")
    held = {each: sorted(sum(bench.group().members[each].held().values(), ())) for each in (first, second, late)}
    assert held == {first: [0, 1], second: [2, 3], late: []}


def test_an_empty_classic_group_is_replaced() -> None:
    bench = MixedBench({"t": 2})
    (first,) = bench.stable_classic([{"t": [0, 1]}])
    bench.classic_leave(first)
    assert bench.classic_group().state == "Empty"
    assert bench.given(bench.join("new")) == {"t": [0, 1]}
    assert told_by_records(bench.reloaded().shard) == told_by_records(bench.shard)
    assert bench.shard.next_deadline_ms == bench.now_ms + 45_000, "no timer of the classic group is left"


def test_a_heartbeat_that_does_not_join_upgrades_nothing() -> None:
    bench = MixedBench({"t": 2})
    bench.stable_classic([{"t": [0, 1]}])
    assert bench.heartbeat("new", 1).code == ErrorCode.GROUP_ID_NOT_FOUND
    assert bench.heartbeat("new", -1).code == ErrorCode.GROUP_ID_NOT_FOUND
    assert bench.classic_group().state == "Stable"


@pytest.mark.parametrize("policy", ["disabled", "Downgrade"])
def test_the_migration_policy_may_forbid_an_upgrade(policy: str) -> None:
    bench = MixedBench({"t": 2}, GroupSettings(group_consumer_migration_policy=policy))
    bench.stable_classic([{"t": [0, 1]}])
    assert bench.heartbeat("new", 0, {}, **JOIN).code == ErrorCode.GROUP_ID_NOT_FOUND
    assert bench.classic_group().state == "Stable"


def test_a_group_that_is_too_large_is_not_upgraded() -> None:
    bench = MixedBench({"t": 2}, GroupSettings(group_consumer_max_size=1))
    bench.stable_classic([{"t": [0]}, {"t": [1]}])
    assert bench.heartbeat("new", 0, {}, **JOIN).code == ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize(
    "given",
    [
        pytest.param([assignment({"t": [0]}, b"mine"), assignment({"t": [1]})], id="an assignor with user data"),
        pytest.param([assignment({"t": [0]}), assignment({"t": [0]})], id="a partition assigned twice"),
        pytest.param([b"\x00\x03\xff", assignment({"t": [1]})], id="an assignment that cannot be read"),
    ],
)
def test_a_group_with_unusable_assignments_is_not_upgraded(given: list[bytes]) -> None:
    bench = MixedBench({"t": 2})
    ids = [bench.new_id() for _ in given]
    for member_id in ids:
        bench.classic_join(member_id)
    bench.advance(6000)
    for member_id in ids:
        bench.classic_sync(member_id, 1, dict(zip(ids, given, strict=True)))
    size = len(bench.log)
    assert bench.heartbeat("new", 0, {}, **JOIN).code == ErrorCode.GROUP_ID_NOT_FOUND
    assert bench.classic_group().state == "Stable"
    assert len(bench.log) == size


def test_groups_of_other_protocol_types_are_not_upgraded() -> None:
    bench = MixedBench({"t": 2})
    member_id = bench.classic_join(protocol_type="connect").answer.member_id
    bench.classic_join(member_id, protocol_type="connect")
    assert bench.heartbeat("new", 0, {}, **JOIN).code == ErrorCode.GROUP_ID_NOT_FOUND
