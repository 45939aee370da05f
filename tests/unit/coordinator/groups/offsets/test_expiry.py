"""Expiry of offsets, and of groups without members and offsets."""

import logging

import pytest
from tests.support.shards.consumer_harness import ConsumerHarness
from tests.support.shards.offsets_harness import WALL_AHEAD_MS, OffsetsHarness

from ottla.coordinator.contract import Caller, Instant, Producer
from ottla.coordinator.groups.classic.group import STABLE, ClassicGroup
from ottla.coordinator.groups.offsets import expiry
from ottla.coordinator.groups.settings import GroupSettings
from ottla.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic

HOUR_MS = 3_600_000
SETTINGS = GroupSettings(offsets_retention_ms=10 * HOUR_MS, offsets_retention_check_interval_ms=HOUR_MS)
P = Producer(7, 0)


def test_offsets_expire_and_their_group_is_removed(caplog: pytest.LogCaptureFixture) -> None:
    harness = OffsetsHarness(SETTINGS)
    harness.commit({("t", 0): 1, ("t", 1): 1})
    harness.advance(5 * HOUR_MS)
    harness.commit({("t", 1): 2})
    harness.advance(4 * HOUR_MS)
    assert harness.fetch(None) == {("t", 0): 1, ("t", 1): 2}
    with caplog.at_level(logging.INFO, "ottla.coordinator"):
        harness.advance(HOUR_MS)
    assert harness.fetch(None) == {("t", 1): 2}
    assert "offsets.retention.minutes" in caplog.text
    assert "group g: 1 of its offsets have expired" in caplog.text
    harness.advance(5 * HOUR_MS)
    assert harness.fetch(None) == {}
    assert not harness.table.by_id
    written = len(harness.log)
    harness.advance(100 * HOUR_MS)
    assert len(harness.log) == written


def test_offsets_of_a_consumer_group_expire_after_its_last_member_left() -> None:
    settings = SETTINGS._replace(group_consumer_session_timeout_ms=100 * HOUR_MS)
    harness = ConsumerHarness({"t": 1}, settings)
    epoch = harness.join("m").member_epoch
    partitions = [OffsetCommitRequestPartition(partition_index=0, committed_offset=7)]
    topics = [OffsetCommitRequestTopic(name="t", partitions=partitions)]
    request = OffsetCommitRequest(group_id="g", member_id="m", generation_id_or_member_epoch=epoch, topics=topics)
    caller = Caller("c", "/", 9)
    harness.ask("commit", lambda reply: harness.shard.offsets.commit(request, caller, reply, harness.now))
    offsets = harness.shard.offsets.committed
    harness.advance(20 * HOUR_MS)
    harness.heartbeat("m", -1)
    harness.advance(9 * HOUR_MS)
    assert offsets.get(("g", "t", 0)) is not None
    harness.advance(HOUR_MS)
    assert offsets.get(("g", "t", 0)) is None
    assert harness.shard.table.by_id == harness.shard.table.emptied_ms == {}


def test_a_client_may_set_the_expiry() -> None:
    harness = OffsetsHarness(SETTINGS)
    harness.commit({("t", 0): 1}, version=4, retention_time_ms=2 * HOUR_MS)
    harness.commit({("t", 1): 1}, version=4, retention_time_ms=50 * HOUR_MS)
    harness.advance(2 * HOUR_MS)
    assert harness.fetch(None) == {("t", 1): 1}
    harness.advance(47 * HOUR_MS)
    assert harness.fetch(None) == {("t", 1): 1}
    harness.advance(HOUR_MS)
    assert harness.fetch(None) == {}


def test_offsets_of_subscribed_topics_do_not_expire() -> None:
    harness = OffsetsHarness(SETTINGS)
    harness.commit({("t", 0): 1, ("u", 0): 1})
    group = ClassicGroup("g")
    group.protocol_type = "consumer"
    group.subscribed = frozenset({"t"})
    group.move_to(STABLE, harness.now)
    harness.put_group(group)
    harness.advance(30 * HOUR_MS)
    assert harness.fetch(None) == {("t", 0): 1}
    # The retention of all offsets starts when the last member has left.
    group.subscribed = frozenset()
    group.move_to("Empty", harness.now)
    harness.advance(9 * HOUR_MS)
    assert harness.fetch(None) == {("t", 0): 1}
    harness.advance(HOUR_MS)
    assert harness.fetch(None) == {}
    assert not harness.table.by_id


def test_an_empty_group_without_offsets_is_removed_at_the_next_check() -> None:
    harness = OffsetsHarness(SETTINGS)
    group = ClassicGroup("g")
    group.protocol_type = "consumer"
    harness.put_group(group)
    stable = ClassicGroup("stable")
    stable.move_to(STABLE, Instant(WALL_AHEAD_MS, 0))
    harness.put_group(stable)
    harness.advance(HOUR_MS - 1)
    assert list(harness.table.by_id) == ["g", "stable"]
    harness.advance(1)
    assert list(harness.table.by_id) == ["stable"]


def test_offsets_of_an_open_transaction_do_not_expire() -> None:
    harness = OffsetsHarness(SETTINGS)
    harness.commit({("t", 0): 1, ("t", 1): 1})
    harness.commit_in_transaction(P, {("t", 0): 2, ("t", 2): 2})
    harness.advance(30 * HOUR_MS)
    assert harness.fetch(None) == {("t", 0): 1}
    assert "g" in harness.table.by_id
    harness.delete([("t", 0)])
    harness.commit_in_transaction(P, {("t", 0): 2})
    harness.advance(30 * HOUR_MS)
    assert "g" in harness.table.by_id, "a group without offsets may get some from a transaction"
    harness.end(P, False)
    harness.advance(HOUR_MS)
    assert not harness.table.by_id


def test_a_round_is_split_into_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiry, "GROUPS_PER_TURN", 3)
    harness = OffsetsHarness(SETTINGS)
    for number in range(8):
        harness.commit({("t", 0): 1}, group_id=f"g{number}")
    harness.advance(10 * HOUR_MS - 1)
    harness.now_ms += 1
    left = []
    while (action := harness.table.timers.pop_due(harness.now)) is not None:
        harness.submit(action(harness.now))
        left.append(len(harness.table.by_id))
    assert left == [5, 2, 0]
    assert harness.table.timers.next_deadline_ms == harness.now_ms + HOUR_MS
