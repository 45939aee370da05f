"""What goes to a node that is started for a test, and what comes back. Imports nothing of the broker's."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from ottla.testing.errors import BrokerFailed


class Launch(NamedTuple):
    """What is to be started."""

    settings: dict[str, str]
    is_synced: bool


class Facts(NamedTuple):
    """What a test wants to know of a node that is up."""

    bootstrap_servers: str
    cluster_id: str
    node_id: int


class Host(Protocol):
    """One run of a node, from its start to its end: in a thread or in a child process."""

    @property
    def failure(self) -> BrokerFailed | None:
        """Why the node could not go on."""
        ...

    @property
    def log_lines(self) -> list[str]: ...

    async def start(self, launch: Launch) -> Facts: ...

    async def stop(self) -> None: ...

    async def kill(self) -> None: ...

    async def settle(self) -> None:
        """Something went wrong: give the news that the node has ended, if that is why, a moment to arrive."""
        ...

    async def command(self, name: str, values: dict[str, Any]) -> Any: ...
