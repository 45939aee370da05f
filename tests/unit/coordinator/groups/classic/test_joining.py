"""JoinGroup of classic groups: admission, member ids and protocols."""

import pytest
from tests.support.shards.classic_shard import ClassicBench

from ottla.coordinator.groups.settings import GroupSettings
from ottla.errors.codes import ErrorCode

SMALL = GroupSettings(group_max_size=2, group_initial_rebalance_delay_ms=0)


def test_a_new_member_has_to_join_again_with_its_id() -> None:
    bench = ClassicBench()
    first = bench.join(client_id="app")
    assert first.code == ErrorCode.MEMBER_ID_REQUIRED
    assert first.answer.member_id == "app-00000000-0000-0000-0000-000000000001"
    assert first.answer.protocol_name is None
    assert bench.group().state == "Empty"
    second = bench.join(first.answer.member_id)
    assert not second.is_answered
    bench.advance(3000)
    assert second.code == ErrorCode.NONE
    assert second.answer.generation_id == 1
    assert second.answer.leader == second.answer.member_id == first.answer.member_id
    assert second.answer.protocol_name == "range"
    assert second.answer.protocol_type == "consumer"
    assert [each.member_id for each in second.answer.members] == [first.answer.member_id]


def test_creating_a_group_writes_its_record() -> None:
    bench = ClassicBench()
    bench.join()
    (value,) = bench.values()
    assert (value.generation, value.protocol_type, value.protocol, value.leader, value.members) == (0, "", None, None, [])
    assert value.current_state_timestamp == bench.now.wall_ms
    assert bench.reloaded().group().state == "Empty"


def test_old_clients_join_without_the_id_handshake() -> None:
    bench = ClassicBench()
    asked = bench.join(version=3)
    bench.advance(3000)
    assert asked.code == ErrorCode.NONE
    assert asked.answer.generation_id == 1


def test_a_missing_protocol_is_the_empty_text_before_version_7() -> None:
    assert ClassicBench().join(version=6).answer.protocol_name == ""


def test_an_unused_pending_id_expires() -> None:
    bench = ClassicBench()
    member_id = bench.new_id(session_ms=7000)
    bench.advance(6999)
    assert member_id in bench.group().pending_joins
    bench.advance(1)
    assert bench.join(member_id).code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_waits_for_a_pending_id() -> None:
    bench = ClassicBench()
    (leader,) = bench.stable()
    late = bench.new_id()
    rejoined = bench.join(leader)
    assert not rejoined.is_answered
    joined = bench.join(late)
    assert rejoined.code == joined.code == ErrorCode.NONE
    assert rejoined.answer.generation_id == joined.answer.generation_id == 2


def test_a_rebalance_completes_when_a_pending_id_expires() -> None:
    bench = ClassicBench()
    (leader,) = bench.stable(session_ms=20_000)
    bench.new_id(session_ms=8000)
    rejoined = bench.join(leader)
    bench.advance(8000)
    assert rejoined.code == ErrorCode.NONE


@pytest.mark.parametrize("version", [3, 9])
def test_an_unknown_id_is_refused(version: int) -> None:
    bench = ClassicBench()
    assert bench.join("stranger", version=version).code == ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.table.by_id == {}
    bench.stable()
    assert bench.join("stranger", version=version).code == ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.group().state == "Stable"


@pytest.mark.parametrize(
    ("protocol_type", "protocols"),
    [("connect", [("range", b"")]), ("consumer", [("sticky", b"")]), ("consumer", []), ("", [("range", b"")])],
)
def test_members_need_a_protocol_in_common(protocol_type: str, protocols: list[tuple[str, bytes]]) -> None:
    bench = ClassicBench()
    (leader,) = bench.stable()
    refused = bench.join(protocol_type=protocol_type, protocols=protocols)
    assert refused.code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    again = bench.join(leader, protocol_type=protocol_type, protocols=protocols)
    assert again.code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert bench.group().state == "Stable"


@pytest.mark.parametrize(("protocol_type", "protocols"), [("", [("range", b"")]), ("consumer", [])])
def test_a_refused_member_creates_no_group(protocol_type: str, protocols: list[tuple[str, bytes]]) -> None:
    bench = ClassicBench()
    assert bench.join(protocol_type=protocol_type, protocols=protocols).code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert bench.table.by_id == {}
    assert bench.log == []


def test_an_empty_group_takes_any_protocol_type() -> None:
    bench = ClassicBench()
    bench.leave(*bench.stable())
    assert bench.group().state == "Empty"
    bench.stable(protocol_type="connect", protocols=[("sessioned", b"")])
    assert bench.group().protocol_type == "connect"


def test_the_preferred_protocol_among_those_all_support_is_chosen() -> None:
    bench = ClassicBench()
    wishes = [["sticky", "range", "x"], ["range", "sticky"], ["y", "range", "sticky"]]
    ids = [bench.new_id() for _ in wishes]
    asked = [bench.join(each, [(name, name.encode()) for name in wish]) for each, wish in zip(ids, wishes, strict=True)]
    bench.advance(6000)
    assert {each.answer.protocol_name for each in asked} == {"range"}
    assert [each.metadata for each in asked[0].answer.members] == [b"range"] * 3
    assert [len(each.answer.members) for each in asked] == [3, 0, 0]


def test_a_full_group_refuses_new_members() -> None:
    bench = ClassicBench(SMALL)
    ids = bench.stable(2)
    refused = bench.join()
    assert refused.code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert refused.answer.member_id == ""
    assert bench.join(ids[1]).code == ErrorCode.NONE


def test_the_last_to_rejoin_an_oversized_group_is_refused() -> None:
    bench = ClassicBench(GroupSettings(group_initial_rebalance_delay_ms=0))
    ids = bench.stable(3)
    bench = bench.reloaded(settings=SMALL)
    assert bench.group().state == "PreparingRebalance"
    rejoined = [bench.join(each) for each in ids]
    assert [each.code for each in rejoined] == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.GROUP_MAX_SIZE_REACHED]
    assert list(bench.group().members) == ids[:2]


def test_a_full_group_drops_pending_ids() -> None:
    bench = ClassicBench(SMALL)
    (leader,) = bench.stable()
    ids = [bench.new_id() for _ in range(2)]
    rejoined = [bench.join(each) for each in (leader, ids[0])]
    assert bench.join(ids[1]).code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert [each.code for each in rejoined] == [ErrorCode.NONE] * 2


def test_a_parked_member_that_joins_again_is_counted_once() -> None:
    bench = ClassicBench()
    ids = bench.stable(2)
    first, second = bench.join(ids[0]), bench.join(ids[0])
    assert first.code == ErrorCode.REBALANCE_IN_PROGRESS
    assert not second.is_answered
    bench.join(ids[1])
    assert second.code == ErrorCode.NONE


def test_an_unchanged_follower_gets_its_current_generation() -> None:
    bench = ClassicBench()
    leader, follower = bench.stable(2)
    asked = bench.join(follower)
    assert (asked.code, asked.answer.generation_id, asked.answer.members) == (ErrorCode.NONE, 1, [])
    assert asked.answer.leader == leader
    assert bench.group().state == "Stable"


def test_a_join_of_the_leader_or_with_changes_makes_all_rejoin() -> None:
    for number, protocols in [(0, (("range", b"r"),)), (1, (("range", b"other"),))]:
        bench = ClassicBench()
        ids = bench.stable(2)
        asked = bench.join(ids[number], protocols)
        assert not asked.is_answered
        assert bench.group().state == "PreparingRebalance"
        assert [bench.heartbeat(each, 1) for each in ids] == [ErrorCode.REBALANCE_IN_PROGRESS] * 2
        bench.join(ids[1 - number])
        assert asked.answer.generation_id == 2


def test_while_assigning_only_a_changed_member_restarts_the_rebalance() -> None:
    bench = ClassicBench()
    leader, follower = bench.stable(2)
    bench.join(leader)
    bench.join(follower)
    assert bench.group().state == "CompletingRebalance"
    parked = bench.sync(follower, 2)
    again = bench.join(leader)
    assert (again.code, again.answer.generation_id, len(again.answer.members)) == (ErrorCode.NONE, 2, 2)
    assert not parked.is_answered
    changed = bench.join(leader, [("range", b"other")])
    assert not changed.is_answered
    assert parked.code == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_pending_id_cannot_become_static() -> None:
    bench = ClassicBench()
    assert bench.join(bench.new_id(), instance_id="i").code == ErrorCode.UNKNOWN_SERVER_ERROR
