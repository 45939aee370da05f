"""Changes of the voters: `voter change`, a controller is removed from the voters and added again, as an operator would do it.

Only with voters in the metadata log. The requests go through any broker (RemoveRaftVoter, AddRaftVoter), and are repeated until
the change is certainly made. Between them the node is an observer; the others need both of their votes if there are three.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.errors.codes import ErrorCode
from ottla.raft.voters import ReplicaKey
from ottla.sim.cluster.disks import soon
from ottla.sim.machine import CONTROLLER_PORT

if TYPE_CHECKING:
    from ottla.client.admin.aio import Admin
    from ottla.sim.cluster.machine import ClusterMachine
    from ottla.sim.cluster.operator import Operator

WAIT_S_MAX = 6.0
"""How long it may take until all controllers are voters."""
LISTENER = "CONTROLLER"


class VoterTroubles:
    """Carries them out on `machines`. `quorum_turn` is held while a controller is not a voter."""

    def __init__(self, machines: Sequence[ClusterMachine], operator: Operator, quorum_turn: asyncio.Lock) -> None:
        self._machines, self._operator, self._quorum_turn = machines, operator, quorum_turn

    async def change(self, machine: ClusterMachine, length_s: float) -> None:
        async with self._quorum_turn:
            if not machine.is_controller or not await soon(lambda: self._all_vote(machine), WAIT_S_MAX):
                self._operator.stage.trace.note(machine.name, "spared", "voter change: not all controllers are voters")
                return
            key, admin = machine.quorum.local, self._operator.admin()
            await remove_voter(self._operator, admin, machine, key)
            await asyncio.sleep(length_s)
            await add_voter(self._operator, admin, machine, key)
            await admin.close()

    def _all_vote(self, machine: ClusterMachine) -> bool:
        return not machine.is_lost and all(each.is_up and not each.is_out_of_voters for each in self._machines)


async def remove_voter(operator: Operator, admin: Admin, machine: ClusterMachine, key: ReplicaKey) -> None:
    """Remove the key of a controller, which may be lost, from the voters."""
    await operator.make(
        f"removes {machine.name}",
        lambda: admin.remove_raft_voter(key.id, key.directory_id),
        ErrorCode.VOTER_NOT_FOUND,
    )
    operator.stage.trace.note(machine.name, "voters", "removed")


async def add_voter(operator: Operator, admin: Admin, machine: ClusterMachine, key: ReplicaKey) -> None:
    """Add the key of a controller to the voters."""
    endpoint = (LISTENER, machine.name, CONTROLLER_PORT)
    await operator.make(
        f"adds {machine.name}",
        lambda: admin.add_raft_voter(key.id, key.directory_id, [endpoint]),
        ErrorCode.DUPLICATE_VOTER,
    )
    operator.stage.trace.note(machine.name, "voters", "added")
