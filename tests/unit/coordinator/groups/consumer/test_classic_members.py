"""Tests of `ottla.coordinator.groups.consumer.classic_members`, and of downgrades to a classic group."""

import pytest
from tests.support.shards.classic_shard import Asked
from tests.support.shards.consumer_shard import told_by_records
from tests.support.shards.mixed_shard import MixedBench, held_by, subscription

from ottla.coordinator.contract import Caller
from ottla.coordinator.groups.settings import GroupSettings
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol


def _mixed(settings: GroupSettings | None = None) -> tuple[MixedBench, str]:
    """A consumer group with the member "new" and a classic member, which share t."""
    bench = MixedBench({"t": 2}, settings)
    bench.join("new")
    classic = bench.new_id()
    bench.classic_join(classic)
    bench.heartbeat("new", 2)
    bench.heartbeat("new", 2, {"t": [0]})
    generation = bench.classic_join(classic).answer.generation_id
    assert generation == 3
    assert bench.classic_sync(classic, 3).code == 0
    return bench, classic


def test_a_classic_member_joins_a_consumer_group() -> None:
    bench, classic = _mixed()
    assert bench.group().state == "Stable"
    assert held_by(bench.classic_sync(classic, 3).answer.assignment) == {"t": [1]}
    assert bench.classic_heartbeat(classic, 3) == 0
    assert told_by_records(bench.reloaded().shard) == told_by_records(bench.shard)


def test_a_classic_member_gets_its_id_first() -> None:
    bench = MixedBench({"t": 2})
    bench.join("new")
    size = len(bench.log)
    asked = bench.classic_join()
    assert asked.code == ErrorCode.MEMBER_ID_REQUIRED
    assert len(bench.log) == size
    assert bench.classic_join(version=3).code == 0


def test_a_classic_member_waits_for_partitions_held_by_others() -> None:
    bench = MixedBench({"t": 2})
    bench.join("new")
    classic = bench.new_id()
    answer = bench.classic_join(classic).answer
    assert answer.generation_id == 3
    assert held_by(bench.classic_sync(classic, 3).answer.assignment) == {}
    assert bench.classic_heartbeat(classic, 3) == 0, "what it waits for is not free yet"
    bench.heartbeat("new", 2)
    bench.heartbeat("new", 2, {"t": [0]})
    assert bench.classic_heartbeat(classic, 3) == ErrorCode.REBALANCE_IN_PROGRESS
    bench.classic_join(classic)
    assert held_by(bench.classic_sync(classic, 3).answer.assignment) == {"t": [1]}


def test_a_classic_member_without_a_common_protocol_is_refused() -> None:
    bench, _ = _mixed()
    assert bench.classic_join("x", protocols=["sticky"]).code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert bench.classic_join("x", protocol_type="connect").code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_stale_generations_and_consumer_members_are_refused() -> None:
    bench, classic = _mixed()
    assert bench.classic_heartbeat(classic, 2) == ErrorCode.ILLEGAL_GENERATION
    assert bench.classic_sync(classic, 2).code == ErrorCode.ILLEGAL_GENERATION
    assert bench.classic_heartbeat("new", 3) == ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.classic_heartbeat("x", 3) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_sync_after_a_new_target_has_to_rejoin() -> None:
    bench, classic = _mixed()
    bench.set_topic("t", 4)
    bench.heartbeat("new", 3)
    assert bench.classic_sync(classic, 3).code == ErrorCode.REBALANCE_IN_PROGRESS
    bench.advance(9_000)
    bench.classic_heartbeat(classic, 3)
    assert bench.classic_join(classic, owned={"t": [1]}).answer.generation_id == 4


@pytest.mark.parametrize("silent_about", ["join", "sync"])
def test_a_classic_member_that_does_not_join_or_sync_in_time_is_removed(silent_about: str) -> None:
    bench, classic = _mixed()
    bench.set_topic("t", 4)
    bench.heartbeat("new", 3)
    generation = 3
    assert bench.classic_heartbeat(classic, 3) == ErrorCode.REBALANCE_IN_PROGRESS
    if silent_about == "sync":
        generation = bench.classic_join(classic, owned={"t": [1]}).answer.generation_id
    for _ in range(7):
        bench.advance(9000)
        bench.heartbeat("new", bench.group().members["new"].epoch)
        if classic in bench.group().members:
            bench.classic_heartbeat(classic, generation)
    assert classic not in bench.group().members


def test_a_classic_member_has_its_own_session_timeout() -> None:
    bench, classic = _mixed()
    bench.advance(9_999)
    assert bench.classic_heartbeat(classic, 3) == 0
    bench.advance(10_000)
    assert list(bench.group().members) == ["new"]


def test_a_classic_member_leaves() -> None:
    bench, classic = _mixed()
    assert bench.classic_leave("x") == ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.classic_leave(classic) == 0
    assert list(bench.group().members) == ["new"]
    assert bench.given(bench.heartbeat("new", 3)) == {"t": [0, 1]}


@pytest.mark.parametrize("how", ["leaves", "is not heard of"])
def test_a_group_with_only_classic_members_left_is_downgraded(how: str) -> None:
    bench, classic = _mixed()
    if how == "leaves":
        assert bench.heartbeat("new", -1).code == 0
    else:
        for _ in range(5):
            bench.advance(9_000)
            if "new" in getattr(bench.shard.table.by_id["g"], "members", {}):
                bench.classic_heartbeat(classic, 3)
    group = bench.classic_group()
    assert group.state == "PreparingRebalance"
    assert group.generation == 3
    assert list(group.members) == [classic]
    again = bench.reloaded()
    assert again.shard.table.by_id["g"].state == "Stable", "a rebalance in progress is not recorded"
    assert bench.classic_heartbeat(classic, 3) == ErrorCode.REBALANCE_IN_PROGRESS
    answer = bench.classic_join(classic, owned={"t": [1]}).answer
    assert answer.generation_id == 4
    assert answer.leader == classic


@pytest.mark.parametrize("policy", ["disabled", "UPGRADE"])
def test_the_migration_policy_may_forbid_a_downgrade(policy: str) -> None:
    bench, _ = _mixed(GroupSettings(group_consumer_migration_policy=policy, group_consumer_assignment_interval_ms=0))
    bench.heartbeat("new", -1)
    assert bench.group().state == "Assigning"


def test_a_group_larger_than_group_max_size_is_not_downgraded() -> None:
    bench, _ = _mixed(GroupSettings(group_max_size=1, group_consumer_assignment_interval_ms=0))
    second = bench.new_id()
    bench.classic_join(second)
    bench.heartbeat("new", -1)
    assert bench.group().state == "Assigning"


def test_the_last_static_member_rejoining_as_classic_downgrades_the_group() -> None:
    bench = MixedBench({"t": 2})
    bench.join("new", instance_id="i")
    answer = bench.classic_join(instance_id="i").answer
    assert answer.error_code == 0
    group = bench.classic_group()
    assert (group.state, list(group.static_ids), group.generation) == ("Stable", ["i"], answer.generation_id)
    synced = bench.classic_sync(answer.member_id, answer.generation_id, instance_id="i")
    assert held_by(synced.answer.assignment) == {"t": [0, 1]}
    assert bench.reloaded().classic_group().generation == group.generation


def test_a_dynamic_member_rejoining_as_classic_does_not_downgrade() -> None:
    bench = MixedBench()
    bench.join("m1")
    answer = bench.classic_join("m1").answer
    assert (answer.error_code, answer.generation_id) == (ErrorCode.NONE, 2)
    assert [member.is_classic for member in bench.group().members.values()] == [True]
    assert bench.classic_heartbeat("m1", 2) == ErrorCode.NONE
    assert bench.reloaded().group().members == bench.group().members


def test_a_downgrade_with_a_new_subscription_keeps_the_generation() -> None:
    """The others must rejoin, and until then they can commit what they have read."""
    bench = MixedBench({"t": 2, "u": 2})
    bench.join("new", instance_id="i")
    classic = bench.new_id()
    generation = bench.classic_join(classic).answer.generation_id
    assert bench.classic_join(instance_id="i", topics=["t", "u"]).code == 0
    assert (bench.classic_group().state, bench.classic_group().generation) == ("PreparingRebalance", generation)
    assert bench.classic_heartbeat(classic, generation) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_static_member_may_change_its_protocol_among_others() -> None:
    bench = MixedBench({"t": 2})
    bench.join("new", instance_id="i")
    bench.join("other")
    answer = bench.classic_join(instance_id="i").answer
    assert bench.group().members[answer.member_id].is_classic
    assert bench.heartbeat("new", 2, instance_id="i").code == ErrorCode.FENCED_INSTANCE_ID
    assert told_by_records(bench.reloaded().shard) == told_by_records(bench.shard)
    back = bench.join("again", instance_id="i")
    assert set(bench.group().members) == {"again", "other"}
    assert bench.group().classic_count == 0
    assert back.error_code == 0


def test_an_empty_consumer_group_becomes_a_classic_one() -> None:
    bench = MixedBench({"t": 2})
    bench.join("new")
    bench.heartbeat("new", -1)
    (first,) = bench.stable_classic([{"t": [0, 1]}])
    assert list(bench.reloaded().classic_group().members) == [first]


def _join_with(bench: MixedBench, member_id: str, *protocols: tuple[str, bytes]) -> Asked:
    request = JoinGroupRequest(
        group_id="g",
        member_id=member_id,
        protocol_type="consumer",
        session_timeout_ms=60_000,
        rebalance_timeout_ms=60_000,
        protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in protocols],
    )
    return bench.ask("join", lambda reply: bench.shard.join(request, Caller("c", "/h", 9), reply, bench.now))


def test_an_undecodable_subscription_is_refused() -> None:
    bench, _ = _mixed()
    assert _join_with(bench, "x", ("range", b"\x00")).code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_group_with_an_undecodable_subscription_is_downgraded() -> None:
    """Otherwise no member could be removed: every expiry would fail, and the shard would be loaded again in a loop."""
    bench = MixedBench({"t": 2})
    bench.join("new")
    assert _join_with(bench, "x", ("range", subscription(["t"])), ("sticky", b"\x00")).code == 0
    assert _join_with(bench, "y", ("sticky", subscription(["t"]))).code == 0
    bench.advance(45_000)
    group = bench.classic_group()
    assert (list(group.members), group.protocol_name) == (["x", "y"], "sticky")
    assert group.subscribed is None, "the topics of x are unknown"
    assert list(bench.reloaded().classic_group().members) == ["x", "y"]
