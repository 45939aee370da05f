"""Expiry of offsets, and of groups without members and offsets."""

import logging

import pytest
from tests.support.shards.offsets_shard import WALL_AHEAD_MS, OffsetsBench

from ottla.coordinator.contract import Instant, Producer
from ottla.coordinator.groups.classic.group import STABLE, ClassicGroup
from ottla.coordinator.groups.offsets import expiry
from ottla.coordinator.groups.settings import GroupSettings

HOUR_MS = 3_600_000
SETTINGS = GroupSettings(offsets_retention_ms=10 * HOUR_MS, offsets_retention_check_interval_ms=HOUR_MS)
P = Producer(7, 0)


def test_offsets_expire_and_their_group_is_removed(caplog: pytest.LogCaptureFixture) -> None:
    bench = OffsetsBench(SETTINGS)
    bench.commit({("t", 0): 1, ("t", 1): 1})
    bench.advance(5 * HOUR_MS)
    bench.commit({("t", 1): 2})
    bench.advance(4 * HOUR_MS)
    assert bench.fetch(None) == {("t", 0): 1, ("t", 1): 2}
    with caplog.at_level(logging.INFO, "ottla.coordinator"):
        bench.advance(HOUR_MS)
    assert bench.fetch(None) == {("t", 1): 2}
    assert "offsets.retention.minutes" in caplog.text
    assert "group g: 1 of its offsets have expired" in caplog.text
    bench.advance(5 * HOUR_MS)
    assert bench.fetch(None) == {}
    assert not bench.table.by_id
    written = len(bench.log)
    bench.advance(100 * HOUR_MS)
    assert len(bench.log) == written


def test_a_client_may_set_the_expiry() -> None:
    bench = OffsetsBench(SETTINGS)
    bench.commit({("t", 0): 1}, version=4, retention_time_ms=2 * HOUR_MS)
    bench.commit({("t", 1): 1}, version=4, retention_time_ms=50 * HOUR_MS)
    bench.advance(2 * HOUR_MS)
    assert bench.fetch(None) == {("t", 1): 1}
    bench.advance(47 * HOUR_MS)
    assert bench.fetch(None) == {("t", 1): 1}
    bench.advance(HOUR_MS)
    assert bench.fetch(None) == {}


def test_offsets_of_subscribed_topics_do_not_expire() -> None:
    bench = OffsetsBench(SETTINGS)
    bench.commit({("t", 0): 1, ("u", 0): 1})
    group = ClassicGroup("g")
    group.protocol_type = "consumer"
    group.subscribed = frozenset({"t"})
    group.move_to(STABLE, bench.now)
    bench.put_group(group)
    bench.advance(30 * HOUR_MS)
    assert bench.fetch(None) == {("t", 0): 1}
    # The retention of all offsets starts when the last member has left.
    group.subscribed = frozenset()
    group.move_to("Empty", bench.now)
    bench.advance(9 * HOUR_MS)
    assert bench.fetch(None) == {("t", 0): 1}
    bench.advance(HOUR_MS)
    assert bench.fetch(None) == {}
    assert not bench.table.by_id


def test_an_empty_group_without_offsets_is_removed_at_the_next_check() -> None:
    bench = OffsetsBench(SETTINGS)
    group = ClassicGroup("g")
    group.protocol_type = "consumer"
    bench.put_group(group)
    stable = ClassicGroup("stable")
    stable.move_to(STABLE, Instant(WALL_AHEAD_MS, 0))
    bench.put_group(stable)
    bench.advance(HOUR_MS - 1)
    assert list(bench.table.by_id) == ["g", "stable"]
    bench.advance(1)
    assert list(bench.table.by_id) == ["stable"]


def test_offsets_of_an_open_transaction_do_not_expire() -> None:
    bench = OffsetsBench(SETTINGS)
    bench.commit({("t", 0): 1, ("t", 1): 1})
    bench.commit_in_transaction(P, {("t", 0): 2, ("t", 2): 2})
    bench.advance(30 * HOUR_MS)
    assert bench.fetch(None) == {("t", 0): 1}
    assert "g" in bench.table.by_id
    bench.delete([("t", 0)])
    bench.commit_in_transaction(P, {("t", 0): 2})
    bench.advance(30 * HOUR_MS)
    assert "g" in bench.table.by_id, "a group without offsets may get some from a transaction"
    bench.end(P, False)
    bench.advance(HOUR_MS)
    assert not bench.table.by_id


def test_a_round_is_split_into_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiry, "GROUPS_PER_TURN", 3)
    bench = OffsetsBench(SETTINGS)
    for number in range(8):
        bench.commit({("t", 0): 1}, group_id=f"g{number}")
    bench.advance(10 * HOUR_MS - 1)
    bench.now_ms += 1
    left = []
    while (action := bench.table.timers.pop_due(bench.now)) is not None:
        bench.submit(action(bench.now))
        left.append(len(bench.table.by_id))
    assert left == [5, 2, 0]
    assert bench.table.timers.next_deadline_ms == bench.now_ms + HOUR_MS
