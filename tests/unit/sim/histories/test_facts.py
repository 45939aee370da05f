"""What follows from a history."""

from typing import Any

from ottla.ids import TopicPartition
from ottla.sim.histories.checks import Facts

PLACE = TopicPartition("t", 0)


def test_readable_offsets_depend_on_the_isolation_level(story: Any) -> None:
    one, two = story.history.transaction("p", "one"), story.history.transaction("p", "two")
    story.stored("a", 0)
    story.stored("b", 1, one)
    story.stored("c", 2, two)
    story.commit(one)
    facts = Facts(story.history)
    assert facts.readable(PLACE, False, 0, 10) == [0, 1, 2]
    assert facts.readable(PLACE, True, 0, 10) == [0, 1]
    assert facts.readable(PLACE, True, 1, 10) == [1]
    assert facts.readable(TopicPartition("other", 0), True, 0, 10) == []


def test_the_place_of_a_record_is_what_consumers_found_if_its_producer_does_not_know(story: Any) -> None:
    send = story.history.send("p", PLACE, "a")
    story.read((7, "a"))
    facts = Facts(story.history)
    assert facts.offset_of(send) == 7
    assert facts.seen_end == {PLACE: 8}
