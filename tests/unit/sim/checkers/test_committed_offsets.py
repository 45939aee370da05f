"""An acknowledged offset commit is found by every later OffsetFetch, until a later commit replaces it."""

import pytest

from ottla.ids import Uuid
from ottla.sim.checkers.checker import Commit, Deletion, Place, TopicPlan, Violation
from ottla.sim.checkers.groups import CommittedOffsets

AT = Place(TopicPlan("t", Uuid(bytes(16)), 1), 0)


def commit(offset: int, sent_s: float) -> Commit:
    return Commit("g", "simple", "a", None, 1, {AT: offset}, sent_s)


def acknowledge(checker: CommittedOffsets, made: Commit, answered_s: float) -> None:
    checker.commit_sent(made)
    checker.commit_acknowledged(made, [AT], answered_s)


def test_a_committed_offset_is_there() -> None:
    checker = CommittedOffsets(is_flushed=True)
    checker.offsets_answered("g", {AT: -1}, 0.0, 0.1)
    acknowledge(checker, commit(5, 1.0), 1.1)
    checker.offsets_answered("g", {AT: -1}, 1.05, 1.2)
    checker.offsets_answered("g", {AT: 5}, 2.0, 2.1)
    with pytest.raises(Violation, match="has no offset for t-0, though 5 was committed"):
        checker.offsets_answered("g", {AT: -1}, 2.0, 2.1)


def test_committed_offsets_do_not_go_back() -> None:
    checker = CommittedOffsets(is_flushed=True)
    acknowledge(checker, commit(5, 1.0), 1.1)
    acknowledge(checker, commit(6, 1.05), 1.2)
    checker.offsets_answered("g", {AT: 5}, 2.0, 2.1)  # it may have come second
    acknowledge(checker, commit(7, 3.0), 3.1)
    with pytest.raises(Violation, match="went back to 5 for t-0: 7 was committed after it"):
        checker.offsets_answered("g", {AT: 5}, 4.0, 4.1)


def test_commit_that_is_sent_again_may_come_last() -> None:
    """Its first request was not answered, but had an effect that another client saw."""
    checker = CommittedOffsets(is_flushed=True)
    checker.commit_sent(commit(5, 1.0))
    checker.offsets_answered("g", {AT: 5}, 1.1, 1.2)
    acknowledge(checker, commit(6, 2.0), 2.1)
    acknowledge(checker, commit(5, 3.0), 3.1)
    checker.offsets_answered("g", {AT: 5}, 4.0, 4.1)
    with pytest.raises(Violation, match="went back to 6 for t-0: 5 was committed after it"):
        checker.offsets_answered("g", {AT: 6}, 5.0, 5.1)


def test_commit_that_is_refused_when_sent_again_may_have_been_made() -> None:
    """Its first request was not answered, and took effect; the second came from a member that was gone."""
    checker = CommittedOffsets(is_flushed=True)
    checker.commit_sent(commit(5, 1.0))
    checker.commit_sent(again := commit(5, 2.0))
    checker.commit_refused(again, [AT])
    checker.offsets_answered("g", {AT: 5}, 3.0, 3.1)
    checker.commit_sent(refused := commit(6, 4.0))
    checker.commit_refused(refused, [AT])
    with pytest.raises(Violation, match="has 6 for t-0, which was never committed, or was refused"):
        checker.offsets_answered("g", {AT: 6}, 5.0, 5.1)


def test_what_was_seen_does_not_go_back_either() -> None:
    checker = CommittedOffsets(is_flushed=True)
    acknowledge(checker, commit(5, 1.0), 1.1)
    checker.commit_sent(commit(6, 2.0))  # never answered
    checker.offsets_answered("g", {AT: 5}, 3.0, 3.1)
    checker.offsets_answered("g", {AT: 6}, 4.0, 4.1)
    with pytest.raises(Violation, match="went back to 5"):
        checker.offsets_answered("g", {AT: 5}, 5.0, 5.1)


def test_what_was_deleted_is_gone() -> None:
    checker = CommittedOffsets(is_flushed=True)
    acknowledge(checker, commit(5, 1.0), 1.1)
    deletion = Deletion("g", AT, 2.0)
    checker.deletion_sent(deletion)
    checker.offsets_answered("g", {AT: 5}, 2.0, 2.1)
    checker.offsets_answered("g", {AT: -1}, 2.1, 2.2)
    with pytest.raises(Violation, match="went back to 5 for t-0: it was deleted"):
        checker.offsets_answered("g", {AT: 5}, 3.0, 3.1)
    checker.deletion_acknowledged(deletion, 3.0)
    acknowledge(checker, commit(6, 4.0), 4.1)
    checker.offsets_answered("g", {AT: 6}, 5.0, 5.1)
    with pytest.raises(Violation, match="has no offset for t-0"):
        checker.offsets_answered("g", {AT: -1}, 5.0, 5.1)


def test_refused_and_unrelated_deletions_explain_no_missing_offset() -> None:
    checker = CommittedOffsets(is_flushed=True)
    acknowledge(checker, commit(5, 1.0), 1.1)
    checker.deletion_sent(refused := Deletion("g", None, 2.0))
    checker.deletion_refused(refused)
    checker.deletion_sent(Deletion("h", None, 2.0))
    with pytest.raises(Violation, match="has no offset for t-0"):
        checker.offsets_answered("g", {AT: -1}, 3.0, 3.1)
    checker.deletion_sent(Deletion("g", None, 4.0))
    checker.offsets_answered("g", {AT: -1}, 5.0, 5.1)


def test_offsets_expire_by_the_wall_clock() -> None:
    checker = CommittedOffsets(is_flushed=True, retention_s=60.0)
    acknowledge(checker, commit(5, 1.0), 1.1)
    checker.clock_set(-1500.0, 2.0)
    with pytest.raises(Violation, match="has no offset for t-0"):
        checker.offsets_answered("g", {AT: -1}, 3.0, 3.1)
    checker.clock_set(0.0, 4.0)
    checker.offsets_answered("g", {AT: -1}, 5.0, 5.1)
    with pytest.raises(Violation, match="went back to 5 for t-0"):
        checker.offsets_answered("g", {AT: 5}, 6.0, 6.1)
    acknowledge(checker, commit(6, 7.0), 7.1)
    with pytest.raises(Violation, match="has no offset for t-0"):
        checker.offsets_answered("g", {AT: -1}, 8.0, 8.1)
    checker.offsets_answered("g", {AT: -1}, 67.0, 67.1)


def test_a_deletion_cannot_take_effect_after_a_power_loss() -> None:
    checker = CommittedOffsets(is_flushed=False)
    acknowledge(checker, commit(5, 1.0), 1.1)
    checker.deletion_sent(deletion := Deletion("g", None, 2.0))
    checker.deletion_acknowledged(deletion, 2.1)
    checker.power_lost()
    checker.offsets_answered("g", {AT: 5}, 3.0, 3.1)
    with pytest.raises(Violation, match="has no offset for t-0"):
        checker.offsets_answered("g", {AT: -1}, 4.0, 4.1)


def test_an_offset_that_was_never_committed_is_a_violation() -> None:
    checker = CommittedOffsets(is_flushed=True)
    refused = commit(5, 1.0)
    checker.commit_sent(refused)
    checker.commit_refused(refused, [AT])
    for offset in (5, 6):
        with pytest.raises(Violation, match="which was never committed, or was refused"):
            checker.offsets_answered("g", {AT: offset}, 2.0, 2.1)


@pytest.mark.parametrize("is_flushed", [True, False])
def test_a_power_loss_loses_only_unflushed_offsets(is_flushed: bool) -> None:
    checker = CommittedOffsets(is_flushed)
    acknowledge(checker, commit(5, 1.0), 1.1)
    acknowledge(checker, commit(6, 2.0), 2.1)
    checker.power_lost()
    if is_flushed:
        with pytest.raises(Violation, match="went back to 5"):
            checker.offsets_answered("g", {AT: 5}, 3.0, 3.1)
    else:
        checker.offsets_answered("g", {AT: 5}, 3.0, 3.1)
        with pytest.raises(Violation, match="has no offset"):
            checker.offsets_answered("g", {AT: -1}, 4.0, 4.1)


@pytest.mark.parametrize(
    ("stale", "message"), [(-1, "has no offset for t-0, though 5 was"), (5, "went back to 5 for t-0: 7 was")]
)
def test_only_a_deposed_coordinator_may_answer_from_an_old_state(stale: int, message: str) -> None:
    checker = CommittedOffsets(is_flushed=True)
    acknowledge(checker, commit(5, 1.0), 1.1)
    acknowledge(checker, commit(7, 2.0), 2.1)
    checker.offsets_answered("g", {AT: stale}, 3.0, 3.1, True)
    assert (checker.excused, checker.judged) == (1, 0)
    with pytest.raises(Violation, match=message):
        checker.offsets_answered("g", {AT: stale}, 3.0, 3.1, False)


def test_nothing_is_learnt_from_a_deposed_coordinator() -> None:
    checker = CommittedOffsets(is_flushed=True)
    acknowledge(checker, commit(5, 1.0), 1.1)
    checker.commit_sent(commit(6, 2.0))  # never answered
    checker.offsets_answered("g", {AT: 6}, 3.0, 3.1, True)
    checker.offsets_answered("g", {AT: 5}, 4.0, 4.1)
    checker.offsets_answered("g", {AT: 6}, 5.0, 5.1)
    with pytest.raises(Violation, match="went back to 5"):
        checker.offsets_answered("g", {AT: 5}, 6.0, 6.1)
    assert checker.excused == 1
