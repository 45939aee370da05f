"""A record that a consumer or a whole group has passed over is found."""

import pytest

from ottla.ids import Uuid
from ottla.sim.checkers.checker import Audit, Place, SeenRecord, TopicPlan, Violation
from ottla.sim.checkers.logs import NothingSkipped

PLACE = Place(TopicPlan("t", Uuid(bytes(16)), 1), 0)


def records(*offsets: int) -> list[SeenRecord]:
    return [SeenRecord(offset, b"v%d" % offset) for offset in offsets]


def audit(*offsets: int) -> Audit:
    return Audit(PLACE, 0, 10, records(*offsets))


def test_a_record_that_a_consumer_passed_over_is_missed() -> None:
    checker = NothingSkipped()
    checker.passed_over("c0", PLACE, 3, 5, is_committed=False)
    checker.audited(audit(0, 1, 2, 5))
    with pytest.raises(Violation, match="c0 went on behind offset 4 of t-0"):
        checker.audited(audit(0, 1, 2, 4, 5))


def test_a_record_that_another_replica_has_compacted_away_is_not_missed() -> None:
    place = Place(TopicPlan("t", Uuid(bytes(16)), 1, {"cleanup.policy": "compact"}), 0)
    checker = NothingSkipped()
    checker.passed_over("c0", place, 3, 5, is_committed=False)
    checker.audited(Audit(place, 0, 10, [SeenRecord(3, b"old", b"key"), SeenRecord(5, b"new", b"key")]))
    with pytest.raises(Violation, match="behind offset 4"):
        checker.audited(Audit(place, 0, 10, [SeenRecord(4, b"last", b"other"), SeenRecord(5, b"new", b"key")]))


def test_readers_of_committed_records_are_compared_with_committed_ones() -> None:
    checker = NothingSkipped()
    checker.passed_over("c0", PLACE, 3, 5, is_committed=True)
    checker.audited(audit(3, 4))
    with pytest.raises(Violation, match="behind offset 3"):
        checker.audited_committed(PLACE, records(3))


def test_a_power_loss_frees_the_offsets() -> None:
    checker = NothingSkipped()
    checker.passed_over("c0", PLACE, 3, 5, is_committed=False)
    checker.power_lost()
    checker.audited(audit(3, 4))


def test_a_group_commits_only_what_some_member_got() -> None:
    checker = NothingSkipped()
    checker.audited(audit(0, 1, 2, 3))
    checker.handed_out("g", PLACE, records(0, 1))
    checker.reading_ended("g", {PLACE: 2})
    assert checker.judged == 2
    with pytest.raises(Violation, match="group g has committed 4 for t-0, and no member got the record at 2"):
        checker.reading_ended("g", {PLACE: 4})


def test_a_power_loss_without_flushes_may_keep_offsets_of_lost_records() -> None:
    checker = NothingSkipped(is_flushed=False)
    checker.audited(audit(0, 1))
    checker.power_lost()
    checker.reading_ended("g", {PLACE: 2})
    assert checker.judged == 0
