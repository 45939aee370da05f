"""Rebalances: sessions, the timeouts of joining and syncing, the delay of an initial rebalance."""

import logging

import pytest
from tests.support.shards.classic_harness import ClassicHarness
from tests.support.shards.shard_harness import Asked

from ottla.coordinator.contract import Caller
from ottla.coordinator.groups.classic.rebalance import NEW_MEMBER_JOIN_TIMEOUT_MS, PENDING_PATIENCE_MS
from ottla.coordinator.groups.settings import GroupSettings
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.sync_group import SyncGroupRequest


def test_a_silent_member_is_removed_and_the_others_rejoin(caplog: pytest.LogCaptureFixture) -> None:
    harness = ClassicHarness()
    leader, follower = harness.stable(2, session_ms=10_000)
    harness.advance(6000)
    assert harness.heartbeat(leader, 1) == ErrorCode.NONE
    harness.advance(3999)
    assert len(harness.group().members) == 2
    with caplog.at_level(logging.INFO, "ottla.coordinator"):
        harness.advance(1)
    assert list(harness.group().members) == [leader]
    assert f"member {follower} is removed" in caplog.text
    assert "session.timeout.ms" in caplog.text
    assert harness.heartbeat(leader, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    assert harness.heartbeat(follower, 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert harness.join(leader).answer.generation_id == 2


def test_a_commit_counts_as_a_heartbeat() -> None:
    harness = ClassicHarness()
    (member_id,) = harness.stable(session_ms=10_000)
    for _ in range(5):
        harness.advance(9000)
        harness.group().check_commit(member_id, None, 1, 8, False, harness.now)
    assert harness.group().state == "Stable"
    harness.advance(10_000)
    assert harness.group().state == "Empty"


def test_the_last_member_to_leave_writes_an_empty_generation() -> None:
    harness = ClassicHarness()
    harness.stable(session_ms=10_000)
    harness.advance(10_000)
    group, value = harness.group(), harness.values()[-1]
    assert (group.state, group.generation, group.protocol_type) == ("Empty", 2, "consumer")
    assert (value.generation, value.protocol_type, value.protocol, value.leader, value.members) == (
        2,
        "consumer",
        None,
        None,
        [],
    )
    assert value.current_state_timestamp == harness.now.wall_ms


def test_a_parked_member_does_not_expire() -> None:
    harness = ClassicHarness()
    leader, follower = harness.stable(2, session_ms=10_000, rebalance_ms=60_000)
    parked = harness.join(leader, session_ms=10_000)
    for _ in range(5):
        harness.advance(9000)
        harness.heartbeat(follower, 1)
    assert not parked.is_answered
    harness.join(follower, session_ms=10_000)
    assert parked.code == ErrorCode.NONE
    harness.advance(9999)
    assert len(harness.group().members) == 2
    harness.advance(1)
    assert harness.group().state == "Empty"


def test_a_member_that_does_not_rejoin_in_time_is_removed(caplog: pytest.LogCaptureFixture) -> None:
    harness = ClassicHarness()
    leader, follower = harness.stable(2, session_ms=10_000, rebalance_ms=20_000)
    parked = harness.join(follower, [("range", b"other")], rebalance_ms=20_000)
    with caplog.at_level(logging.INFO, "ottla.coordinator"):
        for _ in range(4):
            harness.heartbeat(leader, 1)
            harness.advance(5000)
    assert parked.answer.leader == follower
    assert f"member {leader} is removed" in caplog.text
    assert "max.poll.interval.ms" in caplog.text


def test_a_new_member_is_parked_for_five_minutes_at_most() -> None:
    harness = ClassicHarness()
    (leader,) = harness.stable(session_ms=10_000, rebalance_ms=NEW_MEMBER_JOIN_TIMEOUT_MS * 2)
    parked = harness.join(version=3)
    for _ in range(NEW_MEMBER_JOIN_TIMEOUT_MS // 5000):
        assert not parked.is_answered
        harness.advance(5000)
        harness.heartbeat(leader, 1)
    assert parked.code == ErrorCode.UNKNOWN_MEMBER_ID
    assert list(harness.group().members) == [leader]


def test_the_first_rebalance_waits_for_more_members() -> None:
    harness = ClassicHarness(GroupSettings(group_initial_rebalance_delay_ms=3000))
    first = harness.join(version=3, rebalance_ms=7000)
    harness.advance(2000)
    second = harness.join(version=3, rebalance_ms=7000)
    harness.advance(3000)
    third = harness.join(version=3, rebalance_ms=7000)
    harness.advance(1999)
    assert not first.is_answered
    harness.advance(1)  # 3000 + 3000 + what was left of 7000
    assert [each.code for each in (first, second, third)] == [ErrorCode.NONE] * 3
    assert harness.now_ms == 7000


def test_the_first_rebalance_ends_if_no_member_joined_during_its_delay() -> None:
    harness = ClassicHarness(GroupSettings(group_initial_rebalance_delay_ms=3000))
    first = harness.join(version=3)
    harness.advance(2999)
    assert not first.is_answered
    harness.advance(1)
    assert first.code == ErrorCode.NONE


def test_only_an_empty_group_has_an_initial_rebalance() -> None:
    harness = ClassicHarness()
    (leader,) = harness.stable()
    second = harness.join(version=3)
    harness.join(leader)
    assert second.code == ErrorCode.NONE


def test_a_group_is_empty_when_all_leave_its_first_rebalance() -> None:
    harness = ClassicHarness()
    asked = harness.join(version=3)
    harness.leave(*harness.group().members)
    assert asked.code == ErrorCode.UNKNOWN_MEMBER_ID
    harness.advance(3000)
    assert (harness.group().state, harness.group().generation) == ("Empty", 1)


def test_the_leaders_assignment_answers_all_parked_syncs() -> None:
    harness = ClassicHarness()
    ids = [harness.new_id() for _ in range(3)]
    for each in ids:
        harness.join(each)
    harness.advance(6000)
    early = harness.sync(ids[1], 1)
    assert not early.is_answered
    before = len(harness.log)
    leader = harness.sync(ids[0], 1, {ids[0]: b"0", ids[1]: b"1"})
    assert (leader.answer.assignment, early.answer.assignment) == (b"0", b"1")
    assert (leader.answer.protocol_type, leader.answer.protocol_name) == ("consumer", "range")
    late = harness.sync(ids[2], 1)
    assert (late.code, late.answer.assignment) == (ErrorCode.NONE, b"")
    assert len(harness.log) == before + 1
    value = harness.values()[-1]
    assert [each.assignment for each in value.members] == [b"0", b"1", b""]
    assert (value.generation, value.leader, value.protocol) == (1, ids[0], "range")


def test_sync_is_refused_to_unknown_members_and_stale_generations() -> None:
    harness = ClassicHarness()
    assert harness.sync("unknown", 1).code == ErrorCode.UNKNOWN_MEMBER_ID
    (member_id,) = harness.stable()
    assert harness.sync("unknown", 1).code == ErrorCode.UNKNOWN_MEMBER_ID
    assert harness.sync(member_id, 0).code == ErrorCode.ILLEGAL_GENERATION
    assert harness.sync(member_id, 2).code == ErrorCode.ILLEGAL_GENERATION
    assert harness.sync(member_id, 1, protocol=("connect", "range")).code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert harness.sync(member_id, 1, protocol=("consumer", "sticky")).code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert harness.sync(member_id, 1, protocol=("consumer", "range")).code == ErrorCode.NONE
    harness.join(harness.new_id())
    assert harness.sync(member_id, 1).code == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_member_that_does_not_sync_in_time_is_removed(caplog: pytest.LogCaptureFixture) -> None:
    harness = ClassicHarness()
    ids = [harness.new_id(rebalance_ms=20_000) for _ in range(3)]
    for each in ids:
        harness.join(each, rebalance_ms=20_000)
    harness.advance(6000)
    harness.sync(ids[0], 1, {each: each.encode() for each in ids})
    harness.sync(ids[1], 1)
    with caplog.at_level(logging.INFO, "ottla.coordinator"):
        for _ in range(4):
            for each in ids:
                harness.heartbeat(each, 1)
            harness.advance(5000)
    assert list(harness.group().members) == ids[:2]
    assert harness.group().state == "PreparingRebalance"
    assert f"{ids[2]} removed" in caplog.text


def test_a_group_waits_for_its_leader_after_a_refused_assignment() -> None:
    harness = ClassicHarness()
    leader, follower = harness.stable(2, rebalance_ms=20_000)
    harness.join(leader, rebalance_ms=20_000)
    harness.join(follower, rebalance_ms=20_000)
    harness.sync(follower, 2)
    request = SyncGroupRequest(group_id="g", member_id=leader, generation_id=2)
    # The host refuses its record, and fails both requests.
    harness.shard.sync(request, Caller("c", "/", 5), Asked("sync"), harness.now)
    assert harness.group().state == "CompletingRebalance"
    assert harness.waiting() == []
    parked = harness.sync(follower, 2)
    for _ in range(4):
        harness.heartbeat(leader, 2)
        harness.advance(5000)
    assert parked.code == ErrorCode.REBALANCE_IN_PROGRESS
    assert list(harness.group().members) == [follower]


def test_a_leader_that_never_assigns_is_removed_and_others_rejoin() -> None:
    harness = ClassicHarness()
    leader, follower = harness.stable(2, rebalance_ms=20_000)
    harness.join(leader, rebalance_ms=20_000)
    harness.join(follower, rebalance_ms=20_000)
    parked = harness.sync(follower, 2)
    for _ in range(4):
        harness.heartbeat(leader, 2)
        harness.advance(5000)
    assert parked.code == ErrorCode.REBALANCE_IN_PROGRESS
    assert list(harness.group().members) == [follower]
    assert harness.join(follower).answer.generation_id == 3


def test_session_restarts_when_a_parked_sync_is_sent_back_to_join() -> None:
    harness = ClassicHarness()
    leader, follower = harness.stable(2, session_ms=10_000, rebalance_ms=60_000)
    harness.join(leader, session_ms=10_000)
    harness.join(follower, session_ms=10_000)
    parked = harness.sync(follower, 2)
    harness.advance(9000)
    harness.heartbeat(leader, 2)
    harness.advance(9000)
    harness.leave(leader)
    assert parked.code == ErrorCode.REBALANCE_IN_PROGRESS
    harness.advance(9999)
    assert list(harness.group().members) == [follower]
    harness.advance(1)
    assert harness.group().state == "Empty"


def test_a_second_sync_replaces_the_first() -> None:
    harness = ClassicHarness()
    leader, follower = harness.stable(2)
    harness.join(leader)
    harness.join(follower)
    first, second = harness.sync(follower, 2), harness.sync(follower, 2)
    assert first.code == ErrorCode.REBALANCE_IN_PROGRESS
    harness.sync(leader, 2, {follower: b"x"})
    assert second.answer.assignment == b"x"


def test_heartbeats_of_unknown_members_and_generations_are_refused() -> None:
    harness = ClassicHarness()
    assert harness.heartbeat("unknown", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    (member_id,) = harness.stable()
    assert harness.heartbeat("unknown", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert harness.heartbeat(member_id, 2) == ErrorCode.ILLEGAL_GENERATION
    harness.join(member_id)
    assert harness.heartbeat(member_id, 2) == ErrorCode.NONE  # while it assigns


def test_when_a_member_leaves_the_others_rejoin() -> None:
    harness = ClassicHarness()
    leader, follower = harness.stable(2)
    left = harness.leave(leader, "unknown")
    assert [each.error_code for each in left.answer.members] == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert harness.group().state == "PreparingRebalance"
    rejoined = harness.join(follower)
    assert rejoined.answer.leader == follower


def test_leaving_an_unknown_group_is_refused() -> None:
    assert ClassicHarness().leave("unknown").code == ErrorCode.UNKNOWN_MEMBER_ID


def test_leaving_with_requests_parked_answers_them() -> None:
    harness = ClassicHarness()
    ids = harness.stable(3)
    join = harness.join(ids[0])
    harness.leave(ids[0])
    assert join.code == ErrorCode.UNKNOWN_MEMBER_ID
    for each in ids[1:]:
        harness.join(each)
    assert harness.group().state == "CompletingRebalance"
    sync = harness.sync(ids[2], 2)
    harness.leave(ids[2])
    assert sync.code == ErrorCode.UNKNOWN_MEMBER_ID


def test_leaving_with_a_pending_id_removes_it() -> None:
    harness = ClassicHarness()
    (leader,) = harness.stable()
    pending = harness.new_id()
    rejoined = harness.join(leader)
    assert not rejoined.is_answered
    assert harness.leave(pending).answer.members[0].error_code == ErrorCode.NONE
    assert rejoined.code == ErrorCode.NONE


def test_a_rebalance_completes_when_the_last_missing_member_leaves() -> None:
    harness = ClassicHarness()
    leader, follower = harness.stable(2)
    rejoined = harness.join(leader)
    harness.leave(follower)
    assert rejoined.code == ErrorCode.NONE


def test_members_that_start_together_make_one_generation_without_a_delay() -> None:
    harness = ClassicHarness(GroupSettings(group_initial_rebalance_delay_ms=0))
    first, second = harness.new_id(), harness.new_id()
    parked = harness.join(first)
    harness.advance(PENDING_PATIENCE_MS // 2)
    assert not parked.is_answered, "it waits until the other has joined with its id"
    harness.join(second)
    harness.advance(1)
    assert (parked.answer.generation_id, len(harness.group().members)) == (1, 2)


def test_an_unused_id_delays_the_first_generation_only_briefly() -> None:
    harness = ClassicHarness(GroupSettings(group_initial_rebalance_delay_ms=0))
    first = harness.new_id()
    harness.new_id()
    parked = harness.join(first)
    harness.advance(PENDING_PATIENCE_MS - 1)
    assert not parked.is_answered
    harness.advance(1)
    assert parked.answer.generation_id == 1
