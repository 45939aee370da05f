"""Changes of the voters: `voter change`, a controller is removed from the voters and added again, as an operator would do it.

Only with voters in the metadata log. The requests go through any broker (RemoveRaftVoter, AddRaftVoter), and are repeated until
the change is certainly made. Between them the node is an observer; the others need both of their votes if there are three.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from ottla.client.admin.aio import Admin
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode, error_name
from ottla.sim.checkers.checker import Violation
from ottla.sim.clients.client import BACKOFF_S_MAX, Client, Stage
from ottla.sim.clients.settings import CLIENT_SETTINGS
from ottla.sim.cluster.disks import soon
from ottla.sim.machine import CONTROLLER_PORT

if TYPE_CHECKING:
    from ottla.sim.cluster.machine import ClusterMachine

WAIT_S_MAX = 6.0
"""How long it may take until all controllers are voters."""
CHANGE_S_MAX = 60.0
"""How long a change may be refused: nodes may be down, and an added one must have caught up."""
LISTENER = "CONTROLLER"


class VoterTroubles:
    """Carries them out on `machines`. `quorum_turn` is held while a controller is not a voter."""

    def __init__(self, machines: Sequence[ClusterMachine], stage: Stage, quorum_turn: asyncio.Lock) -> None:
        self._machines, self._quorum_turn = machines, quorum_turn
        self._client = Client(stage, "operator")

    async def change(self, machine: ClusterMachine, length_s: float) -> None:
        async with self._quorum_turn:
            if not machine.is_controller or not await soon(self._all_vote, WAIT_S_MAX):
                self._client.stage.trace.note(machine.name, "spared", "voter change: not all controllers are voters")
                return
            key = machine.quorum.local
            admin = Admin(
                self._client.stage.bootstrap_servers,
                world=self._client.world(),
                client_id=self._client.name,
                default_api_timeout_ms=4_000,
                **CLIENT_SETTINGS,
            )
            await self._made(
                f"removes {machine.name}",
                lambda: admin.remove_raft_voter(key.id, key.directory_id),
                ErrorCode.VOTER_NOT_FOUND,
            )
            self._client.stage.trace.note(machine.name, "voters", "removed")
            await asyncio.sleep(length_s)
            endpoint = (LISTENER, machine.name, CONTROLLER_PORT)
            await self._made(
                f"adds {machine.name}",
                lambda: admin.add_raft_voter(key.id, key.directory_id, [endpoint]),
                ErrorCode.DUPLICATE_VOTER,
            )
            self._client.stage.trace.note(machine.name, "voters", "added")
            await admin.close()

    def _all_vote(self) -> bool:
        return all(each.is_up and not each.is_out_of_voters for each in self._machines)

    async def _made(self, what: str, call: Callable[[], Awaitable[None]], done_already: ErrorCode) -> None:
        """Repeat a request until its change is made."""
        until_s = self._client.stage.now_s() + CHANGE_S_MAX
        while True:
            try:
                await call()
                return
            except KafkaError as error:
                self._client.note("refused", f"{what} {error_name(error.code)}")
                if error.code == done_already:
                    return
                if self._client.stage.now_s() >= until_s:
                    raise Violation(
                        f"{self._client.name} {what}: refused for {CHANGE_S_MAX:g} s, at last with {error}"
                    ) from error
            await self._client.pause(BACKOFF_S_MAX)
