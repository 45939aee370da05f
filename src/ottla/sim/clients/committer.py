"""A client that commits and fetches offsets of a group without being a member, like a consumer in assign mode or a tool."""

from __future__ import annotations

from ottla.errors.codes import ErrorCode
from ottla.sim.checkers.checker import Place
from ottla.sim.clients.client import Stage
from ottla.sim.clients.group_client import GroupClient


class Committer(GroupClient):
    """Commits and fetches at random until the run is ending."""

    def __init__(self, stage: Stage, name: str, group: str, places: list[Place]) -> None:
        super().__init__(stage, name, group)
        self._places = places
        self.committed = 0

    async def run(self) -> None:
        await self.step_by_step()

    async def step(self) -> None:
        places = self.random.sample(self._places, self.random.randint(1, len(self._places)))
        if self.random.random() < 0.3:
            await self.fetch_offsets(places)
            return
        codes = await self.commit("simple", places)
        for code in codes.values():
            self.committed += code == ErrorCode.NONE
            if code != ErrorCode.NONE:
                self.explain("OffsetCommit", code)
