"""Bad histories of consumers and of groups, one for each check; and good ones that come close."""

from typing import Any

from ottla.ids import TopicPartition

PLACE = TopicPartition("t", 0)


def three_stored(story: Any) -> None:
    for number in range(3):
        story.stored(f"v{number}", number)
    story.read((0, "v0"), (1, "v1"), (2, "v2"), by="other")


def test_a_poll_skips_a_record(story: Any) -> None:
    three_stored(story)
    story.read((0, "v0"))
    story.read((2, "v2"))
    assert story.found() == ["poll skips"]


def test_a_skip_within_one_poll_is_found(story: Any) -> None:
    three_stored(story)
    story.read((0, "v0"), (2, "v2"))
    assert story.found() == ["poll skips"]


def test_offsets_without_a_record_are_not_skipped(story: Any) -> None:
    story.stored("a", 0)
    story.stored("b", 2)
    story.read((0, "a"), (2, "b"))
    assert story.found() == []


def test_a_poll_goes_back(story: Any) -> None:
    three_stored(story)
    story.read((0, "v0"), (1, "v1"))
    story.read((1, "v1"), (2, "v2"))
    assert story.found() == ["poll goes back"]


def test_a_consumer_may_begin_again_after_an_assignment(story: Any) -> None:
    three_stored(story)
    story.history.assigned("c", [PLACE])
    story.read((0, "v0"), (1, "v1"))
    story.history.assigned("c", [PLACE])
    story.read((1, "v1"), (2, "v2"))
    assert story.found() == []


def test_a_group_skips_a_record_when_a_partition_moves(story: Any) -> None:
    three_stored(story)
    story.history.assigned("a", [PLACE], "g")
    story.read((0, "v0"), by="a", group="g")
    story.history.assigned("b", [PLACE], "g")
    story.read((2, "v2"), by="b", group="g")
    assert story.found() == ["poll skips"]


def test_a_group_goes_back_behind_what_it_committed(story: Any) -> None:
    three_stored(story)
    story.history.assigned("a", [PLACE], "g")
    story.read((0, "v0"), (1, "v1"), by="a", group="g")
    story.history.commits("g", {PLACE: 2}).acknowledged()
    story.history.assigned("b", [PLACE], "g")
    story.read((1, "v1"), (2, "v2"), by="b", group="g")
    assert story.found() == ["poll goes back"]


def test_a_group_may_get_again_what_it_did_not_commit(story: Any) -> None:
    three_stored(story)
    story.history.assigned("a", [PLACE], "g")
    story.read((0, "v0"), (1, "v1"), by="a", group="g")
    story.history.commits("g", {PLACE: 2})  # without an answer
    story.history.assigned("b", [PLACE], "g")
    story.read((1, "v1"), (2, "v2"), by="b", group="g")
    assert story.found() == []


def test_a_committed_offset_is_gone(story: Any) -> None:
    story.history.commits("g", {PLACE: 2}).acknowledged()
    asked_s = story.history.now_s()
    story.history.offsets_found("g", {PLACE: -1}, asked_s)
    assert story.found() == ["committed offset goes back"]


def test_a_committed_offset_that_was_answered_goes_back(story: Any) -> None:
    story.history.offsets_found("g", {PLACE: 5}, story.history.now_s())
    story.history.offsets_found("g", {PLACE: 4}, story.history.now_s())
    assert story.found() == ["committed offset goes back"]


def test_an_answer_may_miss_a_commit_that_came_while_it_was_asked_for(story: Any) -> None:
    asked_s = story.history.now_s()
    story.history.commits("g", {PLACE: 2}).acknowledged()
    story.history.offsets_found("g", {PLACE: 0}, asked_s)
    assert story.found() == []


def test_an_assignment_of_other_partitions_changes_nothing(story: Any) -> None:
    three_stored(story)
    story.read((0, "v0"), (1, "v1"))
    story.history.assigned("c", [TopicPartition("t", 1)])
    story.read((1, "v1"), (2, "v2"))
    assert story.found() == ["poll goes back"]


def test_a_member_that_seeks_may_go_back(story: Any) -> None:
    story.history.assigned("a", [PLACE], "g")
    story.stored("x", 0)
    story.read((0, "x"), by="a", group="g")
    story.history.commits("g", {PLACE: 1}).acknowledged()
    story.history.assigned("a", [PLACE])
    story.read((0, "x"), by="a", group="g")
    assert story.found() == []
