"""An epoch of the metadata quorum has one leader, and every node votes for one candidate in it."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.sim.checkers.checker import Violation
from ottla.sim.cluster.checkers.checker import ClusterChecker, Logged


class OneLeader(ClusterChecker):
    """Remembers leaders and votes."""

    def __init__(self) -> None:
        self.leaders: dict[int, str] = {}
        self._votes: dict[tuple[str, int], int] = {}

    def voted(self, node: str, epoch: int, candidate_id: int) -> None:
        known = self._votes.setdefault((node, epoch), candidate_id)
        if known != candidate_id:
            raise Violation(f"{node} has voted for {known} and for {candidate_id} in epoch {epoch}")

    def led(self, node: str, epoch: int, log: Sequence[Logged]) -> None:
        known = self.leaders.setdefault(epoch, node)
        if known != node:
            raise Violation(f"epoch {epoch} has two leaders: {known} and {node}")
