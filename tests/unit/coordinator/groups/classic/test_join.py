"""JoinGroup of classic groups: admission, member ids and protocols."""

import pytest
from tests.support.shards.classic_harness import ClassicHarness

from ottla.coordinator.groups.settings import GroupSettings
from ottla.errors.codes import ErrorCode

SMALL = GroupSettings(group_max_size=2, group_initial_rebalance_delay_ms=0)


def test_a_new_member_has_to_join_again_with_its_id() -> None:
    harness = ClassicHarness()
    first = harness.join(client_id="app")
    assert first.code == ErrorCode.MEMBER_ID_REQUIRED
    assert first.answer.member_id == "app-00000000-0000-0000-0000-000000000001"
    assert first.answer.protocol_name is None
    assert harness.group().state == "Empty"
    second = harness.join(first.answer.member_id)
    assert not second.is_answered
    harness.advance(3000)
    assert second.code == ErrorCode.NONE
    assert second.answer.generation_id == 1
    assert second.answer.leader == second.answer.member_id == first.answer.member_id
    assert second.answer.protocol_name == "range"
    assert second.answer.protocol_type == "consumer"
    assert [each.member_id for each in second.answer.members] == [first.answer.member_id]


def test_creating_a_group_writes_its_record() -> None:
    harness = ClassicHarness()
    harness.join()
    (value,) = harness.values()
    assert (value.generation, value.protocol_type, value.protocol, value.leader, value.members) == (0, "", None, None, [])
    assert value.current_state_timestamp == harness.now.wall_ms
    assert harness.reloaded().group().state == "Empty"


def test_old_clients_join_without_the_id_handshake() -> None:
    harness = ClassicHarness()
    asked = harness.join(version=3)
    harness.advance(3000)
    assert asked.code == ErrorCode.NONE
    assert asked.answer.generation_id == 1


def test_a_missing_protocol_is_the_empty_text_before_version_7() -> None:
    assert ClassicHarness().join(version=6).answer.protocol_name == ""


def test_an_unused_pending_id_expires() -> None:
    harness = ClassicHarness()
    member_id = harness.new_id(session_ms=7000)
    harness.advance(6999)
    assert member_id in harness.group().pending_joins
    harness.advance(1)
    assert harness.join(member_id).code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_waits_for_a_pending_id() -> None:
    harness = ClassicHarness()
    (leader,) = harness.stable()
    late = harness.new_id()
    rejoined = harness.join(leader)
    assert not rejoined.is_answered
    joined = harness.join(late)
    assert rejoined.code == joined.code == ErrorCode.NONE
    assert rejoined.answer.generation_id == joined.answer.generation_id == 2


def test_a_rebalance_completes_when_a_pending_id_expires() -> None:
    harness = ClassicHarness()
    (leader,) = harness.stable(session_ms=20_000)
    harness.new_id(session_ms=8000)
    rejoined = harness.join(leader)
    harness.advance(8000)
    assert rejoined.code == ErrorCode.NONE


@pytest.mark.parametrize("version", [3, 9])
def test_an_unknown_id_is_refused(version: int) -> None:
    harness = ClassicHarness()
    assert harness.join("stranger", version=version).code == ErrorCode.UNKNOWN_MEMBER_ID
    assert harness.table.by_id == {}
    harness.stable()
    assert harness.join("stranger", version=version).code == ErrorCode.UNKNOWN_MEMBER_ID
    assert harness.group().state == "Stable"


@pytest.mark.parametrize(
    ("protocol_type", "protocols"),
    [("connect", [("range", b"")]), ("consumer", [("sticky", b"")]), ("consumer", []), ("", [("range", b"")])],
)
def test_members_need_a_protocol_in_common(protocol_type: str, protocols: list[tuple[str, bytes]]) -> None:
    harness = ClassicHarness()
    (leader,) = harness.stable()
    refused = harness.join(protocol_type=protocol_type, protocols=protocols)
    assert refused.code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    again = harness.join(leader, protocol_type=protocol_type, protocols=protocols)
    assert again.code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert harness.group().state == "Stable"


@pytest.mark.parametrize(("protocol_type", "protocols"), [("", [("range", b"")]), ("consumer", [])])
def test_a_refused_member_creates_no_group(protocol_type: str, protocols: list[tuple[str, bytes]]) -> None:
    harness = ClassicHarness()
    assert harness.join(protocol_type=protocol_type, protocols=protocols).code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert harness.table.by_id == {}
    assert harness.log == []


def test_an_empty_group_takes_any_protocol_type() -> None:
    harness = ClassicHarness()
    harness.leave(*harness.stable())
    assert harness.group().state == "Empty"
    harness.stable(protocol_type="connect", protocols=[("sessioned", b"")])
    assert harness.group().protocol_type == "connect"


def test_the_preferred_protocol_among_those_all_support_is_chosen() -> None:
    harness = ClassicHarness()
    wishes = [["sticky", "range", "x"], ["range", "sticky"], ["y", "range", "sticky"]]
    ids = [harness.new_id() for _ in wishes]
    asked = [harness.join(each, [(name, name.encode()) for name in wish]) for each, wish in zip(ids, wishes, strict=True)]
    harness.advance(6000)
    assert {each.answer.protocol_name for each in asked} == {"range"}
    assert [each.metadata for each in asked[0].answer.members] == [b"range"] * 3
    assert [len(each.answer.members) for each in asked] == [3, 0, 0]


def test_a_full_group_refuses_new_members() -> None:
    harness = ClassicHarness(SMALL)
    ids = harness.stable(2)
    refused = harness.join()
    assert refused.code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert refused.answer.member_id == ""
    assert harness.join(ids[1]).code == ErrorCode.NONE


def test_the_last_to_rejoin_an_oversized_group_is_refused() -> None:
    harness = ClassicHarness(GroupSettings(group_initial_rebalance_delay_ms=0))
    ids = harness.stable(3)
    harness = harness.reloaded(settings=SMALL)
    assert harness.group().state == "PreparingRebalance"
    rejoined = [harness.join(each) for each in ids]
    assert [each.code for each in rejoined] == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.GROUP_MAX_SIZE_REACHED]
    assert list(harness.group().members) == ids[:2]


def test_a_full_group_drops_pending_ids() -> None:
    harness = ClassicHarness(SMALL)
    (leader,) = harness.stable()
    ids = [harness.new_id() for _ in range(2)]
    rejoined = [harness.join(each) for each in (leader, ids[0])]
    assert harness.join(ids[1]).code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert [each.code for each in rejoined] == [ErrorCode.NONE] * 2


def test_a_parked_member_that_joins_again_is_counted_once() -> None:
    harness = ClassicHarness()
    ids = harness.stable(2)
    first, second = harness.join(ids[0]), harness.join(ids[0])
    assert first.code == ErrorCode.REBALANCE_IN_PROGRESS
    assert not second.is_answered
    harness.join(ids[1])
    assert second.code == ErrorCode.NONE


def test_an_unchanged_follower_gets_its_current_generation() -> None:
    harness = ClassicHarness()
    leader, follower = harness.stable(2)
    asked = harness.join(follower)
    assert (asked.code, asked.answer.generation_id, asked.answer.members) == (ErrorCode.NONE, 1, [])
    assert asked.answer.leader == leader
    assert harness.group().state == "Stable"


def test_a_join_of_the_leader_or_with_changes_makes_all_rejoin() -> None:
    for number, protocols in [(0, (("range", b"r"),)), (1, (("range", b"other"),))]:
        harness = ClassicHarness()
        ids = harness.stable(2)
        asked = harness.join(ids[number], protocols)
        assert not asked.is_answered
        assert harness.group().state == "PreparingRebalance"
        assert [harness.heartbeat(each, 1) for each in ids] == [ErrorCode.REBALANCE_IN_PROGRESS] * 2
        harness.join(ids[1 - number])
        assert asked.answer.generation_id == 2


def test_while_assigning_only_a_changed_member_restarts_the_rebalance() -> None:
    harness = ClassicHarness()
    leader, follower = harness.stable(2)
    harness.join(leader)
    harness.join(follower)
    assert harness.group().state == "CompletingRebalance"
    parked = harness.sync(follower, 2)
    again = harness.join(leader)
    assert (again.code, again.answer.generation_id, len(again.answer.members)) == (ErrorCode.NONE, 2, 2)
    assert not parked.is_answered
    changed = harness.join(leader, [("range", b"other")])
    assert not changed.is_answered
    assert parked.code == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_pending_id_cannot_become_static() -> None:
    harness = ClassicHarness()
    assert harness.join(harness.new_id(), instance_id="i").code == ErrorCode.UNKNOWN_SERVER_ERROR
