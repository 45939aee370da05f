"""The settings of a replica: its cluster, its addresses, and `controller.quorum.*`. Times are in milliseconds."""

from __future__ import annotations

from typing import NamedTuple

from ottla.raft.voters import Endpoints

OBSERVER_SESSION_MS = 300_000
"""An observer that has not fetched for so long is no longer reported."""


class RaftSettings(NamedTuple):
    """Defaults are Kafka's."""

    cluster_id: str | None
    listener: str = "CONTROLLER"
    """The first of controller.listener.names: how replicas reach each other."""
    endpoints: Endpoints = {}  # noqa: RUF012 - never changed
    """This replica's own listeners; empty on an observer."""
    bootstrap_servers: tuple[tuple[str, int], ...] = ()
    can_be_voter: bool = True
    """Whether this node is a controller."""
    election_timeout_ms: int = 1000
    election_backoff_max_ms: int = 1000
    fetch_timeout_ms: int = 2000
    request_timeout_ms: int = 2000
    retry_backoff_ms: int = 20
    fetch_max_wait_ms: int = 500
    fetch_max_bytes: int = 8 << 20
    fetch_snapshot_max_bytes: int = 8 << 20
    auto_join: bool = False
    can_grow: bool = True
    """Whether voters may be added. Not to a node that was started as its whole cluster: its broker would not find them."""

    @property
    def check_quorum_timeout_ms(self) -> int:
        """A leader resigns if no majority of voters has fetched for so long."""
        return self.fetch_timeout_ms * 3 // 2

    @property
    def yield_ms(self) -> int:
        """How long one of two replicas that ask for pre-votes together lets the other one go first."""
        return self.election_timeout_ms // 2

    @property
    def begin_epoch_interval_ms(self) -> int:
        """How often a leader announces itself to voters that may not know it."""
        return self.fetch_timeout_ms // 2
