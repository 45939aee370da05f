"""The interface to a node that runs for a test: how it is started, controlled and ended. Imports nothing of the broker's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from ottla.testing.errors import BrokerFailed


class Launch(NamedTuple):
    """How to start a node."""

    settings: dict[str, str]
    is_synced: bool
    cluster_id: str | None = None
    """The cluster to format new directories for; None: the node is a cluster of its own."""
    node_ports: dict[str, str] | None = None
    """The ports of the other nodes, as text, with their ids; None: the node's connections cannot be cut."""
    client_port: int = 0
    scram: Sequence[str] = ()
    """Users that a new cluster begins with, in the notation of `--add-scram`."""
    blocked: dict[str, list[bool]] | None = None
    """What is cut from the beginning: see `cluster/cuts.py`."""


class Facts(NamedTuple):
    """What a test needs to know of a started node."""

    bootstrap_servers: str
    cluster_id: str
    node_id: int


class Host(Protocol):
    """One run of a node, from its start to its end: in a thread or in a child process."""

    @property
    def failure(self) -> BrokerFailed | None:
        """Why the node stopped by itself; None while it runs."""
        ...

    @property
    def log_lines(self) -> list[str]: ...

    async def start(self, launch: Launch) -> Facts: ...

    async def stop(self) -> None: ...

    async def kill(self) -> None: ...

    async def settle(self) -> None:
        """Call after a lost connection: waits a moment, so that `failure` is set if the node has ended."""
        ...

    async def command(self, name: str, values: dict[str, Any]) -> Any: ...
