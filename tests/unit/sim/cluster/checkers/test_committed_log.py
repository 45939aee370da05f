"""Committed batches stay as they are, on every node."""

import pytest
from tests.support.nodes.metadata_batches import logged

from ottla.sim.checkers.checker import Violation
from ottla.sim.cluster.checkers.checker import Answer
from ottla.sim.cluster.checkers.quorum import CommittedLog
from ottla.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse

FIRST, SECOND = logged(0, 1), logged(1, 1)


def begun() -> CommittedLog:
    checker = CommittedLog()
    checker.committed("n1", 1, True, 2, [FIRST, SECOND])
    return checker


def test_nodes_that_commit_the_same_agree() -> None:
    checker = begun()
    checker.committed("n2", 1, False, 1, [FIRST])
    checker.committed("n2", 2, False, 3, [SECOND, logged(2, 2)])
    checker.led("n3", 3, [FIRST, SECOND, logged(2, 2), logged(3, 3)])
    assert checker.end_offset == 3


def test_another_batch_at_a_committed_offset_is_found() -> None:
    with pytest.raises(Violation, match=r"n2 commits batch 1-1 of epoch 2 .*, and committed there was batch 1-1 of epoch 1"):
        begun().committed("n2", 2, False, 2, [FIRST, logged(1, 2)])


def test_a_batch_across_a_committed_one_is_found() -> None:
    checker = CommittedLog()
    checker.committed("n1", 1, True, 2, [logged(0, 1, *[FIRST.decoded().records[0]] * 2)])
    with pytest.raises(Violation, match="no other node has committed a batch that begins there"):
        checker.committed("n2", 1, False, 2, [SECOND])


def test_a_gap_is_found() -> None:
    with pytest.raises(Violation, match="nobody has committed those from 2 on"):
        begun().committed("n2", 1, False, 4, [logged(3, 1)])


def test_a_high_watermark_that_goes_back_is_found() -> None:
    checker = begun()
    with pytest.raises(Violation, match="n1 had committed up to 2, and now up to 1"):
        checker.committed("n1", 1, True, 1, [])
    checker.started("n1")
    checker.committed("n1", 1, False, 1, [])


def test_a_leader_commits_older_batches_only_with_one_of_its_epoch() -> None:
    with pytest.raises(Violation, match="without a batch of its own epoch"):
        begun().committed("n2", 2, True, 3, [logged(2, 1)])


def test_a_leader_without_a_committed_batch_is_found() -> None:
    with pytest.raises(Violation, match=r"n2 leads epoch 2 and has nothing where batch 1-1"):
        begun().led("n2", 2, [FIRST])
    with pytest.raises(Violation, match=r"n2 leads epoch 2 and has 1-1 of epoch 2"):
        begun().led("n2", 2, [FIRST, logged(1, 2)])


def test_a_leader_of_an_epoch_that_was_over_before_the_commit_is_excused() -> None:
    begun().led("n2", 1, [FIRST])


def test_a_leader_whose_log_starts_at_a_snapshot_is_excused_below() -> None:
    begun().led("n2", 2, [SECOND, logged(2, 2)])


def test_a_controller_that_is_active_too_early_is_found() -> None:
    checker = begun()
    checker.activated("n1", 1)
    with pytest.raises(Violation, match="no batch of that epoch is committed"):
        checker.activated("n2", 2)


def test_an_answer_to_an_uncommitted_change_is_found() -> None:
    checker = begun()
    request, response = CreateTopicsRequest(), CreateTopicsResponse()
    checker.answered("n1", Answer(request, response, [SECOND.entry], None))
    with pytest.raises(Violation, match=r"n1 has answered CreateTopics, and batch 2-2 of epoch 1 .* is not committed"):
        checker.answered("n1", Answer(request, response, [logged(2, 1).entry], None))
