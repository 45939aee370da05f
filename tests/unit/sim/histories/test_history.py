"""Histories as lines of JSON."""

from typing import Any

from ottla.ids import TopicPartition
from ottla.sim.histories.history import History

PLACE = TopicPartition("t", 0)


def test_a_history_survives_its_lines(story: Any) -> None:
    one = story.history.transaction("p", "one")
    story.stored("a", 0, one)
    story.history.send("p", PLACE, "refused").failed()
    story.commit(one)
    story.history.assigned("c", [PLACE], "g")
    story.read((0, "a"), group="g", is_committed=True, transaction=one)
    story.history.commits("g", {PLACE: 1}).acknowledged()
    story.history.offsets_found("g", {PLACE: 1}, story.history.now_s())
    lines = story.history.to_lines()
    again = History.from_lines(lines)
    assert again.to_lines() == lines
    assert len({type(event) for event in again.events}) == 6
