"""Commits to a group: the newest offsets win, failures are tried again."""

from __future__ import annotations

import threading

import pytest

from ottla import Admin, TopicPartition
from ottla.spark.progress import listener
from ottla.spark.progress.listener import GroupCommitter
from ottla.spark.progress.measures import Offsets
from ottla.testing import Broker

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)


def test_failures_are_logged_once_and_tried_again(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(listener, "PAUSE_S_MIN", 0.01)
    tried: list[Offsets] = []

    def commit(offsets: Offsets) -> None:
        tried.append(offsets)
        if len(tried) < 4:
            raise OSError("the broker is away")

    committer = GroupCommitter("g", {}, commit)
    committer.offer("q", {FIRST: 5})
    assert committer.close(30)
    assert tried == [{FIRST: 5}] * 4
    assert committer.failures == 3
    lines = [each.getMessage() for each in caplog.records]
    assert lines == ["offsets were not committed to group g, next try in 0.0 s: the broker is away"]


def test_newer_offsets_replace_those_that_wait_and_only_changes_are_sent() -> None:
    tried: list[Offsets] = []
    may_go = threading.Event()

    def commit(offsets: Offsets) -> None:
        may_go.wait(30)
        tried.append(offsets)

    committer = GroupCommitter("g", {}, commit)
    committer.offer("q", {FIRST: 1, SECOND: 1})
    for offset in (2, 3):
        committer.offer("q", {FIRST: offset, SECOND: 1})
    may_go.set()
    assert committer.flush(30)
    committer.offer("other", {FIRST: 2})
    assert committer.close(30)
    assert tried[-2][FIRST] == 3
    assert tried[-1] == {FIRST: 2}, "of two queries, the one that is behind counts"


def test_offsets_that_do_not_change_are_committed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers forget the offsets of a group without members: a partition without records vanished from it after a week."""
    monkeypatch.setattr(listener, "RENEW_S", 0.05, raising=False)
    came_again = threading.Event()
    silent: list[Offsets] = []

    def commit(offsets: Offsets) -> None:
        if SECOND in offsets:
            silent.append(offsets)
        if len(silent) >= 3:
            came_again.set()
        if not came_again.is_set():  # the other partition never stops
            committer.offer("q", {FIRST: offsets.get(FIRST, 0) + 1, SECOND: 1})

    committer = GroupCommitter("g", {}, commit)
    committer.offer("q", {FIRST: 1, SECOND: 1})
    assert came_again.wait(30)
    assert committer.close(30)


def test_a_query_that_has_ended_does_not_hold_back_others() -> None:
    tried: list[Offsets] = []
    committer = GroupCommitter("g", {}, tried.append)
    committer.offer("old", {FIRST: 5})
    committer.end("old")
    assert committer.flush(30)
    committer.offer("new", {FIRST: 9})
    assert committer.close(30)
    assert tried == [{FIRST: 5}, {FIRST: 9}]


def test_a_close_without_success_says_so(caplog: pytest.LogCaptureFixture) -> None:
    def commit(offsets: Offsets) -> None:
        raise OSError("the broker is away")

    committer = GroupCommitter("g", {}, commit)
    committer.offer("q", {FIRST: 1})
    assert not committer.close(0.2)
    assert caplog.records[-1].getMessage() == "the offsets of group g are behind the query's: the broker is away"


def test_offsets_reach_the_broker(shared_broker: Broker, topic: str) -> None:
    committer = GroupCommitter(f"{topic}-group", {"bootstrap.servers": shared_broker.bootstrap_servers})
    committer.offer("q", {TopicPartition(topic, 0): 0, TopicPartition(topic, 2): 7})
    assert committer.close(60)
    with Admin(shared_broker.bootstrap_servers) as admin:
        found = admin.list_consumer_group_offsets([f"{topic}-group"])[f"{topic}-group"]
    assert {each: offset and offset.offset for each, offset in found.items()} == {(topic, 0): 0, (topic, 2): 7}
