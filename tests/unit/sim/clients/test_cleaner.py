"""What a cleaner tells the checkers of its deletions."""

from random import Random

import pytest

from ottla.errors.codes import ErrorCode
from ottla.sim.checkers.checker import Checker, Checkers, Deletion, Place
from ottla.sim.clients.client import Stage
from ottla.sim.clients.group_client import Cleaner
from ottla.sim.loop import VirtualLoop
from ottla.sim.net import SimNetwork
from ottla.sim.trace import Trace


class Told(Checker):
    """Collects the outcomes of deletions."""

    def __init__(self) -> None:
        self.outcomes: list[str] = []

    def deletion_acknowledged(self, deletion: Deletion, answered_s: float) -> None:
        self.outcomes.append("deleted")

    def deletion_refused(self, deletion: Deletion) -> None:
        self.outcomes.append("refused")

    def offsets_answered(
        self, group: str, found: dict[Place, int], requested_s: float, answered_s: float, is_deposed: bool = False
    ) -> None:
        self.outcomes.append("deposed" if is_deposed else "unknown")


@pytest.mark.parametrize(
    ("code", "outcomes"),
    [
        (ErrorCode.NONE, ["deleted"]),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ["refused"]),
        (ErrorCode.NOT_COORDINATOR, []),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, []),
    ],
)
def test_a_deletion_that_the_next_coordinator_may_have_is_not_refused(code: ErrorCode, outcomes: list[str]) -> None:
    told, loop = Told(), VirtualLoop(60)

    async def run() -> None:
        stage = Stage(1, SimNetwork(Random(1)), Trace(loop), Checkers([told]), ("n1", "n2", "n3"))
        cleaner = Cleaner(stage, "g", list, has_members=False)
        cleaner._settle(Deletion("g", None, 0.0), code, 1)

    loop.run(run())
    assert told.outcomes == outcomes


def test_a_deposed_coordinator_may_not_know_a_group() -> None:
    told, loop = Told(), VirtualLoop(60)

    async def run() -> None:
        stage = Stage(1, SimNetwork(Random(1)), Trace(loop), Checkers([told]), ("n1", "n2", "n3"))
        stage.is_coordinator = lambda group, node, since_s: node == 1
        cleaner = Cleaner(stage, "g", list, has_members=False)
        for node in (1, 2):
            cleaner._settle(Deletion("g", None, 0.0), ErrorCode.GROUP_ID_NOT_FOUND, node)

    loop.run(run())
    assert told.outcomes == ["refused", "unknown", "refused", "deposed"]
