"""The operator of a simulated cluster: changes it with the requests of an Admin, each repeated until it is certainly made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ottla.client.admin.aio import Admin
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode, error_name
from ottla.sim.checkers.checker import Violation
from ottla.sim.clients.client import BACKOFF_S_MAX, Client, Stage
from ottla.sim.clients.settings import CLIENT_SETTINGS

CHANGE_S_MAX = 60.0
"""How long a change may be refused: nodes may be down, and an added one must have caught up."""


class Operator(Client):
    """One for all troubles that need an operator."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage, "operator")

    def admin(self) -> Admin:
        """An Admin, to be closed."""
        return Admin(
            self.stage.bootstrap_servers,
            world=self.world(),
            client_id=self.name,
            default_api_timeout_ms=4_000,
            **CLIENT_SETTINGS,
        )

    async def make(self, what: str, call: Callable[[], Awaitable[None]], done_already: ErrorCode) -> None:
        """Repeat a request until its change is made."""
        until_s = self.stage.now_s() + CHANGE_S_MAX
        while True:
            try:
                await call()
                return
            except KafkaError as error:
                self.note("refused", f"{what} {error_name(error.code)}")
                if error.code == done_already:
                    return
                if self.stage.now_s() >= until_s:
                    raise Violation(f"{self.name} {what}: refused for {CHANGE_S_MAX:g} s, at last with {error}") from error
            await self.pause(BACKOFF_S_MAX)
