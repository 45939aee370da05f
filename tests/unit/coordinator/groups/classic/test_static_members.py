"""Static members of classic groups: a restart keeps the assignment, and fences the old member id."""

from typing import Any

from tests.support.shards.classic_harness import ClassicHarness
from tests.support.shards.shard_harness import Asked

from ottla.coordinator.groups.settings import GroupSettings
from ottla.errors.codes import ErrorCode

QUICK = GroupSettings(group_initial_rebalance_delay_ms=0)


def stable(harness: ClassicHarness, *instances: str, **join: Any) -> list[str]:
    """A stable group of static members, the leader first; their member ids."""
    asked = [harness.join(instance_id=each, **join) for each in instances]
    harness.advance(0)
    harness.settle()
    return [each.answer.member_id for each in asked]


def restart(harness: ClassicHarness, instance_id: str, **join: Any) -> Asked:
    return harness.join(instance_id=instance_id, **join)


def test_a_static_member_joins_at_once_with_an_id_from_its_instance_id() -> None:
    harness = ClassicHarness(QUICK)
    asked = harness.join(instance_id="rack-1")
    harness.advance(0)
    assert asked.code == ErrorCode.NONE
    assert asked.answer.member_id == "rack-1-00000000-0000-0000-0000-000000000001"
    assert asked.answer.members[0].group_instance_id == "rack-1"


def test_a_restart_keeps_generation_and_assignment() -> None:
    harness = ClassicHarness(QUICK)
    leader, follower = stable(harness, "a", "b")
    asked = restart(harness, "b")
    assert (asked.code, asked.answer.generation_id, asked.answer.leader) == (ErrorCode.NONE, 1, leader)
    assert (asked.answer.skip_assignment, asked.answer.members) == (False, [])
    assert asked.answer.member_id not in (leader, follower)
    assert harness.group().state == "Stable"
    synced = harness.sync(asked.answer.member_id, 1, instance_id="b")
    assert synced.answer.assignment == follower.encode()
    assert harness.heartbeat(leader, 1, instance_id="a") == ErrorCode.NONE


def test_a_restarted_leader_gets_skip_assignment() -> None:
    harness = ClassicHarness(QUICK)
    leader, _ = stable(harness, "a", "b")
    asked = restart(harness, "a")
    assert asked.answer.leader == asked.answer.member_id != leader
    assert asked.answer.skip_assignment
    assert [each.group_instance_id for each in asked.answer.members] == ["a", "b"]


def test_a_restarted_leader_of_an_old_version_gets_another_leader_id() -> None:
    harness = ClassicHarness(QUICK)
    leader, _ = stable(harness, "a", "b")
    asked = restart(harness, "a", version=8)
    assert asked.answer.leader == leader != asked.answer.member_id
    assert not asked.answer.skip_assignment
    assert asked.answer.members == []


def test_the_old_id_is_fenced() -> None:
    harness = ClassicHarness(QUICK)
    _, old = stable(harness, "a", "b")
    new = restart(harness, "b").answer.member_id
    assert harness.heartbeat(old, 1, instance_id="b") == ErrorCode.FENCED_INSTANCE_ID
    assert harness.sync(old, 1, instance_id="b").code == ErrorCode.FENCED_INSTANCE_ID
    assert harness.join(old, instance_id="b").code == ErrorCode.FENCED_INSTANCE_ID
    assert harness.leave((old, "b")).answer.members[0].error_code == ErrorCode.FENCED_INSTANCE_ID
    assert harness.heartbeat(old, 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert harness.heartbeat(new, 1, instance_id="b") == ErrorCode.NONE
    assert harness.heartbeat(new, 1, instance_id="unknown") == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_restart_writes_the_new_member_id() -> None:
    harness = ClassicHarness(QUICK)
    leader, _ = stable(harness, "a", "b")
    before = len(harness.log)
    new = restart(harness, "b", session_ms=20_000).answer.member_id
    assert len(harness.log) == before + 1
    group = harness.reloaded().group()
    assert list(group.members) == [leader, new]
    assert group.static_ids == {"a": leader, "b": new}
    assert group.members[new].session_timeout_ms == 20_000
    assert group.generation == 1


def test_a_restart_that_changes_the_vote_makes_all_rejoin() -> None:
    harness = ClassicHarness(QUICK)
    both = [("range", b""), ("sticky", b"")]
    leader, _ = stable(harness, "a", "b", protocols=both)
    restarted = restart(harness, "b", protocols=[("sticky", b"")])
    assert not restarted.is_answered
    assert harness.group().state == "PreparingRebalance"
    rejoined = harness.join(leader, both, instance_id="a")
    assert rejoined.answer.protocol_name == restarted.answer.protocol_name == "sticky"
    assert rejoined.answer.generation_id == restarted.answer.generation_id == 2


def test_a_restart_with_a_changed_subscription_does_not_rebalance() -> None:
    harness = ClassicHarness(QUICK)
    stable(harness, "a", "b")
    asked = restart(harness, "b", protocols=[("range", b"other")])
    assert asked.code == ErrorCode.NONE
    assert harness.values()[-1].members[1].subscription == b"other"


def test_a_restart_while_others_join_fences_the_parked_join() -> None:
    harness = ClassicHarness(QUICK)
    leader, old = stable(harness, "a", "b")
    third = harness.join(instance_id="c")
    assert not third.is_answered
    parked = harness.join(old, instance_id="b")
    restarted = restart(harness, "b")
    assert parked.code == ErrorCode.FENCED_INSTANCE_ID
    harness.join(leader, instance_id="a")
    assert restarted.code == third.code == ErrorCode.NONE
    assert harness.heartbeat(restarted.answer.member_id, 2, instance_id="b") == ErrorCode.NONE


def test_a_restart_while_assigning_fences_the_parked_sync_and_rebalances() -> None:
    harness = ClassicHarness(QUICK)
    leader, old = stable(harness, "a", "b")
    harness.join(leader, instance_id="a")
    harness.join(old, instance_id="b")
    parked = harness.sync(old, 2, instance_id="b")
    restarted = restart(harness, "b")
    assert parked.code == ErrorCode.FENCED_INSTANCE_ID
    assert not restarted.is_answered
    assert harness.sync(leader, 2, {old: b"x"}, instance_id="a").code == ErrorCode.REBALANCE_IN_PROGRESS
    harness.join(leader, instance_id="a")
    assert restarted.answer.generation_id == 3


def test_a_static_member_that_does_not_rejoin_stays_until_it_expires() -> None:
    harness = ClassicHarness(QUICK)
    leader, old = stable(harness, "a", "b", session_ms=30_000, rebalance_ms=5000)
    rejoined = harness.join(leader, instance_id="a", rebalance_ms=5000, session_ms=30_000)
    harness.advance(5000)
    assert rejoined.code == ErrorCode.NONE
    assert list(harness.group().members) == [leader, old]


def test_a_group_waits_again_if_no_static_member_rejoins() -> None:
    harness = ClassicHarness(QUICK)
    ids = stable(harness, "a", "b", session_ms=60_000, rebalance_ms=5000)
    harness.leave(("", "b"))
    harness.advance(20_000)
    assert harness.group().state == "PreparingRebalance"
    assert list(harness.group().members) == ids[:1]
    assert harness.join(ids[0], instance_id="a").answer.generation_id == 2


def test_a_leader_that_does_not_rejoin_is_replaced_by_one_that_did() -> None:
    harness = ClassicHarness(QUICK)
    _, follower = stable(harness, "a", "b", session_ms=60_000, rebalance_ms=5000)
    joined = harness.join(instance_id="c", rebalance_ms=5000)
    rejoined = harness.join(follower, instance_id="b", rebalance_ms=5000)
    harness.advance(5000)
    assert rejoined.answer.leader == joined.answer.leader == follower
    assert len(rejoined.answer.members) == 3


def test_a_restart_does_not_extend_the_first_rebalance() -> None:
    harness = ClassicHarness(GroupSettings(group_initial_rebalance_delay_ms=0, group_max_size=2))
    stable(harness, "a", "b")
    assert restart(harness, "b").code == ErrorCode.NONE
    assert harness.join(instance_id="c").code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_static_members_are_removed_by_instance_id() -> None:
    harness = ClassicHarness(QUICK)
    leader, _ = stable(harness, "a", "b")
    asked = harness.leave(("", "b"), ("", "unknown"), ("", None))
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert [each.error_code for each in asked.answer.members] == [ErrorCode.NONE, unknown, unknown]
    assert [each.group_instance_id for each in asked.answer.members] == ["b", "unknown", None]
    assert list(harness.group().members) == [leader]
    assert harness.group().state == "PreparingRebalance"


def test_a_short_rebalance_timeout_does_not_busy_loop() -> None:
    harness = ClassicHarness(QUICK)
    leader, _ = stable(harness, "a", "b", rebalance_ms=1, session_ms=30_000)
    harness.leave((leader, "a"))
    turns = 0
    until_ms = harness.now_ms + 5_000
    while (deadline_ms := harness.shard.next_deadline_ms) is not None and deadline_ms <= until_ms:
        harness.now_ms = max(harness.now_ms, deadline_ms)
        harness.submit(harness.shard.expire(harness.now))
        turns += 1
        assert turns < 20, "the timer fires in a loop"
    assert [member.instance_id for member in harness.group().members.values()] == ["b"]
