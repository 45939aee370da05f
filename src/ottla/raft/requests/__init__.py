"""The requests between replicas: one file each, with the request, its handling, and the handling of its answer."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final, Protocol, cast

if TYPE_CHECKING:
    from ottla.raft.connections import InFlight
    from ottla.raft.replica import Inbound, Replica
    from ottla.wire.base import Message

API_VERSIONS: Final = 18

_MODULES: Final[dict[int, str]] = {
    1: "fetch",
    52: "vote",
    53: "begin_quorum_epoch",
    54: "end_quorum_epoch",
    59: "fetch_snapshot",
    API_VERSIONS: "api_versions",
    80: "add_raft_voter",
    81: "remove_raft_voter",
    82: "update_raft_voter",
}
"""API key → module. Imported on first use: a quorum of one needs none of them."""


class RequestModule(Protocol):
    """What the module of an API has. That of ApiVersions, which the node answers itself, has no `handle`."""

    def handle(self, replica: Replica, inbound: Inbound, now_ms: int) -> Message | None:
        """The response; None: it comes later."""

    def answered(self, replica: Replica, sent: InFlight, response: Message, now_ms: int) -> bool:
        """Take the response to a request of this replica. Returns whether the next request may follow at once."""


def requests_module(key: int) -> RequestModule:
    return cast("RequestModule", import_module(f"{__name__}.{_MODULES[key]}"))
