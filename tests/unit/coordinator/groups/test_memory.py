"""The memory limit for members of all groups: beyond it no member may join or grow, and none is removed."""

from typing import Any

import pytest
from tests.support.shards.classic_shard import ClassicBench
from tests.support.shards.mixed_shard import MixedBench

from ottla.coordinator.contract import Instant
from ottla.coordinator.groups.memory import MEMBER_BYTES, RECOUNT_MS, MemberMemory
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode

LARGE = [("range", b"s" * 10_000)]
ROOM_BYTES = 4 * (MEMBER_BYTES + 1000)


def limit(bench: Any, room_bytes: int) -> None:
    """Set the limit to `room_bytes` above what members take now."""

    def count() -> int:
        return sum(group.members_bytes() for group in bench.shard.table.by_id.values())

    bench.shard.table.memory = MemberMemory(count() + room_bytes, count)


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
    bench = ClassicBench()
    (member_id,) = bench.stable()
    limit(bench, ROOM_BYTES)
    assert not bench.join(protocols=LARGE, version=3, group_id="large").is_answered, "it is parked until others join"
    refused = bench.join(protocols=LARGE, version=3, group_id="larger")
    assert refused.code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert "larger" not in bench.shard.table.by_id, "nothing has happened"
    assert bench.join(member_id).code == ErrorCode.NONE, "a member that does not grow may rejoin"
    assert bench.join(member_id, LARGE).code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    (hog,) = bench.group("large").members
    bench.leave(hog, group_id="large")
    bench.advance(RECOUNT_MS)
    assert not bench.join(protocols=LARGE, version=3, group_id="larger").is_answered


def test_pending_member_ids_count() -> None:
    bench = ClassicBench()
    limit(bench, ROOM_BYTES)
    codes = [bench.join(client_id="c" * 1000).code for _ in range(10)]
    assert codes[0] == ErrorCode.MEMBER_ID_REQUIRED
    assert codes[-1] == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert len(bench.group().pending_joins) == codes.count(ErrorCode.MEMBER_ID_REQUIRED)
    bench.advance(10_000)
    assert bench.join(client_id="c" * 1000).code == ErrorCode.MEMBER_ID_REQUIRED, "those were never used"


def test_an_assignment_is_refused_until_memory_is_free() -> None:
    bench = ClassicBench()
    leader, follower = bench.stable(2)
    bench.join(leader)
    bench.join(follower)
    limit(bench, 1000)
    waiting = bench.sync(follower, 2)
    assert bench.sync(leader, 2, {follower: b"a" * 5000}).code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert not waiting.is_answered
    assert bench.sync(leader, 2, {follower: b"a" * 50}).code == ErrorCode.NONE
    assert waiting.answer.assignment == b"a" * 50


def test_a_consumer_member_is_refused_until_memory_is_free() -> None:
    bench = MixedBench()
    bench.join("m1")
    limit(bench, ROOM_BYTES)
    names = [f"a topic that is not there {number}" for number in range(1000)]
    refused = bench.heartbeat("m2", 0, {}, rebalance_timeout_ms=1000, subscribed_topic_names=names)
    assert refused.code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert list(bench.group().members) == ["m1"]
    assert bench.heartbeat("m1", 2).code == ErrorCode.NONE
    assert bench.heartbeat("m1", 2, subscribed_topic_names=names).code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert bench.group().members["m1"].topics == ("t",)
    assert bench.join("m3").error_code == ErrorCode.NONE
    assert bench.classic_join("m4", names).code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert bench.classic_join("m4").code == ErrorCode.NONE
    assert list(bench.group().members) == ["m1", "m3", "m4"]
