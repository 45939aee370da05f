"""Tests of `ottla.coordinator.groups.consumer.classic_members`, and of downgrades to a classic group."""

import pytest
from tests.support.shards.consumer_harness import told_by_records
from tests.support.shards.mixed_harness import MixedHarness, assignment, held_by, subscription
from tests.support.shards.shard_harness import Asked

from ottla.coordinator.contract import Caller
from ottla.coordinator.groups.settings import GroupSettings
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol


def _mixed(settings: GroupSettings | None = None) -> tuple[MixedHarness, str]:
    """A consumer group with the member "new" and a classic member, which share t."""
    harness = MixedHarness({"t": 2}, settings)
    harness.join("new")
    classic = harness.new_id()
    harness.classic_join(classic)
    harness.heartbeat("new", 2)
    harness.heartbeat("new", 2, {"t": [0]})
    generation = harness.classic_join(classic).answer.generation_id
    assert generation == 3
    assert harness.classic_sync(classic, 3).code == 0
    return harness, classic


def test_a_classic_member_joins_a_consumer_group() -> None:
    harness, classic = _mixed()
    assert harness.group().state == "Stable"
    assert held_by(harness.classic_sync(classic, 3).answer.assignment) == {"t": [1]}
    assert harness.classic_heartbeat(classic, 3) == 0
    assert told_by_records(harness.reloaded().shard) == told_by_records(harness.shard)


def test_a_classic_member_gets_its_id_first() -> None:
    harness = MixedHarness({"t": 2})
    harness.join("new")
    size = len(harness.log)
    asked = harness.classic_join()
    assert asked.code == ErrorCode.MEMBER_ID_REQUIRED
    assert len(harness.log) == size
    assert harness.classic_join(version=3).code == 0


def test_a_classic_member_waits_for_partitions_held_by_others() -> None:
    harness = MixedHarness({"t": 2})
    harness.join("new")
    classic = harness.new_id()
    answer = harness.classic_join(classic).answer
    assert answer.generation_id == 3
    assert held_by(harness.classic_sync(classic, 3).answer.assignment) == {}
    assert harness.classic_heartbeat(classic, 3) == 0, "what it waits for is not free yet"
    harness.heartbeat("new", 2)
    harness.heartbeat("new", 2, {"t": [0]})
    assert harness.classic_heartbeat(classic, 3) == ErrorCode.REBALANCE_IN_PROGRESS
    harness.classic_join(classic)
    assert held_by(harness.classic_sync(classic, 3).answer.assignment) == {"t": [1]}


def test_a_classic_member_without_a_common_protocol_is_refused() -> None:
    harness, _ = _mixed()
    assert harness.classic_join("x", protocols=["sticky"]).code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert harness.classic_join("x", protocol_type="connect").code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_stale_generations_and_consumer_members_are_refused() -> None:
    harness, classic = _mixed()
    assert harness.classic_heartbeat(classic, 2) == ErrorCode.ILLEGAL_GENERATION
    assert harness.classic_sync(classic, 2).code == ErrorCode.ILLEGAL_GENERATION
    assert harness.classic_heartbeat("new", 3) == ErrorCode.UNKNOWN_MEMBER_ID
    assert harness.classic_heartbeat("x", 3) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_sync_after_a_new_target_has_to_rejoin() -> None:
    harness, classic = _mixed()
    harness.set_topic("t", 4)
    harness.heartbeat("new", 3)
    assert harness.classic_sync(classic, 3).code == ErrorCode.REBALANCE_IN_PROGRESS
    harness.advance(9_000)
    harness.classic_heartbeat(classic, 3)
    assert harness.classic_join(classic, owned={"t": [1]}).answer.generation_id == 4


@pytest.mark.parametrize("silent_about", ["join", "sync"])
def test_a_classic_member_that_does_not_join_or_sync_in_time_is_removed(silent_about: str) -> None:
    harness, classic = _mixed()
    harness.set_topic("t", 4)
    harness.heartbeat("new", 3)
    generation = 3
    assert harness.classic_heartbeat(classic, 3) == ErrorCode.REBALANCE_IN_PROGRESS
    if silent_about == "sync":
        generation = harness.classic_join(classic, owned={"t": [1]}).answer.generation_id
    for _ in range(7):
        harness.advance(9000)
        harness.heartbeat("new", harness.group().members["new"].epoch)
        if classic in harness.group().members:
            harness.classic_heartbeat(classic, generation)
    assert classic not in harness.group().members


def test_a_classic_member_has_its_own_session_timeout() -> None:
    harness, classic = _mixed()
    harness.advance(9_999)
    assert harness.classic_heartbeat(classic, 3) == 0
    harness.advance(10_000)
    assert list(harness.group().members) == ["new"]


def test_a_classic_member_leaves() -> None:
    harness, classic = _mixed()
    assert harness.classic_leave("x") == ErrorCode.UNKNOWN_MEMBER_ID
    assert harness.classic_leave(classic) == 0
    assert list(harness.group().members) == ["new"]
    assert harness.given(harness.heartbeat("new", 3)) == {"t": [0, 1]}


@pytest.mark.parametrize("how", ["leaves", "is not heard of"])
def test_a_group_with_only_classic_members_left_is_downgraded(how: str) -> None:
    harness, classic = _mixed()
    if how == "leaves":
        assert harness.heartbeat("new", -1).code == 0
    else:
        for _ in range(5):
            harness.advance(9_000)
            if "new" in getattr(harness.shard.table.by_id["g"], "members", {}):
                harness.classic_heartbeat(classic, 3)
    group = harness.classic_group()
    assert group.state == "PreparingRebalance"
    assert group.generation == 3
    assert list(group.members) == [classic]
    again = harness.reloaded()
    assert again.shard.table.by_id["g"].state == "PreparingRebalance", "the record asks for a rebalance"
    assert harness.classic_heartbeat(classic, 3) == ErrorCode.REBALANCE_IN_PROGRESS
    answer = harness.classic_join(classic, owned={"t": [1]}).answer
    assert answer.generation_id == 4
    assert answer.leader == classic


@pytest.mark.parametrize("policy", ["disabled", "UPGRADE"])
def test_the_migration_policy_may_forbid_a_downgrade(policy: str) -> None:
    harness, _ = _mixed(GroupSettings(group_consumer_migration_policy=policy, group_consumer_assignment_interval_ms=0))
    harness.heartbeat("new", -1)
    assert harness.group().state == "Assigning"


def test_a_group_larger_than_group_max_size_is_not_downgraded() -> None:
    harness, _ = _mixed(GroupSettings(group_max_size=1, group_consumer_assignment_interval_ms=0))
    second = harness.new_id()
    harness.classic_join(second)
    harness.heartbeat("new", -1)
    assert harness.group().state == "Assigning"


def test_the_last_static_member_rejoining_as_classic_downgrades_the_group() -> None:
    harness = MixedHarness({"t": 2})
    harness.join("new", instance_id="i")
    answer = harness.classic_join(instance_id="i").answer
    assert answer.error_code == 0
    group = harness.classic_group()
    assert (group.state, list(group.static_ids), group.generation) == ("Stable", ["i"], answer.generation_id)
    synced = harness.classic_sync(answer.member_id, answer.generation_id, instance_id="i")
    assert held_by(synced.answer.assignment) == {"t": [0, 1]}
    assert harness.reloaded().classic_group().generation == group.generation


def test_rebalance_of_a_downgraded_group_goes_on_after_a_failover() -> None:
    """The record does not have the member that left: no session expires, and its partitions would be read by no one."""
    harness = MixedHarness({"t": 2})
    harness.join("new")
    classic = harness.new_id()
    generation = harness.classic_join(classic).answer.generation_id
    harness.heartbeat("new", -1)
    loaded = MixedHarness(harness.topics, harness.settings, harness.log)
    assert (loaded.classic_group().state, loaded.classic_group().generation) == ("PreparingRebalance", generation)
    assert loaded.classic_heartbeat(classic, generation) == ErrorCode.REBALANCE_IN_PROGRESS
    assert loaded.classic_join(classic).answer.generation_id == generation + 1
    loaded.classic_sync(classic, generation + 1, {classic: assignment({"t": [0, 1]})})
    again = MixedHarness(loaded.topics, loaded.settings, loaded.log)
    assert again.classic_group().state == "Stable"
    assert again.classic_heartbeat(classic, generation + 1) == 0


def test_a_downgrade_before_all_members_have_their_targets_rebalances() -> None:
    """Without a rebalance the waiting member never asks again, and the one that came back gets what another still holds."""
    harness = MixedHarness({"t": 4})
    waiting, holder = harness.stable_classic([{}, {"t": [0, 1, 2, 3]}])
    harness.join("new", instance_id="i")
    generation = harness.classic_join(waiting).answer.generation_id
    assert held_by(harness.classic_sync(waiting, generation).answer.assignment) == {}
    back = harness.classic_join(instance_id="i").answer
    assert (back.error_code, harness.classic_group().state) == (0, "PreparingRebalance")
    synced = harness.classic_sync(back.member_id, back.generation_id, instance_id="i")
    assert synced.code == ErrorCode.REBALANCE_IN_PROGRESS
    assert harness.classic_heartbeat(waiting, generation) == ErrorCode.REBALANCE_IN_PROGRESS
    held = {member_id: held_by(member.assignment) for member_id, member in harness.classic_group().members.items()}
    assert held == {waiting: {}, holder: {"t": [0, 1, 2, 3]}, back.member_id: {}}


def test_a_dynamic_member_rejoining_as_classic_does_not_downgrade() -> None:
    harness = MixedHarness()
    harness.join("m1")
    answer = harness.classic_join("m1").answer
    assert (answer.error_code, answer.generation_id) == (ErrorCode.NONE, 2)
    assert [member.is_classic for member in harness.group().members.values()] == [True]
    assert harness.classic_heartbeat("m1", 2) == ErrorCode.NONE
    assert harness.reloaded().group().members == harness.group().members


def test_a_downgrade_with_a_new_subscription_keeps_the_generation() -> None:
    """The others must rejoin, and until then they can commit what they have read."""
    harness = MixedHarness({"t": 2, "u": 2})
    harness.join("new", instance_id="i")
    classic = harness.new_id()
    generation = harness.classic_join(classic).answer.generation_id
    assert harness.classic_join(instance_id="i", topics=["t", "u"]).code == 0
    assert (harness.classic_group().state, harness.classic_group().generation) == ("PreparingRebalance", generation)
    assert harness.classic_heartbeat(classic, generation) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_static_member_may_change_its_protocol_among_others() -> None:
    harness = MixedHarness({"t": 2})
    harness.join("new", instance_id="i")
    harness.join("other")
    answer = harness.classic_join(instance_id="i").answer
    assert harness.group().members[answer.member_id].is_classic
    assert harness.heartbeat("new", 2, instance_id="i").code == ErrorCode.FENCED_INSTANCE_ID
    assert told_by_records(harness.reloaded().shard) == told_by_records(harness.shard)
    back = harness.join("again", instance_id="i")
    assert set(harness.group().members) == {"again", "other"}
    assert harness.group().classic_count == 0
    assert back.error_code == 0


def test_an_empty_consumer_group_becomes_a_classic_one() -> None:
    harness = MixedHarness({"t": 2})
    harness.join("new")
    harness.heartbeat("new", -1)
    (first,) = harness.stable_classic([{"t": [0, 1]}])
    assert list(harness.reloaded().classic_group().members) == [first]


def _join_with(harness: MixedHarness, member_id: str, *protocols: tuple[str, bytes]) -> Asked:
    request = JoinGroupRequest(
        group_id="g",
        member_id=member_id,
        protocol_type="consumer",
        session_timeout_ms=60_000,
        rebalance_timeout_ms=60_000,
        protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in protocols],
    )
    return harness.ask("join", lambda reply: harness.shard.join(request, Caller("c", "/h", 9), reply, harness.now))


def test_an_undecodable_subscription_is_refused() -> None:
    harness, _ = _mixed()
    assert _join_with(harness, "x", ("range", b"\x00")).code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_group_with_an_undecodable_subscription_is_downgraded() -> None:
    """Otherwise no member could be removed: every expiry would fail, and the shard would be loaded again in a loop."""
    harness = MixedHarness({"t": 2})
    harness.join("new")
    assert _join_with(harness, "x", ("range", subscription(["t"])), ("sticky", b"\x00")).code == 0
    assert _join_with(harness, "y", ("sticky", subscription(["t"]))).code == 0
    harness.advance(45_000)
    group = harness.classic_group()
    assert (list(group.members), group.protocol_name) == (["x", "y"], "sticky")
    assert group.subscribed is None, "the topics of x are unknown"
    assert list(harness.reloaded().classic_group().members) == ["x", "y"]
