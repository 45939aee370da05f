"""Tests of `ottla.coordinator.groups.consumer.heartbeats`: joining, sessions, and the assignments that members get."""

from typing import Any

import pytest
from tests.support.shards.consumer_shard import ConsumerBench, told_by_records

from ottla.coordinator.groups.settings import GroupSettings
from ottla.errors.codes import ErrorCode


def _is_reloadable(bench: ConsumerBench) -> None:
    assert told_by_records(bench.reloaded().shard) == told_by_records(bench.shard)


def test_the_first_member_gets_everything_in_epoch_2() -> None:
    bench = ConsumerBench({"t": 3})
    joined = bench.join("a")
    assert (joined.member_id, joined.member_epoch, joined.heartbeat_interval_ms) == ("a", 2, 5000)
    assert bench.given(joined) == {"t": [0, 1, 2]}
    assert bench.group().state == "Stable"
    assert [kind for kind, _ in bench.written()] == [5, 3, 7, 6, 8]
    _is_reloadable(bench)


def test_an_unchanged_heartbeat_writes_and_returns_nothing() -> None:
    bench = ConsumerBench({"t": 3})
    bench.join("a")
    size = len(bench.log)
    asked = bench.heartbeat("a", 2)
    assert asked.code == 0
    assert bench.given(asked) is None
    assert len(bench.log) == size


def test_a_full_heartbeat_gets_its_whole_assignment_again() -> None:
    bench = ConsumerBench({"t": 3})
    bench.join("a")
    asked = bench.heartbeat("a", 2, {"t": [0, 1, 2]}, subscribed_topic_names=["t"], rebalance_timeout_ms=60_000)
    assert bench.given(asked) == {"t": [0, 1, 2]}


def test_partitions_move_only_after_they_were_revoked() -> None:
    bench = ConsumerBench({"t": 4})
    bench.join("a")
    assert bench.given(bench.join("b")) == {}
    assert bench.group().state == "Reconciling"
    told = bench.heartbeat("a", 2)
    assert bench.given(told) == {"t": [0, 1]}
    assert bench.response(told).member_epoch == 2
    assert bench.given(bench.heartbeat("b", 3)) is None
    told = bench.heartbeat("a", 2, {"t": [0, 1]})
    assert bench.response(told).member_epoch == 3
    told = bench.heartbeat("b", 3)
    assert bench.given(told) == {"t": [2, 3]}
    assert bench.group().state == "Stable"
    _is_reloadable(bench)


def test_an_unconfirmed_revocation_still_holds_the_partition() -> None:
    bench = ConsumerBench({"t": 4})
    bench.join("a")
    bench.join("b")
    bench.heartbeat("a", 2)
    for owned in (None, {"t": [0, 1, 2, 3]}, {"t": [0, 1, 3]}):
        assert bench.response(bench.heartbeat("a", 2, owned)).member_epoch == 2
        assert bench.given(bench.heartbeat("b", 3)) is None


def test_a_member_that_does_not_revoke_in_time_is_removed() -> None:
    bench = ConsumerBench({"t": 4})
    bench.join("a", rebalance_timeout_ms=10_000)
    bench.join("b")
    bench.heartbeat("a", 2)
    for _ in range(3):
        bench.advance(4000)
        bench.heartbeat("b", bench.group().members["b"].epoch)
        if "a" in bench.group().members:
            bench.heartbeat("a", 2)
    assert list(bench.group().members) == ["b"]
    assert bench.heartbeat("a", 2).code == ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.given(bench.heartbeat("b", 4, {"t": []})) is None
    assert [sorted(held) for held in bench.group().members["b"].assigned.values()] == [[0, 1, 2, 3]]
    _is_reloadable(bench)


def test_a_member_that_revokes_in_time_is_not_removed_later() -> None:
    bench = ConsumerBench({"t": 4})
    bench.join("a", rebalance_timeout_ms=10_000)
    bench.join("b")
    bench.heartbeat("a", 2)
    bench.advance(9000)
    bench.heartbeat("a", 2, {"t": [0, 1]})
    bench.advance(9000)
    assert set(bench.group().members) == {"a", "b"}


def test_a_member_without_heartbeats_is_removed(caplog: pytest.LogCaptureFixture) -> None:
    bench = ConsumerBench({"t": 4})
    bench.join("a")
    bench.advance(44_999)
    assert "a" in bench.group().members
    bench.heartbeat("a", 2)
    with caplog.at_level("INFO", "ottla.coordinator"):
        bench.advance(45_000)
    assert not bench.group().members
    assert bench.group().state == "Empty"
    assert "member a is removed: it was not heard of for 45000 ms (group.consumer.session.timeout.ms)" in caplog.text
    _is_reloadable(bench)


def test_a_group_can_have_its_own_session_timeout_and_interval() -> None:
    of_groups = {"g": {"consumer.session.timeout.ms": "50000", "consumer.heartbeat.interval.ms": "7000"}}
    bench = ConsumerBench({"t": 4}, GroupSettings(of_groups=of_groups))
    assert bench.join("a").heartbeat_interval_ms == 7000
    bench.advance(49_999)
    assert bench.group().members
    bench.advance(1)
    assert not bench.group().members


def test_a_member_without_an_id_gets_one_in_version_0() -> None:
    bench = ConsumerBench({"t": 1})
    asked = bench.heartbeat("", 0, {}, version=0, subscribed_topic_names=["t"], rebalance_timeout_ms=1000)
    assert len(bench.response(asked).member_id or "") == 22
    assert list(bench.group().members) == [bench.response(asked).member_id]


def test_a_member_that_leaves_releases_its_partitions() -> None:
    bench = ConsumerBench({"t": 2})
    bench.join("a")
    asked = bench.heartbeat("a", -1)
    assert (bench.response(asked).member_id, bench.response(asked).member_epoch) == ("a", -1)
    assert bench.group().state == "Empty"
    assert bench.group().epoch == 3
    assert bench.given(bench.join("b")) == {"t": [0, 1]}
    assert bench.shard.next_deadline_ms == 45_000
    _is_reloadable(bench)


@pytest.mark.parametrize("epoch", [3, 1])
def test_another_epoch_is_fenced(epoch: int) -> None:
    bench = ConsumerBench({"t": 2})
    bench.join("a")
    assert bench.heartbeat("a", epoch).code == ErrorCode.FENCED_MEMBER_EPOCH
    assert bench.heartbeat("a", 2).code == 0


def test_the_previous_epoch_is_accepted_with_assigned_partitions_only() -> None:
    bench = ConsumerBench({"t": 2})
    bench.join("a")
    bench.set_topic("t", 3)
    assert bench.response(bench.heartbeat("a", 2, {"t": [0, 1]})).member_epoch == 3
    assert bench.heartbeat("a", 2, {"t": [0, 1, 7]}).code == ErrorCode.FENCED_MEMBER_EPOCH
    assert bench.heartbeat("a", 2).code == ErrorCode.FENCED_MEMBER_EPOCH
    asked = bench.heartbeat("a", 2, {"t": [0, 1]}, subscribed_topic_names=["t"], rebalance_timeout_ms=60_000)
    assert bench.response(asked).member_epoch == 3
    assert bench.given(asked) == {"t": [0, 1, 2]}


def test_a_member_may_join_again_with_epoch_0() -> None:
    bench = ConsumerBench({"t": 2})
    bench.join("a")
    joined = bench.join("a")
    assert joined.member_epoch == 2
    assert bench.given(joined) == {"t": [0, 1]}


def test_unknown_groups_and_members_are_refused() -> None:
    bench = ConsumerBench({"t": 2})
    assert bench.heartbeat("a", 1).code == ErrorCode.GROUP_ID_NOT_FOUND
    assert bench.heartbeat("a", -1).code == ErrorCode.GROUP_ID_NOT_FOUND
    bench.join("a")
    assert bench.heartbeat("b", 1).code == ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.heartbeat("b", -1).code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_full_group_refuses_another_member() -> None:
    bench = ConsumerBench({"t": 2}, GroupSettings(group_consumer_max_size=1))
    bench.join("a")
    refused = bench.heartbeat("b", 0, {}, subscribed_topic_names=["t"], rebalance_timeout_ms=1)
    assert refused.code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert bench.join("a").member_epoch == 2


def test_a_changed_subscription_begins_a_new_epoch_at_once() -> None:
    bench = ConsumerBench({"t": 2, "u": 2})
    bench.join("a")
    asked = bench.heartbeat("a", 2, subscribed_topic_names=["u"])
    assert bench.response(asked).member_epoch == 2
    assert bench.given(asked) == {}
    asked = bench.heartbeat("a", 2, {})
    assert bench.response(asked).member_epoch == 3
    assert bench.given(asked) == {"u": [0, 1]}
    _is_reloadable(bench)


def test_unsubscribed_partitions_are_revoked_before_a_new_target() -> None:
    bench = ConsumerBench({"t": 2, "u": 2}, GroupSettings(group_consumer_assignment_interval_ms=1000))
    bench.join("a", ["t", "u"])
    asked = bench.heartbeat("a", 2, {"t": [0, 1], "u": [0, 1]}, subscribed_topic_names=["u"])
    assert bench.group().state == "Assigning"
    assert bench.given(asked) == {"u": [0, 1]}
    assert [sorted(held) for held in bench.group().members["a"].revoking.values()] == [[0, 1]]
    bench.advance(1000)
    asked = bench.heartbeat("a", 2, {"u": [0, 1]})
    assert bench.response(asked).member_epoch == 3
    assert bench.group().state == "Stable"
    _is_reloadable(bench)


@pytest.mark.parametrize("changed", [{"rack_id": "r"}, {"rebalance_timeout_ms": 5}, {"server_assignor": "range"}])
def test_other_changes_of_a_member_are_written_and_change_no_epoch(changed: dict[str, Any]) -> None:
    bench = ConsumerBench({"t": 2})
    bench.join("a")
    start = len(bench.log)
    assert bench.response(bench.heartbeat("a", 2, **changed)).member_epoch == 2
    assert [kind for kind, _ in bench.written(start)] == [5]
    _is_reloadable(bench)


def test_members_may_subscribe_to_no_topics() -> None:
    bench = ConsumerBench()
    joined = bench.join("a", [])
    assert joined.member_epoch == 1
    assert bench.given(joined) == {}
    assert bench.group().state == "Stable"
    assert [kind for kind, _ in bench.written()] == [5, 8]
    _is_reloadable(bench)


def test_assignments_are_spaced_by_the_interval() -> None:
    bench = ConsumerBench({"t": 4}, GroupSettings(group_consumer_assignment_interval_ms=1000))
    bench.join("a")
    bench.advance(100)
    joined = bench.join("b")
    assert (joined.member_epoch, bench.given(joined)) == (2, {})
    assert (bench.group().epoch, bench.group().target_epoch, bench.group().state) == (3, 2, "Assigning")
    bench.advance(899)
    assert bench.response(bench.heartbeat("a", 2)).member_epoch == 2
    assert bench.group().target_epoch == 2
    bench.advance(1)
    assert bench.given(bench.heartbeat("a", 2)) == {"t": [0, 1]}
    assert bench.group().target_epoch == 3


def test_the_assignor_requested_by_most_members_is_used() -> None:
    bench = ConsumerBench({"t": 2, "u": 2})
    for member_id in ("a", "b", "c"):
        bench.join(member_id, ["t", "u"], server_assignor="range" if member_id < "c" else "uniform")
    ranges = {
        member_id: {topic[-1]: held for topic, held in target.items()} for member_id, target in bench.group().targets.items()
    }
    assert ranges == {"a": {1: (0,), 2: (0,)}, "b": {1: (1,), 2: (1,)}, "c": {}}
