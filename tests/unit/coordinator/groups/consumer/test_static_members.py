"""Tests of `ottla.coordinator.groups.consumer.membership`: static members that leave temporarily and return."""

from tests.support.shards.consumer_harness import ConsumerHarness, told_by_records

from ottla.errors.codes import ErrorCode


def _joined(harness: ConsumerHarness, member_id: str = "a", instance_id: str = "i") -> int:
    return harness.join(member_id, instance_id=instance_id).member_epoch


def test_a_static_member_that_returns_keeps_its_partitions() -> None:
    harness = ConsumerHarness({"t": 4})
    _joined(harness)
    harness.join("other")
    harness.heartbeat("a", 2, {"t": [0, 1, 2, 3]}, instance_id="i")
    harness.heartbeat("a", 2, {"t": [0, 1]}, instance_id="i")
    harness.heartbeat("other", 3, {})
    assert harness.heartbeat("a", -2, instance_id="i").code == 0
    assert harness.group().members["a"].epoch == -2
    assert harness.given(harness.heartbeat("other", 3)) is None
    epoch = harness.group().epoch
    back = harness.join("b", instance_id="i")
    assert harness.given(back) == {"t": [0, 1]}
    assert (harness.group().epoch, back.member_epoch) == (epoch, epoch)
    assert set(harness.group().members) == {"b", "other"}
    assert told_by_records(harness.reloaded().shard) == told_by_records(harness.shard)


def test_a_temporary_leave_is_answered_with_its_epoch() -> None:
    harness = ConsumerHarness({"t": 1})
    _joined(harness)
    answer = harness.response(harness.heartbeat("a", -2, instance_id="i"))
    assert (answer.member_id, answer.member_epoch) == ("a", -2)


def test_a_static_member_that_does_not_return_expires() -> None:
    harness = ConsumerHarness({"t": 1})
    _joined(harness)
    harness.heartbeat("a", -2, instance_id="i")
    harness.advance(45_000)
    assert not harness.group().members
    assert not harness.group().static_ids


def test_an_instance_id_in_use_is_refused_to_another_member() -> None:
    harness = ConsumerHarness({"t": 1})
    _joined(harness)
    asked = harness.heartbeat("b", 0, {}, instance_id="i", subscribed_topic_names=["t"], rebalance_timeout_ms=1)
    assert asked.code == ErrorCode.UNRELEASED_INSTANCE_ID
    assert harness.heartbeat("a", 2, instance_id="i").code == 0


def test_a_replaced_static_member_is_fenced() -> None:
    harness = ConsumerHarness({"t": 1})
    _joined(harness)
    harness.heartbeat("a", -2, instance_id="i")
    _joined(harness, "b")
    assert harness.heartbeat("a", 2, instance_id="i").code == ErrorCode.FENCED_INSTANCE_ID
    assert harness.heartbeat("a", -2, instance_id="i").code == ErrorCode.FENCED_INSTANCE_ID
    assert harness.heartbeat("a", 2, instance_id="unknown").code == ErrorCode.UNKNOWN_MEMBER_ID
    harness.advance(44_999)
    harness.heartbeat("b", 2, instance_id="i")
    harness.advance(44_999)
    assert set(harness.group().members) == {"b"}, "the session of the one before must be forgotten"


def test_a_static_member_that_leaves_releases_its_partitions() -> None:
    harness = ConsumerHarness({"t": 1})
    _joined(harness)
    harness.heartbeat("a", -1, instance_id="i")
    assert not harness.group().static_ids
    assert harness.given(harness.join("b")) == {"t": [0]}


def test_a_static_member_may_return_with_another_subscription() -> None:
    harness = ConsumerHarness({"t": 2, "u": 2})
    _joined(harness)
    harness.heartbeat("a", -2, instance_id="i")
    back = harness.join("b", ["u"], instance_id="i")
    assert harness.given(back) == {"u": [0, 1]}
    assert harness.group().epoch == back.member_epoch == 3
    assert told_by_records(harness.reloaded().shard) == told_by_records(harness.shard)


def test_a_static_member_may_join_again_under_its_own_id_when_it_had_left() -> None:
    harness = ConsumerHarness({"t": 2})
    _joined(harness)
    harness.heartbeat("a", -2, instance_id="i")
    back = harness.join("a", instance_id="i")
    assert harness.given(back) == {"t": [0, 1]}
    harness.advance(45_000)
    assert not harness.group().members, "its session must run"
