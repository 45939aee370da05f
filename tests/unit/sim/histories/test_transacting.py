"""Bad histories of transactions, one for each check; and good ones that come close."""

from typing import Any

from ottla.ids import TopicPartition

PLACE = TopicPartition("t", 0)


def test_a_committed_transaction_is_read_whole(story: Any) -> None:
    one = story.history.transaction("p", "one")
    story.stored("a", 0, one)
    story.stored("b", 1, one)
    story.commit(one)
    story.read((0, "a"), (1, "b"), is_committed=True)
    assert story.found() == []


def test_a_record_of_an_aborted_transaction_is_read(story: Any) -> None:
    one = story.history.transaction("p", "one")
    story.stored("a", 0, one)
    one.asks("abort")
    one.ended()
    story.read((0, "a"), is_committed=True)
    assert story.found() == ["aborted read"]


def test_readers_of_all_records_get_aborted_ones(story: Any) -> None:
    one = story.history.transaction("p", "one")
    story.stored("a", 0, one)
    one.asks("abort")
    story.read((0, "a"))
    assert story.found() == []


def test_a_record_that_was_refused_is_read(story: Any) -> None:
    story.history.send("p", PLACE, "a").failed()
    story.read((0, "a"))
    assert story.found() == ["aborted read"]


def test_a_record_is_read_before_its_commit_is_asked_for(story: Any) -> None:
    one = story.history.transaction("p", "one")
    story.stored("a", 0, one)
    story.read((0, "a"), is_committed=True)
    story.commit(one)
    assert story.found() == ["precommitted read"]


def test_a_record_of_a_transaction_that_nobody_ended_is_read(story: Any) -> None:
    one = story.history.transaction("p", "one")
    story.stored("a", 0, one)
    story.read((0, "a"), is_committed=True)
    assert story.found() == ["precommitted read"]


def test_a_commit_without_an_answer_may_take_effect(story: Any) -> None:
    one = story.history.transaction("p", "one")
    story.stored("a", 0, one)
    one.asks("commit")
    story.read((0, "a"), is_committed=True)
    assert story.found() == []


def test_half_of_a_transaction_is_there(story: Any) -> None:
    one = story.history.transaction("p", "one")
    story.stored("a", 0, one)
    story.stored("b", 1, one)
    one.asks("commit")
    story.read((0, "a"), is_committed=True)
    assert story.found() == ["torn transaction"]


def test_a_committed_transaction_is_not_there(story: Any) -> None:
    one = story.history.transaction("p", "one")
    story.stored("a", 0, one)
    story.commit(one)
    story.stored("b", 2)
    story.read((2, "b"), is_committed=True)
    assert sorted(story.found()) == ["lost write", "torn transaction"]
