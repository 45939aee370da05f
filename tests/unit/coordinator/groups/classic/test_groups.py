"""ClassicGroups: descriptions, loading, dropping a shard, upgrades and downgrades."""

import pytest
from tests.support.shards.classic_harness import ClassicHarness

from ottla.coordinator.contract import Effects
from ottla.coordinator.groups.classic.records import record_of
from ottla.coordinator.groups.settings import GroupSettings
from ottla.errors.codes import ErrorCode

QUICK = GroupSettings(group_initial_rebalance_delay_ms=0)


def test_a_stable_group_is_described_with_what_its_members_said() -> None:
    harness = ClassicHarness(QUICK)
    ids = harness.stable(2)
    described = harness.classic.describe("g")
    assert (described.error_code, described.group_state) == (ErrorCode.NONE, "Stable")
    assert (described.protocol_type, described.protocol_data) == ("consumer", "range")
    assert [each.member_id for each in described.members] == ids
    assert [each.member_metadata for each in described.members] == [b"r", b"r"]
    assert [each.member_assignment for each in described.members] == [each.encode() for each in ids]
    assert {(each.client_id, each.client_host) for each in described.members} == {("c", "/127.0.0.1")}


def test_a_rebalancing_group_is_described_without_metadata() -> None:
    harness = ClassicHarness(QUICK)
    ids = harness.stable(2)
    harness.join(ids[0])
    described = harness.classic.describe("g")
    assert (described.group_state, described.protocol_data) == ("PreparingRebalance", "")
    assert [each.member_metadata for each in described.members] == [b"", b""]


def test_an_unknown_group_is_described_as_dead() -> None:
    described = ClassicHarness().classic.describe("g")
    assert (described.group_state, described.error_code) == ("Dead", ErrorCode.GROUP_ID_NOT_FOUND)


def test_a_tombstone_removes_the_group_and_its_timers() -> None:
    harness = ClassicHarness(QUICK)
    harness.leave(*harness.stable())
    harness.new_id()
    harness.submit(Effects(harness.group().tombstones()))
    assert harness.table.by_id == {}
    assert harness.timers == []
    assert harness.reloaded().table.by_id == {}


def test_members_have_a_whole_session_after_a_load() -> None:
    harness = ClassicHarness(QUICK)
    leader, _ = harness.stable(2, session_ms=10_000)
    harness.advance(9000)
    again = harness.reloaded()
    again.advance(9999)
    assert again.heartbeat(leader, 1) == ErrorCode.NONE
    again.advance(1)
    assert list(again.group().members) == [leader]


def test_refuse_waiting_lists_all_parked_requests() -> None:
    harness = ClassicHarness(QUICK)
    leader, follower = harness.stable(2)
    joins = [harness.join(leader)]
    assert harness.waiting() == joins
    harness.join(follower)
    assert harness.waiting() == []
    syncs = [harness.sync(follower, 2)]
    assert harness.waiting() == syncs
    harness.sync(leader, 2)
    assert harness.waiting() == []


def test_session_expires_after_a_sync_with_a_too_large_assignment(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = ClassicHarness(QUICK)
    leader, follower = harness.stable(2, session_ms=10_000)
    harness.join(leader)
    harness.join(follower)
    parked = harness.sync(follower, 2)
    with monkeypatch.context() as patched:
        patched.setattr(harness, "submit", harness.answer)  # nothing is written or replayed
        harness.sync(leader, 2)
    assert parked.is_answered
    assert harness.waiting() == []
    harness.advance(6_000)
    assert harness.heartbeat(leader, 2) == ErrorCode.NONE
    harness.advance(4_000)
    assert list(harness.group().members) == [leader]
    assert harness.group().state == "PreparingRebalance"


def test_an_upgraded_group_answers_its_parked_requests() -> None:
    harness = ClassicHarness(QUICK)
    leader, _ = harness.stable(2)
    parked = harness.join(leader)
    effects = harness.classic.hand_over(harness.group(), harness.now)
    effects.records += harness.group().tombstones()
    harness.submit(effects)
    assert parked.code == ErrorCode.REBALANCE_IN_PROGRESS
    assert harness.timers == []


def test_a_downgraded_group_starts_sessions() -> None:
    source = ClassicHarness(QUICK)
    leader, follower = source.stable(2, session_ms=10_000, protocols=[("range", b"r"), ("sticky", b"s")])
    harness = ClassicHarness(QUICK)
    group = source.group()
    effects = Effects([record_of(group)])
    effects.add(harness.classic.take_over(group, harness.now))
    harness.submit(effects)
    assert harness.group() is group
    assert group.state == "Stable"
    assert len(group.members[leader].protocols) == 2
    harness.advance(9000)
    assert harness.heartbeat(leader, 1) == ErrorCode.NONE
    harness.advance(1000)
    assert list(group.members) == [leader]
    assert follower not in group.members


def test_a_downgraded_group_may_have_to_rejoin() -> None:
    source = ClassicHarness(QUICK)
    leader, _ = source.stable(2)
    harness = ClassicHarness(QUICK)
    group = source.group()
    effects = Effects([record_of(group)])
    effects.add(harness.classic.take_over(group, harness.now, "its last member of the new protocol left"))
    harness.submit(effects)
    assert group.state == "PreparingRebalance"
    assert harness.heartbeat(leader, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    assert harness.reloaded().group().state == "Stable"
