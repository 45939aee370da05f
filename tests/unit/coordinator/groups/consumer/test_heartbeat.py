"""Tests of `ottla.coordinator.groups.consumer.heartbeat`: joining, sessions, and the assignments that members get."""

from typing import Any

import pytest
from tests.support.shards.consumer_harness import ConsumerHarness, told_by_records

from ottla.coordinator.groups.settings import GroupSettings
from ottla.errors.codes import ErrorCode


def _is_reloadable(harness: ConsumerHarness) -> None:
    assert told_by_records(harness.reloaded().shard) == told_by_records(harness.shard)


def test_the_first_member_gets_everything_in_epoch_2() -> None:
    harness = ConsumerHarness({"t": 3})
    joined = harness.join("a")
    assert (joined.member_id, joined.member_epoch, joined.heartbeat_interval_ms) == ("a", 2, 5000)
    assert harness.given(joined) == {"t": [0, 1, 2]}
    assert harness.group().state == "Stable"
    assert [kind for kind, _ in harness.written()] == [5, 3, 7, 6, 8]
    _is_reloadable(harness)


def test_an_unchanged_heartbeat_writes_and_returns_nothing() -> None:
    harness = ConsumerHarness({"t": 3})
    harness.join("a")
    size = len(harness.log)
    asked = harness.heartbeat("a", 2)
    assert asked.code == 0
    assert harness.given(asked) is None
    assert len(harness.log) == size


def test_a_full_heartbeat_gets_its_whole_assignment_again() -> None:
    harness = ConsumerHarness({"t": 3})
    harness.join("a")
    asked = harness.heartbeat("a", 2, {"t": [0, 1, 2]}, subscribed_topic_names=["t"], rebalance_timeout_ms=60_000)
    assert harness.given(asked) == {"t": [0, 1, 2]}


def test_partitions_move_only_after_they_were_revoked() -> None:
    harness = ConsumerHarness({"t": 4})
    harness.join("a")
    assert harness.given(harness.join("b")) == {}
    assert harness.group().state == "Reconciling"
    told = harness.heartbeat("a", 2)
    assert harness.given(told) == {"t": [0, 1]}
    assert harness.response(told).member_epoch == 2
    assert harness.given(harness.heartbeat("b", 3)) is None
    told = harness.heartbeat("a", 2, {"t": [0, 1]})
    assert harness.response(told).member_epoch == 3
    told = harness.heartbeat("b", 3)
    assert harness.given(told) == {"t": [2, 3]}
    assert harness.group().state == "Stable"
    _is_reloadable(harness)


def test_an_unconfirmed_revocation_still_holds_the_partition() -> None:
    harness = ConsumerHarness({"t": 4})
    harness.join("a")
    harness.join("b")
    harness.heartbeat("a", 2)
    for owned in (None, {"t": [0, 1, 2, 3]}, {"t": [0, 1, 3]}):
        assert harness.response(harness.heartbeat("a", 2, owned)).member_epoch == 2
        assert harness.given(harness.heartbeat("b", 3)) is None


def test_a_member_that_does_not_revoke_in_time_is_removed() -> None:
    harness = ConsumerHarness({"t": 4})
    harness.join("a", rebalance_timeout_ms=10_000)
    harness.join("b")
    harness.heartbeat("a", 2)
    for _ in range(3):
        harness.advance(4000)
        harness.heartbeat("b", harness.group().members["b"].epoch)
        if "a" in harness.group().members:
            harness.heartbeat("a", 2)
    assert list(harness.group().members) == ["b"]
    assert harness.heartbeat("a", 2).code == ErrorCode.UNKNOWN_MEMBER_ID
    assert harness.given(harness.heartbeat("b", 4, {"t": []})) is None
    assert [sorted(held) for held in harness.group().members["b"].assigned.values()] == [[0, 1, 2, 3]]
    _is_reloadable(harness)


def test_a_member_that_revokes_in_time_is_not_removed_later() -> None:
    harness = ConsumerHarness({"t": 4})
    harness.join("a", rebalance_timeout_ms=10_000)
    harness.join("b")
    harness.heartbeat("a", 2)
    harness.advance(9000)
    harness.heartbeat("a", 2, {"t": [0, 1]})
    harness.advance(9000)
    assert set(harness.group().members) == {"a", "b"}


def test_a_member_without_heartbeats_is_removed(caplog: pytest.LogCaptureFixture) -> None:
    harness = ConsumerHarness({"t": 4})
    harness.join("a")
    harness.advance(44_999)
    assert "a" in harness.group().members
    harness.heartbeat("a", 2)
    with caplog.at_level("INFO", "ottla.coordinator"):
        harness.advance(45_000)
    assert not harness.group().members
    assert harness.group().state == "Empty"
    assert "member a is removed: it was not heard of for 45000 ms (group.consumer.session.timeout.ms)" in caplog.text
    _is_reloadable(harness)


def test_a_group_can_have_its_own_session_timeout_and_interval() -> None:
    of_groups = {"g": {"consumer.session.timeout.ms": "50000", "consumer.heartbeat.interval.ms": "7000"}}
    harness = ConsumerHarness({"t": 4}, GroupSettings(of_groups=of_groups))
    assert harness.join("a").heartbeat_interval_ms == 7000
    harness.advance(49_999)
    assert harness.group().members
    harness.advance(1)
    assert not harness.group().members


def test_a_member_without_an_id_gets_one_in_version_0() -> None:
    harness = ConsumerHarness({"t": 1})
    asked = harness.heartbeat("", 0, {}, version=0, subscribed_topic_names=["t"], rebalance_timeout_ms=1000)
    assert len(harness.response(asked).member_id or "") == 22
    assert list(harness.group().members) == [harness.response(asked).member_id]


def test_a_member_that_leaves_releases_its_partitions() -> None:
    harness = ConsumerHarness({"t": 2})
    harness.join("a")
    asked = harness.heartbeat("a", -1)
    assert (harness.response(asked).member_id, harness.response(asked).member_epoch) == ("a", -1)
    assert harness.group().state == "Empty"
    assert harness.group().epoch == 3
    assert harness.given(harness.join("b")) == {"t": [0, 1]}
    assert harness.shard.next_deadline_ms == 45_000
    _is_reloadable(harness)


@pytest.mark.parametrize("epoch", [3, 1])
def test_another_epoch_is_fenced(epoch: int) -> None:
    harness = ConsumerHarness({"t": 2})
    harness.join("a")
    assert harness.heartbeat("a", epoch).code == ErrorCode.FENCED_MEMBER_EPOCH
    assert harness.heartbeat("a", 2).code == 0


def test_the_previous_epoch_is_accepted_with_assigned_partitions_only() -> None:
    harness = ConsumerHarness({"t": 2})
    harness.join("a")
    harness.set_topic("t", 3)
    assert harness.response(harness.heartbeat("a", 2, {"t": [0, 1]})).member_epoch == 3
    assert harness.heartbeat("a", 2, {"t": [0, 1, 7]}).code == ErrorCode.FENCED_MEMBER_EPOCH
    assert harness.heartbeat("a", 2).code == ErrorCode.FENCED_MEMBER_EPOCH
    asked = harness.heartbeat("a", 2, {"t": [0, 1]}, subscribed_topic_names=["t"], rebalance_timeout_ms=60_000)
    assert harness.response(asked).member_epoch == 3
    assert harness.given(asked) == {"t": [0, 1, 2]}


def test_a_member_may_join_again_with_epoch_0() -> None:
    harness = ConsumerHarness({"t": 2})
    harness.join("a")
    joined = harness.join("a")
    assert joined.member_epoch == 2
    assert harness.given(joined) == {"t": [0, 1]}


def test_unknown_groups_and_members_are_refused() -> None:
    harness = ConsumerHarness({"t": 2})
    assert harness.heartbeat("a", 1).code == ErrorCode.GROUP_ID_NOT_FOUND
    assert harness.heartbeat("a", -1).code == ErrorCode.GROUP_ID_NOT_FOUND
    harness.join("a")
    assert harness.heartbeat("b", 1).code == ErrorCode.UNKNOWN_MEMBER_ID
    assert harness.heartbeat("b", -1).code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_full_group_refuses_another_member() -> None:
    harness = ConsumerHarness({"t": 2}, GroupSettings(group_consumer_max_size=1))
    harness.join("a")
    refused = harness.heartbeat("b", 0, {}, subscribed_topic_names=["t"], rebalance_timeout_ms=1)
    assert refused.code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert harness.join("a").member_epoch == 2


def test_a_changed_subscription_begins_a_new_epoch_at_once() -> None:
    harness = ConsumerHarness({"t": 2, "u": 2})
    harness.join("a")
    asked = harness.heartbeat("a", 2, subscribed_topic_names=["u"])
    assert harness.response(asked).member_epoch == 2
    assert harness.given(asked) == {}
    asked = harness.heartbeat("a", 2, {})
    assert harness.response(asked).member_epoch == 3
    assert harness.given(asked) == {"u": [0, 1]}
    _is_reloadable(harness)


def test_unsubscribed_partitions_are_revoked_before_a_new_target() -> None:
    harness = ConsumerHarness({"t": 2, "u": 2}, GroupSettings(group_consumer_assignment_interval_ms=1000))
    harness.join("a", ["t", "u"])
    asked = harness.heartbeat("a", 2, {"t": [0, 1], "u": [0, 1]}, subscribed_topic_names=["u"])
    assert harness.group().state == "Assigning"
    assert harness.given(asked) == {"u": [0, 1]}
    assert [sorted(held) for held in harness.group().members["a"].revoking.values()] == [[0, 1]]
    harness.advance(1000)
    asked = harness.heartbeat("a", 2, {"u": [0, 1]})
    assert harness.response(asked).member_epoch == 3
    assert harness.group().state == "Stable"
    _is_reloadable(harness)


@pytest.mark.parametrize("changed", [{"rack_id": "r"}, {"rebalance_timeout_ms": 5}, {"server_assignor": "range"}])
def test_other_changes_of_a_member_are_written_and_change_no_epoch(changed: dict[str, Any]) -> None:
    harness = ConsumerHarness({"t": 2})
    harness.join("a")
    start = len(harness.log)
    assert harness.response(harness.heartbeat("a", 2, **changed)).member_epoch == 2
    assert [kind for kind, _ in harness.written(start)] == [5]
    _is_reloadable(harness)


def test_members_may_subscribe_to_no_topics() -> None:
    harness = ConsumerHarness()
    joined = harness.join("a", [])
    assert joined.member_epoch == 1
    assert harness.given(joined) == {}
    assert harness.group().state == "Stable"
    assert [kind for kind, _ in harness.written()] == [5, 8]
    _is_reloadable(harness)


def test_assignments_are_spaced_by_the_interval() -> None:
    harness = ConsumerHarness({"t": 4}, GroupSettings(group_consumer_assignment_interval_ms=1000))
    harness.join("a")
    harness.advance(100)
    joined = harness.join("b")
    assert (joined.member_epoch, harness.given(joined)) == (2, {})
    assert (harness.group().epoch, harness.group().target_epoch, harness.group().state) == (3, 2, "Assigning")
    harness.advance(899)
    assert harness.response(harness.heartbeat("a", 2)).member_epoch == 2
    assert harness.group().target_epoch == 2
    harness.advance(1)
    assert harness.given(harness.heartbeat("a", 2)) == {"t": [0, 1]}
    assert harness.group().target_epoch == 3


def test_the_assignor_requested_by_most_members_is_used() -> None:
    harness = ConsumerHarness({"t": 2, "u": 2})
    for member_id in ("a", "b", "c"):
        harness.join(member_id, ["t", "u"], server_assignor="range" if member_id < "c" else "uniform")
    ranges = {
        member_id: {topic[-1]: held for topic, held in target.items()} for member_id, target in harness.group().targets.items()
    }
    assert ranges == {"a": {1: (0,), 2: (0,)}, "b": {1: (1,), 2: (1,)}, "c": {}}


# Tests of `ottla.coordinator.groups.consumer.heartbeat`: malformed requests.

JOIN = {"subscribed_topic_names": ["t"], "rebalance_timeout_ms": 1}


@pytest.mark.parametrize(
    ("member_id", "epoch", "owned", "fields", "version"),
    [
        pytest.param("", 0, {}, JOIN, 1, id="no member id"),
        pytest.param(" ", 0, {}, JOIN, 1, id="a blank member id"),
        pytest.param("", 1, None, {}, 0, id="no member id after the join"),
        pytest.param("", -1, None, {}, 0, id="no member id at a leave"),
        pytest.param("a", 0, {}, {**JOIN, "group_id": ""}, 1, id="no group"),
        pytest.param("a", 0, {}, {**JOIN, "instance_id": ""}, 1, id="an empty instance id"),
        pytest.param("a", 0, {}, {**JOIN, "rack_id": ""}, 1, id="an empty rack"),
        pytest.param("a", 0, {}, {**JOIN, "rebalance_timeout_ms": -1}, 1, id="no rebalance timeout"),
        pytest.param("a", 0, None, JOIN, 1, id="null partitions at the join"),
        pytest.param("a", 0, {"t": [1]}, JOIN, 1, id="partitions at the join"),
        pytest.param("a", 0, {}, {"rebalance_timeout_ms": 1}, 1, id="no subscription"),
        pytest.param("a", -2, None, {}, 1, id="a temporary leave of a dynamic member"),
        pytest.param("a", -3, None, {}, 1, id="no such epoch"),
    ],
)
def test_invalid_requests(member_id: str, epoch: int, owned: Any, fields: dict[str, Any], version: int) -> None:
    harness = ConsumerHarness({"t": 1})
    asked = harness.heartbeat(member_id, epoch, owned, version=version, **fields)
    assert asked.code == ErrorCode.INVALID_REQUEST
    assert not harness.log


def test_an_unknown_assignor_is_refused() -> None:
    harness = ConsumerHarness({"t": 1})
    asked = harness.heartbeat("a", 0, {}, server_assignor="best", **JOIN)
    assert asked.code == ErrorCode.UNSUPPORTED_ASSIGNOR
    assert "uniform, range" in str(asked.answer)


def test_an_assignor_missing_from_the_settings_is_refused() -> None:
    harness = ConsumerHarness({"t": 1}, GroupSettings(group_consumer_assignors=("range",)))
    assert harness.heartbeat("a", 0, {}, server_assignor="uniform", **JOIN).code == ErrorCode.UNSUPPORTED_ASSIGNOR
    assert harness.heartbeat("a", 0, {}, server_assignor="range", **JOIN).code == 0


def test_the_consumer_protocol_is_refused_when_switched_off() -> None:
    harness = ConsumerHarness({"t": 1}, GroupSettings(rebalance_protocols=("classic",)))
    assert harness.heartbeat("a", 0, {}, **JOIN).code == ErrorCode.UNSUPPORTED_VERSION


def test_an_empty_subscription_is_accepted() -> None:
    harness = ConsumerHarness({"t": 1})
    assert harness.heartbeat("a", 0, {}, subscribed_topic_regex="", rebalance_timeout_ms=1).code == 0
