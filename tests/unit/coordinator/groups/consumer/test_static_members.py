"""Tests of `ottla.coordinator.groups.consumer.joining`: static members that leave temporarily and return."""

from tests.support.shards.consumer_shard import ConsumerBench, told_by_records

from ottla.errors.codes import ErrorCode


def _joined(bench: ConsumerBench, member_id: str = "a", instance_id: str = "i") -> int:
    return bench.join(member_id, instance_id=instance_id).member_epoch


def test_a_static_member_that_returns_keeps_its_partitions() -> None:
    bench = ConsumerBench({"t": 4})
    _joined(bench)
    bench.join("other")
    bench.heartbeat("a", 2, {"t": [0, 1, 2, 3]}, instance_id="i")
    bench.heartbeat("a", 2, {"t": [0, 1]}, instance_id="i")
    bench.heartbeat("other", 3, {})
    assert bench.heartbeat("a", -2, instance_id="i").code == 0
    assert bench.group().members["a"].epoch == -2
    assert bench.given(bench.heartbeat("other", 3)) is None
    epoch = bench.group().epoch
    back = bench.join("b", instance_id="i")
    assert bench.given(back) == {"t": [0, 1]}
    assert (bench.group().epoch, back.member_epoch) == (epoch, epoch)
    assert set(bench.group().members) == {"b", "other"}
    assert told_by_records(bench.reloaded().shard) == told_by_records(bench.shard)


def test_a_temporary_leave_is_answered_with_its_epoch() -> None:
    bench = ConsumerBench({"t": 1})
    _joined(bench)
    answer = bench.response(bench.heartbeat("a", -2, instance_id="i"))
    assert (answer.member_id, answer.member_epoch) == ("a", -2)


def test_a_static_member_that_does_not_return_expires() -> None:
    bench = ConsumerBench({"t": 1})
    _joined(bench)
    bench.heartbeat("a", -2, instance_id="i")
    bench.advance(45_000)
    assert not bench.group().members
    assert not bench.group().static_ids


def test_an_instance_id_in_use_is_refused_to_another_member() -> None:
    bench = ConsumerBench({"t": 1})
    _joined(bench)
    asked = bench.heartbeat("b", 0, {}, instance_id="i", subscribed_topic_names=["t"], rebalance_timeout_ms=1)
    assert asked.code == ErrorCode.UNRELEASED_INSTANCE_ID
    assert bench.heartbeat("a", 2, instance_id="i").code == 0


def test_a_replaced_static_member_is_fenced() -> None:
    bench = ConsumerBench({"t": 1})
    _joined(bench)
    bench.heartbeat("a", -2, instance_id="i")
    _joined(bench, "b")
    assert bench.heartbeat("a", 2, instance_id="i").code == ErrorCode.FENCED_INSTANCE_ID
    assert bench.heartbeat("a", -2, instance_id="i").code == ErrorCode.FENCED_INSTANCE_ID
    assert bench.heartbeat("a", 2, instance_id="unknown").code == ErrorCode.UNKNOWN_MEMBER_ID
    bench.advance(44_999)
    bench.heartbeat("b", 2, instance_id="i")
    bench.advance(44_999)
    assert set(bench.group().members) == {"b"}, "the session of the one before must be forgotten"


def test_a_static_member_that_leaves_releases_its_partitions() -> None:
    bench = ConsumerBench({"t": 1})
    _joined(bench)
    bench.heartbeat("a", -1, instance_id="i")
    assert not bench.group().static_ids
    assert bench.given(bench.join("b")) == {"t": [0]}


def test_a_static_member_may_return_with_another_subscription() -> None:
    bench = ConsumerBench({"t": 2, "u": 2})
    _joined(bench)
    bench.heartbeat("a", -2, instance_id="i")
    back = bench.join("b", ["u"], instance_id="i")
    assert bench.given(back) == {"u": [0, 1]}
    assert bench.group().epoch == back.member_epoch == 3
    assert told_by_records(bench.reloaded().shard) == told_by_records(bench.shard)


def test_a_static_member_may_join_again_under_its_own_id_when_it_had_left() -> None:
    bench = ConsumerBench({"t": 2})
    _joined(bench)
    bench.heartbeat("a", -2, instance_id="i")
    back = bench.join("a", instance_id="i")
    assert bench.given(back) == {"t": [0, 1]}
    bench.advance(45_000)
    assert not bench.group().members, "its session must run"
