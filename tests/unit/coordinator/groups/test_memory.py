"""The memory limit for members of all groups: beyond it no member may join or grow, and none is removed."""

from typing import Any

import pytest
from tests.support.shards.classic_harness import ClassicHarness
from tests.support.shards.mixed_harness import MixedHarness

from ottla.coordinator.contract import Instant
from ottla.coordinator.groups.memory import MEMBER_BYTES, RECOUNT_MS, MemberMemory
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode

LARGE = [("range", b"s" * 10_000)]
ROOM_BYTES = 4 * (MEMBER_BYTES + 1000)


def limit(harness: Any, room_bytes: int) -> None:
    """Set the limit to `room_bytes` above what members take now."""

    def count() -> int:
        return sum(group.members_bytes() for group in harness.shard.table.by_id.values())

    harness.shard.table.memory = MemberMemory(count() + room_bytes, count)


def test_members_are_recounted_at_the_limit_but_not_too_often() -> None:
    counts = iter([10, 90, 20])
    memory = MemberMemory(100, lambda: next(counts))
    memory.take(40, "g", Instant(0, 0))
    memory.take(40, "g", Instant(0, 1))  # 90 in use now
    with pytest.raises(KafkaError) as refused:
        memory.take(40, "g", Instant(0, 2))
    assert refused.value.code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert "queued.max.request.bytes" in str(refused.value)
    memory.take(5, "g", Instant(0, 3))
    memory.take(-5, "g", Instant(0, 4))
    with pytest.raises(KafkaError):
        memory.take(40, "g", Instant(0, RECOUNT_MS))
    with pytest.raises(KafkaError):
        memory.take(40, "g", Instant(0, 2 * RECOUNT_MS - 1))
    memory.take(40, "g", Instant(0, 2 * RECOUNT_MS))


def test_a_classic_member_is_refused_until_memory_is_free() -> None:
    harness = ClassicHarness()
    (member_id,) = harness.stable()
    limit(harness, ROOM_BYTES)
    assert not harness.join(protocols=LARGE, version=3, group_id="large").is_answered, "it is parked until others join"
    refused = harness.join(protocols=LARGE, version=3, group_id="larger")
    assert refused.code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert "larger" not in harness.shard.table.by_id, "nothing has happened"
    assert harness.join(member_id).code == ErrorCode.NONE, "a member that does not grow may rejoin"
    assert harness.join(member_id, LARGE).code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    (hog,) = harness.group("large").members
    harness.leave(hog, group_id="large")
    harness.advance(RECOUNT_MS)
    assert not harness.join(protocols=LARGE, version=3, group_id="larger").is_answered


def test_pending_member_ids_count() -> None:
    harness = ClassicHarness()
    limit(harness, ROOM_BYTES)
    codes = [harness.join(client_id="c" * 1000).code for _ in range(10)]
    assert codes[0] == ErrorCode.MEMBER_ID_REQUIRED
    assert codes[-1] == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert len(harness.group().pending_joins) == codes.count(ErrorCode.MEMBER_ID_REQUIRED)
    harness.advance(10_000)
    assert harness.join(client_id="c" * 1000).code == ErrorCode.MEMBER_ID_REQUIRED, "those were never used"


def test_an_assignment_is_refused_until_memory_is_free() -> None:
    harness = ClassicHarness()
    leader, follower = harness.stable(2)
    harness.join(leader)
    harness.join(follower)
    limit(harness, 1000)
    waiting = harness.sync(follower, 2)
    assert harness.sync(leader, 2, {follower: b"a" * 5000}).code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert not waiting.is_answered
    assert harness.sync(leader, 2, {follower: b"a" * 50}).code == ErrorCode.NONE
    assert waiting.answer.assignment == b"a" * 50


def test_a_consumer_member_is_refused_until_memory_is_free() -> None:
    harness = MixedHarness()
    harness.join("m1")
    limit(harness, ROOM_BYTES)
    names = [f"a topic that is not there {number}" for number in range(1000)]
    refused = harness.heartbeat("m2", 0, {}, rebalance_timeout_ms=1000, subscribed_topic_names=names)
    assert refused.code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert list(harness.group().members) == ["m1"]
    assert harness.heartbeat("m1", 2).code == ErrorCode.NONE
    assert harness.heartbeat("m1", 2, subscribed_topic_names=names).code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert harness.group().members["m1"].topics == ("t",)
    assert harness.join("m3").error_code == ErrorCode.NONE
    assert harness.classic_join("m4", names).code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert harness.classic_join("m4").code == ErrorCode.NONE
    assert list(harness.group().members) == ["m1", "m3", "m4"]
