"""Tests of `ottla.coordinator.groups.consumer.watch`: created, deleted and changed topics, and regular expressions."""

import pytest
from tests.support.shards.consumer_harness import ConsumerHarness, told_by_records

from ottla.coordinator.groups.consumer import watch
from ottla.errors.codes import ErrorCode


def test_a_topic_that_grows_begins_a_new_epoch() -> None:
    harness = ConsumerHarness({"t": 2, "u": 1})
    harness.join("a")
    harness.set_topic("t", 3)
    assert harness.given(harness.heartbeat("a", 2)) == {"t": [0, 1, 2]}
    assert harness.group().epoch == 3


def test_changes_of_other_topics_change_nothing() -> None:
    harness = ConsumerHarness({"t": 2, "u": 1})
    harness.join("a")
    size = len(harness.log)
    harness.set_topic("u", 5)
    harness.set_topic("v", 1)
    harness.set_topic("t", 2)
    assert harness.given(harness.heartbeat("a", 2)) is None
    assert len(harness.log) == size


def test_a_topic_created_later_is_assigned() -> None:
    harness = ConsumerHarness()
    joined = harness.join("a")
    assert (joined.member_epoch, harness.given(joined)) == (2, {})
    harness.set_topic("t", 2)
    assert harness.given(harness.heartbeat("a", 2)) == {"t": [0, 1]}


def test_a_deleted_topic_is_revoked() -> None:
    harness = ConsumerHarness({"t": 2, "u": 1})
    harness.join("a", ["t", "u"])
    harness.set_topic("t", None)
    assert harness.given(harness.heartbeat("a", 2)) == {"u": [0]}
    assert harness.response(harness.heartbeat("a", 2, {"u": [0]})).member_epoch == 3
    assert told_by_records(harness.reloaded().shard) == told_by_records(harness.shard)


def test_a_loaded_group_without_changes_keeps_its_epoch() -> None:
    harness = ConsumerHarness({"t": 2})
    harness.join("a")
    again = harness.reloaded()
    size = len(again.log)
    assert again.given(again.heartbeat("a", 2)) is None
    assert len(again.log) == size
    harness.set_topic("t", 3)
    assert harness.reloaded().response(harness.reloaded().heartbeat("a", 2)).member_epoch == 3


def test_an_expression_must_match_the_whole_topic_name() -> None:
    harness = ConsumerHarness({"foo": 1, "food": 2, "bar": 1, "xfoo": 1})
    joined = harness.join("a", None, subscribed_topic_regex="foo.?")
    assert harness.given(joined) == {"foo": [0], "food": [0, 1]}
    assert harness.group().is_homogeneous
    assert [kind for kind, _ in harness.written()] == [5, 16, 3, 7, 6, 8]
    assert harness.group().is_subscribed_to("food")
    assert not harness.group().is_subscribed_to("bar")
    assert told_by_records(harness.reloaded().shard) == told_by_records(harness.shard)


@pytest.mark.parametrize("regex", ["(", "a(?!b)", "[z-a]", r"\1"])
def test_an_invalid_expression_is_refused(regex: str) -> None:
    harness = ConsumerHarness({"foo": 1})
    asked = harness.heartbeat("a", 0, {}, subscribed_topic_regex=regex, rebalance_timeout_ms=1)
    assert asked.code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert not harness.log


def test_new_topics_are_matched_after_the_refresh_interval() -> None:
    harness = ConsumerHarness({"foo": 1})
    harness.join("a", None, subscribed_topic_regex="foo.*")
    harness.set_topic("foo2", 1)
    assert harness.given(harness.heartbeat("a", 2)) is None
    harness.advance(10_000)
    assert harness.given(harness.heartbeat("a", 2)) == {"foo": [0], "foo2": [0]}
    size = len(harness.log)
    harness.advance(10_000)
    harness.heartbeat("a", 3)
    assert len(harness.log) == size


def test_expressions_match_what_the_member_may_describe() -> None:
    harness = ConsumerHarness({"foo1": 1, "foo2": 1})
    harness.may_describe = {"foo1"}.__contains__
    assert harness.given(harness.join("a", None, subscribed_topic_regex="foo.*")) == {"foo1": [0]}
    harness.may_describe, harness.rules_version = {"foo2"}.__contains__, 1
    assert harness.given(harness.heartbeat("a", 2)) is None, "matched once in a refresh interval"
    harness.advance(10_000)
    assert harness.given(harness.heartbeat("a", 2)) == {}, "foo1 is taken away"
    assert harness.given(harness.heartbeat("a", 2, {})) == {"foo2": [0]}


def test_an_expression_is_deleted_with_its_last_member() -> None:
    harness = ConsumerHarness({"foo": 2, "bar": 2})
    harness.join("a", None, subscribed_topic_regex="foo")
    harness.join("b", None, subscribed_topic_regex="foo")
    harness.heartbeat("a", 2, {"foo": [0]}, subscribed_topic_names=["bar"], subscribed_topic_regex="")
    assert list(harness.group().resolved) == ["foo"]
    harness.heartbeat("b", -1)
    assert not harness.group().resolved
    assert not harness.group().is_subscribed_to("foo")
    assert told_by_records(harness.reloaded().shard) == told_by_records(harness.shard)


def test_names_and_expressions_together() -> None:
    harness = ConsumerHarness({"foo": 1, "bar": 1})
    joined = harness.join("a", ["bar"], subscribed_topic_regex="fo+")
    assert harness.given(joined) == {"foo": [0], "bar": [0]}
    assert not harness.group().is_homogeneous


def test_a_resolved_expression_is_used_at_once() -> None:
    harness = ConsumerHarness({"foo": 2, "bar": 2})
    harness.join("a", None, subscribed_topic_regex="foo")
    harness.join("b", ["bar"])
    asked = harness.heartbeat("b", 3, subscribed_topic_names=[], subscribed_topic_regex="foo")
    assert harness.group().epoch == 4
    assert asked.code == 0
    assert sorted(len(target) for target in harness.group().targets.values()) == [1, 1]


def test_many_expressions_are_matched_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = ConsumerHarness({"foo": 1})
    regexes = [f"foo|x{number}.*" for number in range(5)]
    for number, regex in enumerate(regexes):
        harness.join(f"m{number}", None, subscribed_topic_regex=regex)
    monkeypatch.setattr(watch, "MATCHES_PER_HEARTBEAT", 4)
    for number in range(5):
        harness.set_topic(f"x{number}", 1)
    harness.advance(10_000)
    found = []
    for _ in range(6):
        harness.heartbeat("m0", harness.group().members["m0"].epoch)
        found.append(sum(topic != "foo" for known in harness.group().resolved.values() for topic in known.topics))
    assert found == [1, 2, 3, 4, 5, 5]
    assert told_by_records(harness.reloaded().shard) == told_by_records(harness.shard)
