"""The interface `Group` of a classic group: commits, deletion, expiry, listings."""

from struct import pack

import pytest
from tests.support.shards.classic_harness import ClassicHarness
from tests.support.shards.shard_harness import WALL_AHEAD_MS

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
    harness: ClassicHarness, member_id: str, generation: int, instance_id: str | None = None, is_transactional: bool = False
) -> int:
    try:
        harness.group().check_commit(member_id, instance_id, generation, 9, is_transactional, harness.now)
    except KafkaError as refused:
        return refused.code
    return ErrorCode.NONE


def test_a_new_group_is_empty_and_accepts_offsets() -> None:
    group = ClassicGroup("g")
    harness = ClassicHarness()
    group.check_commit("", None, -1, 9, False, harness.now)
    group.check_delete()
    group.check_offset_delete()
    group.check_fetch(None, -1)
    assert (group.state, group.protocol_type, group.type) == ("Empty", "", "classic")
    assert not group.is_subscribed_to("t")
    assert group.offsets_expire_from_ms("t", 77) == 77
    listed = group.listed()
    assert (listed.group_id, listed.protocol_type, listed.group_state, listed.group_type) == ("g", "", "Empty", "classic")
    with pytest.raises(KafkaError) as refused:
        group.check_commit("m", None, 1, 9, False, harness.now)
    assert refused.value.code == ErrorCode.UNKNOWN_MEMBER_ID


def test_only_members_of_the_generation_commit() -> None:
    harness = ClassicHarness(QUICK)
    (member_id,) = harness.stable()
    assert commit_code(harness, member_id, 1) == ErrorCode.NONE
    assert commit_code(harness, member_id, 0) == ErrorCode.ILLEGAL_GENERATION
    assert commit_code(harness, member_id, 2) == ErrorCode.ILLEGAL_GENERATION
    assert commit_code(harness, "other", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit_code(harness, member_id, 1, "unknown") == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit_code(harness, "", -1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_transaction_without_a_member_may_always_commit() -> None:
    harness = ClassicHarness(QUICK)
    (member_id,) = harness.stable()
    assert commit_code(harness, "", -1, is_transactional=True) == ErrorCode.NONE
    assert commit_code(harness, member_id, 0, is_transactional=True) == ErrorCode.ILLEGAL_GENERATION


def test_commits_are_allowed_while_joining_and_refused_while_assigning() -> None:
    harness = ClassicHarness(QUICK)
    leader, follower = harness.stable(2)
    harness.join(leader)
    assert commit_code(harness, follower, 1) == ErrorCode.NONE
    harness.join(follower)
    assert commit_code(harness, follower, 1) == ErrorCode.ILLEGAL_GENERATION
    assert commit_code(harness, follower, 2) == ErrorCode.REBALANCE_IN_PROGRESS
    assert commit_code(harness, follower, 2, is_transactional=True) == ErrorCode.NONE


def test_a_fenced_static_member_cannot_commit() -> None:
    harness = ClassicHarness(QUICK)
    asked = harness.join(instance_id="i")
    harness.advance(0)
    harness.settle()
    harness.join(instance_id="i")
    assert commit_code(harness, asked.answer.member_id, 1, "i") == ErrorCode.FENCED_INSTANCE_ID


def test_a_group_with_members_is_not_deleted() -> None:
    harness = ClassicHarness(QUICK)
    (leader,) = harness.stable()
    with pytest.raises(KafkaError, match="1 member "):
        harness.group().check_delete()
    harness.group().check_offset_delete()
    harness.leave(leader)
    harness.group().check_delete()


def test_offsets_of_a_non_consumer_group_with_members_are_not_deleted() -> None:
    harness = ClassicHarness(QUICK)
    harness.stable(protocol_type="connect")
    with pytest.raises(KafkaError) as refused:
        harness.group().check_offset_delete()
    assert refused.value.code == ErrorCode.NON_EMPTY_GROUP


@pytest.mark.parametrize("version", [0, 1, 2, 3, 17])
def test_subscriptions_of_any_version_are_understood(version: int) -> None:
    harness = ClassicHarness(QUICK)
    data = subscription("a", "b", version=min(version, 3))
    harness.stable(protocols=[("range", pack(">h", version) + data[2:])])
    group = harness.group()
    assert group.is_subscribed_to("a")
    assert group.is_subscribed_to("b")
    assert not group.is_subscribed_to("c")
    assert group.offsets_expire_from_ms("a", 77) is None
    assert group.offsets_expire_from_ms("c", 77) == 77
    harness.join(next(iter(group.members)))
    assert group.offsets_expire_from_ms("c", 77) is None  # in a rebalance its subscription may change


@pytest.mark.parametrize("metadata", [b"", b"\0", b"\xff\xff\0\0\0\0", b"\0\0\0\0\0\x05", b"nonsense"])
def test_an_undecodable_subscription_keeps_every_offset(metadata: bytes) -> None:
    harness = ClassicHarness(QUICK)
    harness.stable(protocols=[("range", metadata)])
    assert harness.group().is_subscribed_to("anything")
    assert harness.group().offsets_expire_from_ms("anything", 77) is None


def test_offsets_of_an_empty_group_expire_from_when_it_became_empty() -> None:
    harness = ClassicHarness(QUICK)
    ids = harness.stable(protocols=[("range", subscription("a"))])
    harness.advance(5000)
    harness.leave(*ids)
    for group in (harness.group(), harness.reloaded().group()):
        assert group.offsets_expire_from_ms("a", 77) == WALL_AHEAD_MS + 5000
        assert not group.is_subscribed_to("a")


def test_offsets_of_other_protocols_are_kept_while_there_are_members() -> None:
    harness = ClassicHarness(QUICK)
    harness.stable(protocol_type="connect", protocols=[("sessioned", subscription("a"))])
    assert harness.group().offsets_expire_from_ms("b", 77) is None
    assert not harness.group().is_subscribed_to("a")


def test_an_undecodable_subscription_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    harness = ClassicHarness(QUICK)
    (member_id,) = harness.stable(protocols=[("range", b"?")])
    for _ in range(3):
        harness.join(member_id, [("range", b"?")])
        harness.advance(0)
        harness.settle()
    assert harness.group().generation == 4
    assert caplog.text.count("cannot be read") == 1
