"""A consumer that assigns itself, or a tool: commits offsets for a group without being a member of it, and reads them back."""

from __future__ import annotations

from ottla.errors.codes import ErrorCode
from ottla.sim.checkers.checker import Place
from ottla.sim.clients.client import BACKOFF_S_MAX, LinkError, Stage
from ottla.sim.clients.group_client import GROUP, GroupClient

PAUSE_S_MAX = 0.1


class Committer(GroupClient):
    """Commits and asks, in turns that chance takes, until the run is ending."""

    def __init__(self, stage: Stage, name: str, group: str, places: list[Place]) -> None:
        super().__init__(stage, name, group)
        self._places = places
        self.committed = 0

    async def run(self) -> None:
        is_found = False
        while not self.stage.is_ending:
            try:
                if not is_found:
                    await self.find_coordinator(GROUP, self.group)
                    is_found = True
                await self._step()
            except LinkError as error:
                self.note("cut off", type(error).__name__)
                await self.pause(BACKOFF_S_MAX)
            await self.pause(PAUSE_S_MAX)

    async def _step(self) -> None:
        places = self.random.sample(self._places, self.random.randint(1, len(self._places)))
        if self.random.random() < 0.3:
            await self.fetch_offsets(places)
            return
        codes = await self.commit("simple", places)
        for code in codes.values():
            self.committed += code == ErrorCode.NONE
            if code != ErrorCode.NONE:
                self.explain("OffsetCommit", code)
