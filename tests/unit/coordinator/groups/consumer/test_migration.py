"""Tests of `ottla.coordinator.groups.consumer.migration`: a classic group with members becomes a consumer group."""

import pytest
from tests.support.shards.consumer_harness import told_by_records
from tests.support.shards.mixed_harness import MixedHarness, assignment, held_by

from ottla.coordinator.groups.settings import GroupSettings
from ottla.errors.codes import ErrorCode

JOIN = {"subscribed_topic_names": ["t"], "rebalance_timeout_ms": 60_000}


def test_classic_members_of_an_upgraded_group_revoke_step_by_step() -> None:
    harness = MixedHarness({"t": 4})
    first, second = harness.stable_classic([{"t": [0, 1]}, {"t": [2, 3]}])
    joined = harness.join("new")
    assert (joined.member_epoch, harness.given(joined)) == (2, {})
    group = harness.group()
    assert group.state == "Reconciling"
    assert group.members[first].is_classic
    assert told_by_records(harness.reloaded().shard) == told_by_records(harness.shard)

    moved = [each for each in (first, second) if len(next(iter(group.target_of(each).values()))) == 1]
    loser = moved[0]
    codes = {each: harness.classic_heartbeat(each, 1) for each in (first, second)}
    assert set(codes.values()) == {ErrorCode.REBALANCE_IN_PROGRESS}
    for member_id, owned in ((first, [0, 1]), (second, [2, 3])):
        answer = harness.classic_join(member_id, owned={"t": owned}).answer
        assert (answer.member_id, answer.protocol_name, answer.leader, answer.members) == (member_id, "range", "", [])
        synced = harness.classic_sync(member_id, answer.generation_id)
        kept = held_by(synced.answer.assignment)["t"]
        assert set(kept) <= set(owned)
        if member_id == loser:
            assert answer.generation_id == 1
            assert harness.classic_heartbeat(member_id, 1) == ErrorCode.REBALANCE_IN_PROGRESS
            assert harness.given(harness.heartbeat("new", 2)) is None
            answer = harness.classic_join(member_id, owned={"t": kept}).answer
        assert answer.generation_id == 2
        assert harness.classic_sync(member_id, 2).code == 0
        assert harness.classic_heartbeat(member_id, 2) == 0
    assert sum(len(held) for held in (harness.given(harness.heartbeat("new", 2)) or {}).values()) == 1
    assert harness.group().state == "Stable"
    assert told_by_records(harness.reloaded().shard) == told_by_records(harness.shard)


def test_parked_members_of_an_upgraded_group_have_to_rejoin() -> None:
    harness = MixedHarness({"t": 2})
    first = harness.new_id()
    parked = harness.classic_join(first)
    assert not parked.is_answered
    harness.join("new")
    assert parked.code == ErrorCode.REBALANCE_IN_PROGRESS
    harness.advance(9_999)
    assert set(harness.group().members) == {first, "new"}
    harness.heartbeat("new", harness.group().members["new"].epoch)
    harness.advance(1)
    assert set(harness.group().members) == {"new"}, "its session is the one it asked for"


def test_classic_group_goes_on_if_the_records_of_its_upgrade_are_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = MixedHarness({"t": 4})
    first, _ = harness.stable_classic([{"t": [0, 1]}, {"t": [2, 3]}])
    parked = harness.classic_join(first)
    with monkeypatch.context() as patched:
        patched.setattr(harness, "submit", harness.answer)  # nothing is written or replayed
        harness.join("new")
    assert parked.code == ErrorCode.REBALANCE_IN_PROGRESS
    assert harness.classic_group().state == "PreparingRebalance"
    again = harness.classic_join(first)
    harness.advance(10_000)
    assert list(harness.classic_group().members) == [first], "the other one has not been heard of"
    assert again.answer.generation_id == 2
    harness.advance(10_000)
    assert harness.classic_group().members == {}


def test_a_second_upgrade_gives_no_partition_two_holders() -> None:
    harness = MixedHarness({"t": 4})
    first, second = harness.stable_classic([{"t": [0, 1]}, {"t": [2, 3]}])
    harness.join("new")
    late = harness.classic_join(harness.new_id()).answer.member_id
    target = harness.group().target_of(late)
    assert harness.group().members[late].held() == {} != target, "it waits for others to give something up"
    harness.heartbeat("new", -1)
    assert set(harness.classic_group().members) == {first, second, late}
    harness.join("again")
    held = {each: sorted(sum(harness.group().members[each].held().values(), ())) for each in (first, second, late)}
    assert held == {first: [0, 1], second: [2, 3], late: []}


def test_what_a_cooperative_member_is_revoking_is_not_assigned_before_it_joins_again() -> None:
    harness = MixedHarness({"t": 3})
    first, second = harness.stable_classic([{"t": [0, 2]}, {"t": [1]}])
    harness.classic_join(first, owned={"t": [0, 2]})
    harness.classic_join(second, owned={"t": [1]})
    given = {first: assignment({"t": [0]}), second: assignment({"t": [1]})}
    assert held_by(harness.classic_sync(first, 2, given).answer.assignment) == {"t": [0]}
    joined = harness.join("new")
    assert harness.given(joined) == {}, "the first member may still hold partition 2"
    held = harness.group().members[first].held()
    assert [sorted(indexes) for indexes in held.values()] == [[0, 2]]
    assert told_by_records(harness.reloaded().shard) == told_by_records(harness.shard)
    assert harness.classic_heartbeat(first, 2) == ErrorCode.REBALANCE_IN_PROGRESS
    answer = harness.classic_join(first, owned={"t": [0]}).answer
    assert held_by(harness.classic_sync(first, answer.generation_id).answer.assignment) == {"t": [0]}
    assert harness.given(harness.heartbeat("new", joined.member_epoch)) == {"t": [2]}


def test_a_newer_report_of_an_owned_partition_counts() -> None:
    harness = MixedHarness({"t": 1})
    first, second = harness.stable_classic([{}, {}])
    for member_id, generation in ((first, 0), (second, 1)):
        harness.classic_join(member_id, owned={"t": [0]}, owned_generation=generation)
    harness.join("new")
    held = {each: harness.group().members[each].held() for each in (first, second)}
    assert held[first] == {}
    assert [*held[second].values()] == [(0,)]


def test_an_empty_classic_group_is_replaced() -> None:
    harness = MixedHarness({"t": 2})
    (first,) = harness.stable_classic([{"t": [0, 1]}])
    harness.classic_leave(first)
    assert harness.classic_group().state == "Empty"
    assert harness.given(harness.join("new")) == {"t": [0, 1]}
    assert told_by_records(harness.reloaded().shard) == told_by_records(harness.shard)
    assert harness.shard.next_deadline_ms == harness.now_ms + 45_000, "no timer of the classic group is left"


def test_a_heartbeat_that_does_not_join_upgrades_nothing() -> None:
    harness = MixedHarness({"t": 2})
    harness.stable_classic([{"t": [0, 1]}])
    assert harness.heartbeat("new", 1).code == ErrorCode.GROUP_ID_NOT_FOUND
    assert harness.heartbeat("new", -1).code == ErrorCode.GROUP_ID_NOT_FOUND
    assert harness.classic_group().state == "Stable"


@pytest.mark.parametrize("policy", ["disabled", "Downgrade"])
def test_the_migration_policy_may_forbid_an_upgrade(policy: str) -> None:
    harness = MixedHarness({"t": 2}, GroupSettings(group_consumer_migration_policy=policy))
    harness.stable_classic([{"t": [0, 1]}])
    assert harness.heartbeat("new", 0, {}, **JOIN).code == ErrorCode.GROUP_ID_NOT_FOUND
    assert harness.classic_group().state == "Stable"


def test_a_group_that_is_too_large_is_not_upgraded() -> None:
    harness = MixedHarness({"t": 2}, GroupSettings(group_consumer_max_size=1))
    harness.stable_classic([{"t": [0]}, {"t": [1]}])
    assert harness.heartbeat("new", 0, {}, **JOIN).code == ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize(
    "given",
    [
        pytest.param([assignment({"t": [0]}, b"mine"), assignment({"t": [1]})], id="an assignor with user data"),
        pytest.param([assignment({"t": [0]}), assignment({"t": [0]})], id="a partition assigned twice"),
        pytest.param([b"\x00\x03\xff", assignment({"t": [1]})], id="an assignment that cannot be read"),
    ],
)
def test_a_group_with_unusable_assignments_is_not_upgraded(given: list[bytes]) -> None:
    harness = MixedHarness({"t": 2})
    ids = [harness.new_id() for _ in given]
    for member_id in ids:
        harness.classic_join(member_id)
    harness.advance(6000)
    for member_id in ids:
        harness.classic_sync(member_id, 1, dict(zip(ids, given, strict=True)))
    size = len(harness.log)
    assert harness.heartbeat("new", 0, {}, **JOIN).code == ErrorCode.GROUP_ID_NOT_FOUND
    assert harness.classic_group().state == "Stable"
    assert len(harness.log) == size


def test_groups_of_other_protocol_types_are_not_upgraded() -> None:
    harness = MixedHarness({"t": 2})
    member_id = harness.classic_join(protocol_type="connect").answer.member_id
    harness.classic_join(member_id, protocol_type="connect")
    assert harness.heartbeat("new", 0, {}, **JOIN).code == ErrorCode.GROUP_ID_NOT_FOUND
