"""One leader per epoch, one vote per node and epoch."""

import pytest

from ottla.sim.checkers.checker import Violation
from ottla.sim.cluster.checkers.quorum import OneLeader


def test_two_leaders_of_one_epoch_are_found() -> None:
    checker = OneLeader()
    checker.led("n1", 1, [])
    checker.led("n2", 2, [])
    with pytest.raises(Violation, match="epoch 2 has two leaders: n2 and n3"):
        checker.led("n3", 2, [])


def test_two_votes_in_one_epoch_are_found() -> None:
    checker = OneLeader()
    checker.voted("n1", 1, 2)
    checker.voted("n1", 1, 2)
    checker.voted("n1", 2, 3)
    checker.voted("n2", 1, 3)
    with pytest.raises(Violation, match="n1 has voted for 2 and for 3 in epoch 1"):
        checker.voted("n1", 1, 3)
