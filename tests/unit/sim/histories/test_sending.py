"""Bad histories of producers, one for each check; and good ones that come close."""

from typing import Any

from ottla.ids import TopicPartition

OTHER = TopicPartition("t", 1)


def test_a_good_history_has_no_findings(story: Any) -> None:
    for number in range(3):
        story.stored(f"v{number}", number)
    story.read((0, "v0"), (1, "v1"))
    story.read((2, "v2"))
    story.read((0, "v0"), (1, "v1"), (2, "v2"), by="d")
    assert story.found() == []


def test_two_consumers_get_different_records_at_one_offset(story: Any) -> None:
    story.stored("a", 0)
    story.stored("b", 1)
    story.read((0, "a"), (1, "b"))
    story.read((0, "b"), by="d")
    assert "inconsistent offset" in story.found()


def test_a_record_is_not_where_its_producer_was_told(story: Any) -> None:
    story.stored("a", 0)
    story.read((1, "a"))
    assert story.found() == ["duplicate"]


def test_a_record_is_stored_twice(story: Any) -> None:
    story.stored("a", 0)
    story.read((0, "a"), (1, "a"))
    assert story.found() == ["duplicate"]


def test_a_producer_without_idempotence_may_store_a_record_twice(story: Any) -> None:
    story.stored("a", 0, is_repeatable=True)
    story.read((0, "a"), (1, "a"))
    assert story.found() == []


def test_a_record_was_never_sent(story: Any) -> None:
    story.stored("a", 0)
    story.read((0, "a"), (1, "x"))
    assert story.found() == ["invented record"]


def test_a_record_comes_out_of_another_partition(story: Any) -> None:
    story.stored("a", 0)
    story.stored("b", 0, at=OTHER)
    story.read((0, "a"), (1, "b"))
    story.read((0, "b"), at=OTHER)
    assert sorted(story.found()) == ["duplicate", "invented record"]


def test_consumers_have_read_past_a_stored_record(story: Any) -> None:
    story.stored("a", 0)
    story.stored("b", 1)
    story.read((1, "b"))
    assert story.found() == ["lost write"]


def test_a_record_that_is_not_stored_for_certain_may_be_missing(story: Any) -> None:
    story.history.send("p", TopicPartition("t", 0), "unknown")
    story.stored("b", 1)
    story.read((1, "b"))
    assert story.found() == []


def test_a_stored_record_is_unseen_at_the_end(story: Any) -> None:
    story.stored("a", 0)
    story.stored("b", 1)
    story.read((0, "a"))
    assert story.found() == ["unseen record"]
    assert story.found(is_read_whole=False) == []


def test_record_stored_at_an_unknown_offset_must_be_seen(story: Any) -> None:
    story.history.send("p", TopicPartition("t", 0), "a").stored(None)
    story.stored("b", 1)
    story.read((0, "a"), (1, "b"))
    assert story.found() == []
    story.history.send("p", TopicPartition("t", 0), "c").stored(None)
    assert story.found() == ["unseen record"]


def test_two_sends_are_stored_in_the_wrong_order(story: Any) -> None:
    story.stored("a", 1)
    story.stored("b", 0)
    story.read((0, "b"), (1, "a"))
    assert story.found() == ["sends out of order"]


def test_order_counts_what_consumers_found_if_the_producer_does_not_know(story: Any) -> None:
    story.history.send("p", TopicPartition("t", 0), "a")
    story.stored("b", 0)
    story.read((0, "b"), (1, "a"))
    assert story.found() == ["sends out of order"]
