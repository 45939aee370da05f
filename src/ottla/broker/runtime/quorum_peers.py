"""What has come of this replica's requests to other nodes: who answers, who does not, who belongs to another cluster.

For the operator of a node that waits for its quorum. Pure: the host reports the end of each request.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ottla.errors import OttlaError
from ottla.errors.codes import ErrorCode

if TYPE_CHECKING:
    from ottla.raft.effects import Destination
    from ottla.raft.voters import VoterSet
    from ottla.wire.base import Message

Address = tuple[str, int]


class WrongCluster(OttlaError):
    """The quorum belongs to another cluster than this node's directories."""


class QuorumPeers:
    """The last outcome of a request, by address."""

    def __init__(self, cluster_id: str | None) -> None:
        self._cluster_id = cluster_id
        self._failures: dict[Address, str] = {}
        self._strangers: set[Address] = set()
        self._answering: set[Address] = set()
        self.down: set[int] = set()
        """The nodes whose last request got no answer."""

    def answered(self, destination: Destination, response: Message) -> None:
        """A node has answered, perhaps with a refusal."""
        address = (destination.host, destination.port)
        self._failures.pop(address, None)
        self.down.discard(destination.id)
        message: Any = response
        if getattr(message, "error_code", ErrorCode.NONE) == ErrorCode.INCONSISTENT_CLUSTER_ID:
            self._strangers.add(address)
            self._answering.discard(address)
        else:
            self._strangers.discard(address)
            self._answering.add(address)

    def failed(self, destination: Destination, failure: BaseException) -> None:
        """A node has not answered."""
        from ottla.link import ConnectFailed, RequestTimedOut  # late: a quorum of one needs none of it

        address = (destination.host, destination.port)
        self._answering.discard(address)
        self.down.add(destination.id)
        if isinstance(failure, ConnectFailed):
            self._failures[address] = "accepts no connections"
        elif isinstance(failure, RequestTimedOut | TimeoutError):
            self._failures[address] = "does not answer"
        else:
            self._failures[address] = str(failure)

    def wrong_cluster(self, voters: VoterSet, bootstrap: Sequence[Address]) -> str | None:
        """Why this node cannot be part of the quorum, if most of it belongs to another cluster. One stranger may be wrong."""
        if len(self._strangers) * 2 <= max(len(voters), len(bootstrap)):
            return None
        where = ", ".join(f"{host}:{port}" for host, port in sorted(self._strangers))
        return (
            f"the controllers at {where} belong to another cluster: this node's directories are of cluster "
            f"{self._cluster_id}. Correct log.dirs or the controller.quorum settings, or format the directories for theirs"
        )

    def missing(self, voters: VoterSet, own_id: int, bootstrap: Sequence[Address]) -> str | None:
        """Why the quorum has no leader: which voters are missing, and where they were looked for. None if enough are there."""
        places = {each.key.id: next(iter(each.endpoints.values()), None) for each in voters if each.key.id != own_id}
        if not voters:
            lost = [
                f"{host}:{port}{self._why((host, port))}" for host, port in bootstrap if (host, port) not in self._answering
            ]
            if len(lost) < len(bootstrap):
                return None
            return (
                f"no controller can be reached: {', '.join(lost) or 'none is named'}. Start them, or correct "
                "controller.quorum.bootstrap.servers"
            )
        needed = len(voters) // 2 + 1
        gone = {node: place for node, place in places.items() if place is None or place not in self._answering}
        if len(voters) - len(gone) >= needed:
            return None
        named = ", ".join(
            f"node {node} at {'an unknown address' if place is None else f'{place[0]}:{place[1]}{self._why(place)}'}"
            for node, place in sorted(gone.items())
        )
        return (
            f"the metadata quorum has {len(voters)} voters and needs {needed} of them to elect a controller. Missing: {named}. "
            "Start them, or correct controller.quorum.voters"
        )

    def _why(self, address: Address) -> str:
        if address in self._strangers:
            return " (belongs to another cluster)"
        return f" ({self._failures[address]})" if address in self._failures else ""
