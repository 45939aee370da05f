"""The machines of a simulated cluster, which change when one is replaced."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.sim.cluster.machine import ClusterMachine


class Machines(list["ClusterMachine"]):
    """A machine's place in this list stays when it is replaced; node ids are never used twice. All parts of a run share it."""

    def __init__(self, machines: Iterable[ClusterMachine]) -> None:
        super().__init__(machines)
        self.lost: list[ClusterMachine] = []
        """Those that are gone for good, also while none has taken their place yet."""

    def by_id(self, node_id: int) -> ClusterMachine | None:
        """The machine of a node; None if it was replaced."""
        return next((each for each in self if each.number == node_id), None)

    def lose(self, machine: ClusterMachine) -> None:
        """Lose a machine. It stays in its place, and down, until it is replaced."""
        machine.lose()
        self.lost.append(machine)

    def replace(self, lost: ClusterMachine, auto_join: bool) -> ClusterMachine:
        """Put a new machine, not started, in the place of a lost one."""
        node_id = 1 + max(each.number for each in (*self, *self.lost))
        machine = self[self.index(lost)] = lost.replacement(node_id, auto_join)
        return machine
