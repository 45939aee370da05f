"""The interface `Group` of a classic group: commits, deletion, expiry, listings."""

from struct import pack

import pytest
from tests.support.shards.classic_shard import WALL_AHEAD_MS, ClassicBench

from ottla.coordinator.groups.classic.group import ClassicGroup
from ottla.coordinator.groups.settings import GroupSettings
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.codec import encoder, join_parts
from ottla.wire.messages.consumer_protocol import ConsumerProtocolSubscription

QUICK = GroupSettings(group_initial_rebalance_delay_ms=0)


def subscription(*topics: str, version: int = 3) -> bytes:
    body = encoder(ConsumerProtocolSubscription, version)(ConsumerProtocolSubscription(topics=list(topics)))
    return pack(">h", version) + join_parts(body)


def commit_code(
    bench: ClassicBench, member_id: str, generation: int, instance_id: str | None = None, is_transactional: bool = False
) -> int:
    try:
        bench.group().check_commit(member_id, instance_id, generation, 9, is_transactional, bench.now)
    except KafkaError as refused:
        return refused.code
    return ErrorCode.NONE


def test_a_new_group_is_empty_and_accepts_offsets() -> None:
    group = ClassicGroup("g")
    bench = ClassicBench()
    group.check_commit("", None, -1, 9, False, bench.now)
    group.check_delete()
    group.check_offset_delete()
    group.check_fetch(None, -1)
    assert (group.state, group.protocol_type, group.type) == ("Empty", "", "classic")
    assert not group.is_subscribed_to("t")
    assert group.offsets_expire_from_ms("t", 77) == 77
    listed = group.listed()
    assert (listed.group_id, listed.protocol_type, listed.group_state, listed.group_type) == ("g", "", "Empty", "classic")
    with pytest.raises(KafkaError) as refused:
        group.check_commit("m", None, 1, 9, False, bench.now)
    assert refused.value.code == ErrorCode.UNKNOWN_MEMBER_ID


def test_only_members_of_the_generation_commit() -> None:
    bench = ClassicBench(QUICK)
    (member_id,) = bench.stable()
    assert commit_code(bench, member_id, 1) == ErrorCode.NONE
    assert commit_code(bench, member_id, 0) == ErrorCode.ILLEGAL_GENERATION
    assert commit_code(bench, member_id, 2) == ErrorCode.ILLEGAL_GENERATION
    assert commit_code(bench, "other", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit_code(bench, member_id, 1, "unknown") == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit_code(bench, "", -1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_transaction_without_a_member_may_always_commit() -> None:
    bench = ClassicBench(QUICK)
    (member_id,) = bench.stable()
    assert commit_code(bench, "", -1, is_transactional=True) == ErrorCode.NONE
    assert commit_code(bench, member_id, 0, is_transactional=True) == ErrorCode.ILLEGAL_GENERATION


def test_commits_are_allowed_while_joining_and_refused_while_assigning() -> None:
    bench = ClassicBench(QUICK)
    leader, follower = bench.stable(2)
    bench.join(leader)
    assert commit_code(bench, follower, 1) == ErrorCode.NONE
    bench.join(follower)
    assert commit_code(bench, follower, 1) == ErrorCode.ILLEGAL_GENERATION
    assert commit_code(bench, follower, 2) == ErrorCode.REBALANCE_IN_PROGRESS
    assert commit_code(bench, follower, 2, is_transactional=True) == ErrorCode.NONE


def test_a_fenced_static_member_cannot_commit() -> None:
    bench = ClassicBench(QUICK)
    asked = bench.join(instance_id="i")
    bench.advance(0)
    bench.settle()
    bench.join(instance_id="i")
    assert commit_code(bench, asked.answer.member_id, 1, "i") == ErrorCode.FENCED_INSTANCE_ID


def test_a_group_with_members_is_not_deleted() -> None:
    bench = ClassicBench(QUICK)
    (leader,) = bench.stable()
    with pytest.raises(KafkaError, match="1 member "):
        bench.group().check_delete()
    bench.group().check_offset_delete()
    bench.leave(leader)
    bench.group().check_delete()


def test_offsets_of_a_non_consumer_group_with_members_are_not_deleted() -> None:
    bench = ClassicBench(QUICK)
    bench.stable(protocol_type="connect")
    with pytest.raises(KafkaError) as refused:
        bench.group().check_offset_delete()
    assert refused.value.code == ErrorCode.NON_EMPTY_GROUP


@pytest.mark.parametrize("version", [0, 1, 2, 3, 17])
def test_subscriptions_of_any_version_are_understood(version: int) -> None:
    bench = ClassicBench(QUICK)
    data = subscription("a", "b", version=min(version, 3))
    bench.stable(protocols=[("range", pack(">h", version) + data[2:])])
    group = bench.group()
    assert group.is_subscribed_to("a")
    assert group.is_subscribed_to("b")
    assert not group.is_subscribed_to("c")
    assert group.offsets_expire_from_ms("a", 77) is None
    assert group.offsets_expire_from_ms("c", 77) == 77
    bench.join(next(iter(group.members)))
    assert group.offsets_expire_from_ms("c", 77) is None  # in a rebalance its subscription may change


@pytest.mark.parametrize("metadata", [b"", b"\0", b"\xff\xff\0\0\0\0", b"\0\0\0\0\0\x05", b"nonsense"])
def test_an_undecodable_subscription_keeps_every_offset(metadata: bytes) -> None:
    bench = ClassicBench(QUICK)
    bench.stable(protocols=[("range", metadata)])
    assert bench.group().is_subscribed_to("anything")
    assert bench.group().offsets_expire_from_ms("anything", 77) is None


def test_offsets_of_an_empty_group_expire_from_when_it_became_empty() -> None:
    bench = ClassicBench(QUICK)
    ids = bench.stable(protocols=[("range", subscription("a"))])
    bench.advance(5000)
    bench.leave(*ids)
    for group in (bench.group(), bench.reloaded().group()):
        assert group.offsets_expire_from_ms("a", 77) == WALL_AHEAD_MS + 5000
        assert not group.is_subscribed_to("a")


def test_offsets_of_other_protocols_are_kept_while_there_are_members() -> None:
    bench = ClassicBench(QUICK)
    bench.stable(protocol_type="connect", protocols=[("sessioned", subscription("a"))])
    assert bench.group().offsets_expire_from_ms("b", 77) is None
    assert not bench.group().is_subscribed_to("a")


def test_an_undecodable_subscription_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    bench = ClassicBench(QUICK)
    (member_id,) = bench.stable(protocols=[("range", b"?")])
    for _ in range(3):
        bench.join(member_id, [("range", b"?")])
        bench.advance(0)
        bench.settle()
    assert bench.group().generation == 4
    assert caplog.text.count("cannot be read") == 1
