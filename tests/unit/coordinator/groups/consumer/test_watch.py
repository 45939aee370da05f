"""Tests of `ottla.coordinator.groups.consumer.watch`: created, deleted and changed topics, and regular expressions."""

import pytest
from tests.support.shards.consumer_shard import ConsumerBench, told_by_records

from ottla.coordinator.groups.consumer import watch
from ottla.errors.codes import ErrorCode


def test_a_topic_that_grows_begins_a_new_epoch() -> None:
    bench = ConsumerBench({"t": 2, "u": 1})
    bench.join("a")
    bench.set_topic("t", 3)
    assert bench.given(bench.heartbeat("a", 2)) == {"t": [0, 1, 2]}
    assert bench.group().epoch == 3


def test_changes_of_other_topics_change_nothing() -> None:
    bench = ConsumerBench({"t": 2, "u": 1})
    bench.join("a")
    size = len(bench.log)
    bench.set_topic("u", 5)
    bench.set_topic("v", 1)
    bench.set_topic("t", 2)
    assert bench.given(bench.heartbeat("a", 2)) is None
    assert len(bench.log) == size


def test_a_topic_created_later_is_assigned() -> None:
    bench = ConsumerBench()
    joined = bench.join("a")
    assert (joined.member_epoch, bench.given(joined)) == (2, {})
    bench.set_topic("t", 2)
    assert bench.given(bench.heartbeat("a", 2)) == {"t": [0, 1]}


def test_a_deleted_topic_is_revoked() -> None:
    bench = ConsumerBench({"t": 2, "u": 1})
    bench.join("a", ["t", "u"])
    bench.set_topic("t", None)
    assert bench.given(bench.heartbeat("a", 2)) == {"u": [0]}
    assert bench.response(bench.heartbeat("a", 2, {"u": [0]})).member_epoch == 3
    assert told_by_records(bench.reloaded().shard) == told_by_records(bench.shard)


def test_a_loaded_group_without_changes_keeps_its_epoch() -> None:
    bench = ConsumerBench({"t": 2})
    bench.join("a")
    again = bench.reloaded()
    size = len(again.log)
    assert again.given(again.heartbeat("a", 2)) is None
    assert len(again.log) == size
    bench.set_topic("t", 3)
    assert bench.reloaded().response(bench.reloaded().heartbeat("a", 2)).member_epoch == 3


def test_an_expression_must_match_the_whole_topic_name() -> None:
    bench = ConsumerBench({"foo": 1, "food": 2, "bar": 1, "xfoo": 1})
    joined = bench.join("a", None, subscribed_topic_regex="foo.?")
    assert bench.given(joined) == {"foo": [0], "food": [0, 1]}
    assert bench.group().is_homogeneous
    assert [kind for kind, _ in bench.written()] == [5, 16, 3, 7, 6, 8]
    assert bench.group().is_subscribed_to("food")
    assert not bench.group().is_subscribed_to("bar")
    assert told_by_records(bench.reloaded().shard) == told_by_records(bench.shard)


@pytest.mark.parametrize("regex", ["(", "a(?!b)", "[z-a]", r"\1"])
def test_an_invalid_expression_is_refused(regex: str) -> None:
    bench = ConsumerBench({"foo": 1})
    asked = bench.heartbeat("a", 0, {}, subscribed_topic_regex=regex, rebalance_timeout_ms=1)
    assert asked.code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert not bench.log


def test_new_topics_are_matched_after_the_refresh_interval() -> None:
    bench = ConsumerBench({"foo": 1})
    bench.join("a", None, subscribed_topic_regex="foo.*")
    bench.set_topic("foo2", 1)
    assert bench.given(bench.heartbeat("a", 2)) is None
    bench.advance(10_000)
    assert bench.given(bench.heartbeat("a", 2)) == {"foo": [0], "foo2": [0]}
    size = len(bench.log)
    bench.advance(10_000)
    bench.heartbeat("a", 3)
    assert len(bench.log) == size


def test_an_expression_is_deleted_with_its_last_member() -> None:
    bench = ConsumerBench({"foo": 2, "bar": 2})
    bench.join("a", None, subscribed_topic_regex="foo")
    bench.join("b", None, subscribed_topic_regex="foo")
    bench.heartbeat("a", 2, {"foo": [0]}, subscribed_topic_names=["bar"], subscribed_topic_regex="")
    assert list(bench.group().resolved) == ["foo"]
    bench.heartbeat("b", -1)
    assert not bench.group().resolved
    assert not bench.group().is_subscribed_to("foo")
    assert told_by_records(bench.reloaded().shard) == told_by_records(bench.shard)


def test_names_and_expressions_together() -> None:
    bench = ConsumerBench({"foo": 1, "bar": 1})
    joined = bench.join("a", ["bar"], subscribed_topic_regex="fo+")
    assert bench.given(joined) == {"foo": [0], "bar": [0]}
    assert not bench.group().is_homogeneous


def test_a_resolved_expression_is_used_at_once() -> None:
    bench = ConsumerBench({"foo": 2, "bar": 2})
    bench.join("a", None, subscribed_topic_regex="foo")
    bench.join("b", ["bar"])
    asked = bench.heartbeat("b", 3, subscribed_topic_names=[], subscribed_topic_regex="foo")
    assert bench.group().epoch == 4
    assert asked.code == 0
    assert sorted(len(target) for target in bench.group().targets.values()) == [1, 1]


def test_many_expressions_are_matched_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = ConsumerBench({"foo": 1})
    regexes = [f"foo|x{number}.*" for number in range(5)]
    for number, regex in enumerate(regexes):
        bench.join(f"m{number}", None, subscribed_topic_regex=regex)
    monkeypatch.setattr(watch, "MATCHES_PER_HEARTBEAT", 4)
    for number in range(5):
        bench.set_topic(f"x{number}", 1)
    bench.advance(10_000)
    found = []
    for _ in range(6):
        bench.heartbeat("m0", bench.group().members["m0"].epoch)
        found.append(sum(topic != "foo" for known in bench.group().resolved.values() for topic in known.topics))
    assert found == [1, 2, 3, 4, 5, 5]
    assert told_by_records(bench.reloaded().shard) == told_by_records(bench.shard)


def test_expressions_are_compiled_without_captures() -> None:
    """Captures make hostile expressions hundreds of times as expensive."""
    assert watch.compiled("(a|t|.)*(a?){900}a{0,900}").fullmatch("t" + "a" * 240).groups() == ()
