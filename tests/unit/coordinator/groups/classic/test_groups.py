"""ClassicGroups: descriptions, loading, dropping a shard, upgrades and downgrades."""

from tests.support.shards.classic_shard import ClassicBench

from ottla.coordinator.contract import Effects
from ottla.coordinator.groups.classic.records import record_of
from ottla.coordinator.groups.settings import GroupSettings
from ottla.errors.codes import ErrorCode

QUICK = GroupSettings(group_initial_rebalance_delay_ms=0)


def test_a_stable_group_is_described_with_what_its_members_said() -> None:
    bench = ClassicBench(QUICK)
    ids = bench.stable(2)
    described = bench.classic.describe("g")
    assert (described.error_code, described.group_state) == (ErrorCode.NONE, "Stable")
    assert (described.protocol_type, described.protocol_data) == ("consumer", "range")
    assert [each.member_id for each in described.members] == ids
    assert [each.member_metadata for each in described.members] == [b"r", b"r"]
    assert [each.member_assignment for each in described.members] == [each.encode() for each in ids]
    assert {(each.client_id, each.client_host) for each in described.members} == {("c", "/127.0.0.1")}


def test_a_rebalancing_group_is_described_without_metadata() -> None:
    bench = ClassicBench(QUICK)
    ids = bench.stable(2)
    bench.join(ids[0])
    described = bench.classic.describe("g")
    assert (described.group_state, described.protocol_data) == ("PreparingRebalance", "")
    assert [each.member_metadata for each in described.members] == [b"", b""]


def test_an_unknown_group_is_described_as_dead() -> None:
    described = ClassicBench().classic.describe("g")
    assert (described.group_state, described.error_code) == ("Dead", ErrorCode.GROUP_ID_NOT_FOUND)


def test_a_tombstone_removes_the_group_and_its_timers() -> None:
    bench = ClassicBench(QUICK)
    bench.leave(*bench.stable())
    bench.new_id()
    bench.submit(Effects(bench.group().tombstones()))
    assert bench.table.by_id == {}
    assert bench.timers == []
    assert bench.reloaded().table.by_id == {}


def test_members_have_a_whole_session_after_a_load() -> None:
    bench = ClassicBench(QUICK)
    leader, _ = bench.stable(2, session_ms=10_000)
    bench.advance(9000)
    again = bench.reloaded()
    again.advance(9999)
    assert again.heartbeat(leader, 1) == ErrorCode.NONE
    again.advance(1)
    assert list(again.group().members) == [leader]


def test_refuse_waiting_lists_all_parked_requests() -> None:
    bench = ClassicBench(QUICK)
    leader, follower = bench.stable(2)
    joins = [bench.join(leader)]
    assert bench.waiting() == joins
    bench.join(follower)
    assert bench.waiting() == []
    syncs = [bench.sync(follower, 2)]
    assert bench.waiting() == syncs
    bench.sync(leader, 2)
    assert bench.waiting() == []


def test_an_upgraded_group_answers_its_parked_requests() -> None:
    bench = ClassicBench(QUICK)
    leader, _ = bench.stable(2)
    parked = bench.join(leader)
    bench.submit(bench.classic.hand_over(bench.group()))
    assert parked.code == ErrorCode.REBALANCE_IN_PROGRESS
    assert bench.timers == []


def test_a_downgraded_group_starts_sessions() -> None:
    source = ClassicBench(QUICK)
    leader, follower = source.stable(2, session_ms=10_000, protocols=[("range", b"r"), ("sticky", b"s")])
    bench = ClassicBench(QUICK)
    group = source.group()
    effects = Effects([record_of(group)])
    effects.add(bench.classic.take_over(group, bench.now))
    bench.submit(effects)
    assert bench.group() is group
    assert group.state == "Stable"
    assert len(group.members[leader].protocols) == 2
    bench.advance(9000)
    assert bench.heartbeat(leader, 1) == ErrorCode.NONE
    bench.advance(1000)
    assert list(group.members) == [leader]
    assert follower not in group.members


def test_a_downgraded_group_may_have_to_rejoin() -> None:
    source = ClassicBench(QUICK)
    leader, _ = source.stable(2)
    bench = ClassicBench(QUICK)
    group = source.group()
    effects = Effects([record_of(group)])
    effects.add(bench.classic.take_over(group, bench.now, "its last member of the new protocol left"))
    bench.submit(effects)
    assert group.state == "PreparingRebalance"
    assert bench.heartbeat(leader, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    assert bench.reloaded().group().state == "Stable"
