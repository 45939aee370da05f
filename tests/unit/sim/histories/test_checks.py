"""Bad histories of producers, consumers, groups and transactions, one for each check; and good ones that come close."""

from typing import Any

import pytest

from ottla.ids import TopicPartition
from ottla.sim.histories.checks import Facts, check, cycles

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


def test_a_report_counts_what_was_checked(story: Any) -> None:
    one = story.history.transaction("p", "one")
    story.stored("a", 0, one)
    story.commit(one)
    story.read((0, "a"))
    report = check(story.history, is_read_whole=True)
    assert (report.sends, report.stored, report.seen, report.transactions) == (1, 1, 1, 1)
    assert report.lag_s_max == 3.0
    report.raise_findings()


def test_findings_are_raised_and_the_first_ones_shown(story: Any) -> None:
    for number in range(25):
        story.stored(f"v{number}", number)
    story.read((24, "v24"))
    report = check(story.history, is_read_whole=True)
    with pytest.raises(AssertionError, match="lost write: p was told that 'v0' is at t-0 offset 0") as raised:
        report.raise_findings()
    assert "and 4 more findings" in str(raised.value)
