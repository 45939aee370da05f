"""Cycles between transactions: which are found, and which Kafka allows."""

from typing import Any

from ottla.ids import TopicPartition
from ottla.sim.histories.checks import Facts, cycles

OTHER = TopicPartition("t", 1)


def test_two_transactions_that_read_each_other_are_a_finding(story: Any) -> None:
    one, two = story.history.transaction("p", "one"), story.history.transaction("q", "two")
    story.stored("a", 0, one)
    story.stored("b", 0, two, by="q", at=OTHER)
    one.asks("commit")
    two.asks("commit")
    story.read((0, "a"), by="q", transaction=two, is_committed=True)
    story.read((0, "b"), by="p", transaction=one, at=OTHER, is_committed=True)
    one.ended()
    two.ended()
    assert story.found() == ["wr cycle"]
    (cycle,) = cycles(Facts(story.history), ["wr"])
    assert sorted(cycle.transactions) == ["one", "two"]
    assert cycle.kinds == ("wr", "wr")


def test_writes_that_interleave_are_allowed(story: Any) -> None:
    one, two = story.history.transaction("p", "one"), story.history.transaction("q", "two")
    story.stored("a0", 0, one)
    story.stored("b0", 1, two, by="q")
    story.stored("b1", 0, two, by="q", at=OTHER)
    story.stored("a1", 1, one, at=OTHER)
    story.commit(one)
    story.commit(two)
    story.read((0, "a0"), (1, "b0"), is_committed=True)
    story.read((0, "b1"), (1, "a1"), at=OTHER, is_committed=True)
    assert story.found() == []
    (cycle,) = cycles(Facts(story.history))
    assert set(cycle.kinds) == {"ww"}


def test_a_read_that_ends_before_a_record_depends_on_its_writer(story: Any) -> None:
    """`two` reads up to `a`; `three` writes the next record, and `two` reads another record of it."""
    one, two, three = (story.history.transaction("p", name) for name in ("one", "two", "three"))
    story.stored("a", 0, one)
    story.commit(one)
    story.stored("c0", 1, three)
    story.stored("c1", 0, three, at=OTHER)
    story.commit(three)
    story.read((0, "a"), transaction=two, is_committed=True)
    story.read((0, "c1"), at=OTHER, transaction=two, is_committed=True)
    (cycle,) = cycles(Facts(story.history))
    assert sorted(zip(cycle.transactions, cycle.kinds, strict=True)) == [("three", "wr"), ("two", "rw")]


def test_a_chain_of_thousands_of_transactions_has_no_cycle(story: Any) -> None:
    for number in range(3000):
        each = story.history.transaction("p", f"{number}")
        story.stored(f"v{number}", number, each)
        story.commit(each)
    assert cycles(Facts(story.history)) == []
