"""The record of a classic group: its content, and the state of a live group that survives its replay."""

from tests.support.shards.classic_harness import ClassicHarness, decoded

from ottla.coordinator.contract import Effects, put
from ottla.coordinator.groups.classic.group import ClassicGroup, Protocol
from ottla.coordinator.groups.classic.records import VALUE_VERSION, record_of, take
from ottla.coordinator.groups.settings import GroupSettings
from ottla.wire.messages.classic_group_records import GroupMetadataKey, GroupMetadataValue, MemberMetadata

QUICK = GroupSettings(group_initial_rebalance_delay_ms=0)


def test_a_record_holds_all_durable_state_of_a_group() -> None:
    harness = ClassicHarness(QUICK)
    harness.stable(2, protocols=[("range", b"r"), ("sticky", b"s")], session_ms=7000, rebalance_ms=8000)
    again = harness.reloaded().group()
    live = harness.group()
    assert (again.state, again.generation, again.leader_id) == ("Stable", 1, live.leader_id)
    assert (again.protocol_type, again.protocol_name) == ("consumer", "range")
    for member in again.members.values():
        assert member.protocols == (Protocol("range", b"r"),)
        assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (7000, 8000)
        assert (member.client_id, member.client_host) == ("c", "/127.0.0.1")
        assert member.assignment == member.member_id.encode()


def test_a_live_member_keeps_the_protocols_that_were_not_chosen() -> None:
    harness = ClassicHarness(QUICK)
    harness.stable(protocols=[("range", b"r"), ("sticky", b"s")])
    (member,) = harness.group().members.values()
    assert [each.name for each in member.protocols] == ["range", "sticky"]


def test_version_3_is_written_and_every_version_is_read() -> None:
    harness = ClassicHarness(QUICK)
    harness.stable()
    assert {decoded(*each).value.version for each in harness.log} == {VALUE_VERSION}
    member = MemberMetadata(member_id="m", session_timeout=7000, subscription=b"s", assignment=b"a")
    value = GroupMetadataValue(protocol_type="consumer", generation=5, protocol="range", leader="m", members=[member])
    for version in range(5):
        other = ClassicHarness()
        other.submit(_written(value, version))
        group = other.reloaded().group()
        assert (group.generation, group.members["m"].session_timeout_ms) == (5, 7000)
        assert group.members["m"].rebalance_timeout_ms == 7000  # the record has none
        assert group.state_since_ms == -1


def _written(value: GroupMetadataValue, version: int) -> Effects:
    return Effects([put(GroupMetadataKey(group="g"), value, version)])


def test_a_later_record_replaces_an_earlier_one_completely() -> None:
    group = ClassicGroup("g")
    for generation, name, ids in [(1, "range", "ab"), (2, "sticky", "bc"), (3, "sticky", "")]:
        members = [MemberMetadata(member_id=each, group_instance_id=f"i-{each}", subscription=b"") for each in ids]
        take(
            group,
            GroupMetadataValue(
                protocol_type="connect",
                generation=generation,
                protocol=name if ids else None,
                leader=ids[:1] or None,
                members=members,
            ),
        )
        assert list(group.members) == list(ids)
        assert group.static_ids == {f"i-{each}": each for each in ids}
        assert (group.generation, group.leader_id) == (generation, ids[:1] or None)
        assert all(each.protocols == (Protocol(name, b""),) for each in group.members.values())
    assert group.state == "Empty"


def test_a_leader_that_is_no_member_is_replaced() -> None:
    group = ClassicGroup("g")
    take(
        group,
        GroupMetadataValue(protocol_type="x", protocol="p", leader="gone", members=[MemberMetadata(member_id="m")]),
    )
    assert group.leader_id == "m"


def test_a_group_that_prepares_a_rebalance_is_ahead_of_its_record() -> None:
    harness = ClassicHarness(QUICK)
    (leader,) = harness.stable()
    value = record_of(harness.group()).value
    assert value is not None
    harness.new_id()
    harness.join(leader)
    take(harness.group(), value.message)
    assert harness.group().state == "PreparingRebalance"
    assert harness.group().joined_count == 1
