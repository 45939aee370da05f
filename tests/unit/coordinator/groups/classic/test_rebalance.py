"""Rebalances: sessions, the timeouts of joining and syncing, the delay of an initial rebalance."""

import logging

import pytest
from tests.support.shards.classic_shard import Asked, ClassicBench

from ottla.coordinator.contract import Caller
from ottla.coordinator.groups.classic.rebalance import NEW_MEMBER_JOIN_TIMEOUT_MS, PENDING_PATIENCE_MS
from ottla.coordinator.groups.settings import GroupSettings
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.sync_group import SyncGroupRequest


def test_a_silent_member_is_removed_and_the_others_rejoin(caplog: pytest.LogCaptureFixture) -> None:
    bench = ClassicBench()
    leader, follower = bench.stable(2, session_ms=10_000)
    bench.advance(6000)
    assert bench.heartbeat(leader, 1) == ErrorCode.NONE
    bench.advance(3999)
    assert len(bench.group().members) == 2
    with caplog.at_level(logging.INFO, "ottla.coordinator"):
        bench.advance(1)
    assert list(bench.group().members) == [leader]
    assert f"member {follower} is removed" in caplog.text
    assert "session.timeout.ms" in caplog.text
    assert bench.heartbeat(leader, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    assert bench.heartbeat(follower, 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.join(leader).answer.generation_id == 2


def test_a_commit_counts_as_a_heartbeat() -> None:
    bench = ClassicBench()
    (member_id,) = bench.stable(session_ms=10_000)
    for _ in range(5):
        bench.advance(9000)
        bench.group().check_commit(member_id, None, 1, 8, False, bench.now)
    assert bench.group().state == "Stable"
    bench.advance(10_000)
    assert bench.group().state == "Empty"


def test_the_last_member_to_leave_writes_an_empty_generation() -> None:
    bench = ClassicBench()
    bench.stable(session_ms=10_000)
    bench.advance(10_000)
    group, value = bench.group(), bench.values()[-1]
    assert (group.state, group.generation, group.protocol_type) == ("Empty", 2, "consumer")
    assert (value.generation, value.protocol_type, value.protocol, value.leader, value.members) == (
        2,
        "consumer",
        None,
        None,
        [],
    )
    assert value.current_state_timestamp == bench.now.wall_ms


def test_a_parked_member_does_not_expire() -> None:
    bench = ClassicBench()
    leader, follower = bench.stable(2, session_ms=10_000, rebalance_ms=60_000)
    parked = bench.join(leader, session_ms=10_000)
    for _ in range(5):
        bench.advance(9000)
        bench.heartbeat(follower, 1)
    assert not parked.is_answered
    bench.join(follower, session_ms=10_000)
    assert parked.code == ErrorCode.NONE
    bench.advance(9999)
    assert len(bench.group().members) == 2
    bench.advance(1)
    assert bench.group().state == "Empty"


def test_a_member_that_does_not_rejoin_in_time_is_removed(caplog: pytest.LogCaptureFixture) -> None:
    bench = ClassicBench()
    leader, follower = bench.stable(2, session_ms=10_000, rebalance_ms=20_000)
    parked = bench.join(follower, [("range", b"other")], rebalance_ms=20_000)
    with caplog.at_level(logging.INFO, "ottla.coordinator"):
        for _ in range(4):
            bench.heartbeat(leader, 1)
            bench.advance(5000)
    assert parked.answer.leader == follower
    assert f"member {leader} is removed" in caplog.text
    assert "max.poll.interval.ms" in caplog.text


def test_a_new_member_is_parked_for_five_minutes_at_most() -> None:
    bench = ClassicBench()
    (leader,) = bench.stable(session_ms=10_000, rebalance_ms=NEW_MEMBER_JOIN_TIMEOUT_MS * 2)
    parked = bench.join(version=3)
    for _ in range(NEW_MEMBER_JOIN_TIMEOUT_MS // 5000):
        assert not parked.is_answered
        bench.advance(5000)
        bench.heartbeat(leader, 1)
    assert parked.code == ErrorCode.UNKNOWN_MEMBER_ID
    assert list(bench.group().members) == [leader]


def test_the_first_rebalance_waits_for_more_members() -> None:
    bench = ClassicBench(GroupSettings(group_initial_rebalance_delay_ms=3000))
    first = bench.join(version=3, rebalance_ms=7000)
    bench.advance(2000)
    second = bench.join(version=3, rebalance_ms=7000)
    bench.advance(3000)
    third = bench.join(version=3, rebalance_ms=7000)
    bench.advance(1999)
    assert not first.is_answered
    bench.advance(1)  # 3000 + 3000 + what was left of 7000
    assert [each.code for each in (first, second, third)] == [ErrorCode.NONE] * 3
    assert bench.now_ms == 7000


def test_the_first_rebalance_ends_if_no_member_joined_during_its_delay() -> None:
    bench = ClassicBench(GroupSettings(group_initial_rebalance_delay_ms=3000))
    first = bench.join(version=3)
    bench.advance(2999)
    assert not first.is_answered
    bench.advance(1)
    assert first.code == ErrorCode.NONE


def test_only_an_empty_group_has_an_initial_rebalance() -> None:
    bench = ClassicBench()
    (leader,) = bench.stable()
    second = bench.join(version=3)
    bench.join(leader)
    assert second.code == ErrorCode.NONE


def test_a_group_is_empty_when_all_leave_its_first_rebalance() -> None:
    bench = ClassicBench()
    asked = bench.join(version=3)
    bench.leave(*bench.group().members)
    assert asked.code == ErrorCode.UNKNOWN_MEMBER_ID
    bench.advance(3000)
    assert (bench.group().state, bench.group().generation) == ("Empty", 1)


def test_the_leaders_assignment_answers_all_parked_syncs() -> None:
    bench = ClassicBench()
    ids = [bench.new_id() for _ in range(3)]
    for each in ids:
        bench.join(each)
    bench.advance(6000)
    early = bench.sync(ids[1], 1)
    assert not early.is_answered
    before = len(bench.log)
    leader = bench.sync(ids[0], 1, {ids[0]: b"0", ids[1]: b"1"})
    assert (leader.answer.assignment, early.answer.assignment) == (b"0", b"1")
    assert (leader.answer.protocol_type, leader.answer.protocol_name) == ("consumer", "range")
    late = bench.sync(ids[2], 1)
    assert (late.code, late.answer.assignment) == (ErrorCode.NONE, b"")
    assert len(bench.log) == before + 1
    value = bench.values()[-1]
    assert [each.assignment for each in value.members] == [b"0", b"1", b""]
    assert (value.generation, value.leader, value.protocol) == (1, ids[0], "range")


def test_sync_is_refused_to_unknown_members_and_stale_generations() -> None:
    bench = ClassicBench()
    assert bench.sync("unknown", 1).code == ErrorCode.UNKNOWN_MEMBER_ID
    (member_id,) = bench.stable()
    assert bench.sync("unknown", 1).code == ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.sync(member_id, 0).code == ErrorCode.ILLEGAL_GENERATION
    assert bench.sync(member_id, 2).code == ErrorCode.ILLEGAL_GENERATION
    assert bench.sync(member_id, 1, protocol=("connect", "range")).code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert bench.sync(member_id, 1, protocol=("consumer", "sticky")).code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert bench.sync(member_id, 1, protocol=("consumer", "range")).code == ErrorCode.NONE
    bench.join(bench.new_id())
    assert bench.sync(member_id, 1).code == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_member_that_does_not_sync_in_time_is_removed(caplog: pytest.LogCaptureFixture) -> None:
    bench = ClassicBench()
    ids = [bench.new_id(rebalance_ms=20_000) for _ in range(3)]
    for each in ids:
        bench.join(each, rebalance_ms=20_000)
    bench.advance(6000)
    bench.sync(ids[0], 1, {each: each.encode() for each in ids})
    bench.sync(ids[1], 1)
    with caplog.at_level(logging.INFO, "ottla.coordinator"):
        for _ in range(4):
            for each in ids:
                bench.heartbeat(each, 1)
            bench.advance(5000)
    assert list(bench.group().members) == ids[:2]
    assert bench.group().state == "PreparingRebalance"
    assert f"{ids[2]} removed" in caplog.text


def test_a_group_waits_for_its_leader_after_a_refused_assignment() -> None:
    bench = ClassicBench()
    leader, follower = bench.stable(2, rebalance_ms=20_000)
    bench.join(leader, rebalance_ms=20_000)
    bench.join(follower, rebalance_ms=20_000)
    parked = bench.sync(follower, 2)
    request = SyncGroupRequest(group_id="g", member_id=leader, generation_id=2)
    bench.shard.sync(request, Caller("c", "/", 5), Asked("sync"), bench.now)  # the host refuses its record
    assert bench.group().state == "CompletingRebalance"
    assert bench.waiting() == [parked]
    for _ in range(4):
        bench.heartbeat(leader, 2)
        bench.advance(5000)
    assert parked.code == ErrorCode.REBALANCE_IN_PROGRESS
    assert list(bench.group().members) == [follower]


def test_a_leader_that_never_assigns_is_removed_and_others_rejoin() -> None:
    bench = ClassicBench()
    leader, follower = bench.stable(2, rebalance_ms=20_000)
    bench.join(leader, rebalance_ms=20_000)
    bench.join(follower, rebalance_ms=20_000)
    parked = bench.sync(follower, 2)
    for _ in range(4):
        bench.heartbeat(leader, 2)
        bench.advance(5000)
    assert parked.code == ErrorCode.REBALANCE_IN_PROGRESS
    assert list(bench.group().members) == [follower]
    assert bench.join(follower).answer.generation_id == 3


def test_session_restarts_when_a_parked_sync_is_sent_back_to_join() -> None:
    bench = ClassicBench()
    leader, follower = bench.stable(2, session_ms=10_000, rebalance_ms=60_000)
    bench.join(leader, session_ms=10_000)
    bench.join(follower, session_ms=10_000)
    parked = bench.sync(follower, 2)
    bench.advance(9000)
    bench.heartbeat(leader, 2)
    bench.advance(9000)
    bench.leave(leader)
    assert parked.code == ErrorCode.REBALANCE_IN_PROGRESS
    bench.advance(9999)
    assert list(bench.group().members) == [follower]
    bench.advance(1)
    assert bench.group().state == "Empty"


def test_a_second_sync_replaces_the_first() -> None:
    bench = ClassicBench()
    leader, follower = bench.stable(2)
    bench.join(leader)
    bench.join(follower)
    first, second = bench.sync(follower, 2), bench.sync(follower, 2)
    assert first.code == ErrorCode.REBALANCE_IN_PROGRESS
    bench.sync(leader, 2, {follower: b"x"})
    assert second.answer.assignment == b"x"


def test_heartbeats_of_unknown_members_and_generations_are_refused() -> None:
    bench = ClassicBench()
    assert bench.heartbeat("unknown", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    (member_id,) = bench.stable()
    assert bench.heartbeat("unknown", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.heartbeat(member_id, 2) == ErrorCode.ILLEGAL_GENERATION
    bench.join(member_id)
    assert bench.heartbeat(member_id, 2) == ErrorCode.NONE  # while it assigns


def test_when_a_member_leaves_the_others_rejoin() -> None:
    bench = ClassicBench()
    leader, follower = bench.stable(2)
    left = bench.leave(leader, "unknown")
    assert [each.error_code for each in left.answer.members] == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert bench.group().state == "PreparingRebalance"
    rejoined = bench.join(follower)
    assert rejoined.answer.leader == follower


def test_leaving_an_unknown_group_is_refused() -> None:
    assert ClassicBench().leave("unknown").code == ErrorCode.UNKNOWN_MEMBER_ID


def test_leaving_with_requests_parked_answers_them() -> None:
    bench = ClassicBench()
    ids = bench.stable(3)
    join = bench.join(ids[0])
    bench.leave(ids[0])
    assert join.code == ErrorCode.UNKNOWN_MEMBER_ID
    for each in ids[1:]:
        bench.join(each)
    assert bench.group().state == "CompletingRebalance"
    sync = bench.sync(ids[2], 2)
    bench.leave(ids[2])
    assert sync.code == ErrorCode.UNKNOWN_MEMBER_ID


def test_leaving_with_a_pending_id_removes_it() -> None:
    bench = ClassicBench()
    (leader,) = bench.stable()
    pending = bench.new_id()
    rejoined = bench.join(leader)
    assert not rejoined.is_answered
    assert bench.leave(pending).answer.members[0].error_code == ErrorCode.NONE
    assert rejoined.code == ErrorCode.NONE


def test_a_rebalance_completes_when_the_last_missing_member_leaves() -> None:
    bench = ClassicBench()
    leader, follower = bench.stable(2)
    rejoined = bench.join(leader)
    bench.leave(follower)
    assert rejoined.code == ErrorCode.NONE


def test_members_that_start_together_make_one_generation_without_a_delay() -> None:
    bench = ClassicBench(GroupSettings(group_initial_rebalance_delay_ms=0))
    first, second = bench.new_id(), bench.new_id()
    parked = bench.join(first)
    bench.advance(PENDING_PATIENCE_MS // 2)
    assert not parked.is_answered, "it waits until the other has joined with its id"
    bench.join(second)
    bench.advance(1)
    assert (parked.answer.generation_id, len(bench.group().members)) == (1, 2)


def test_an_unused_id_delays_the_first_generation_only_briefly() -> None:
    bench = ClassicBench(GroupSettings(group_initial_rebalance_delay_ms=0))
    first = bench.new_id()
    bench.new_id()
    parked = bench.join(first)
    bench.advance(PENDING_PATIENCE_MS - 1)
    assert not parked.is_answered
    bench.advance(1)
    assert parked.answer.generation_id == 1
