"""`QuorumListener`: what the quorum tells the rest of a node. Plain calls, on the loop, in the order of the log.

The quorum calls it on every node, whatever its roles. A call must not block: a listener does slow work in a task of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ottla.broker.runtime.metadata_log import MetadataBatch


class QuorumListener(Protocol):
    """Follows the committed metadata log and its leader."""

    def committed(self, batches: Sequence[MetadataBatch]) -> None:
        """`batches` are committed; they follow what was committed before. Control batches are among them."""
        ...

    def loaded_snapshot(self, snapshot: MetadataBatch) -> None:
        """A snapshot of another node has replaced the log: its records are all there is up to its last offset."""
        ...

    def leader_changed(self, leader_id: int | None, epoch: int) -> None:
        """The quorum has another leader or epoch. None: no leader is known in this epoch.

        A new leader has not committed anything in its epoch yet. Its control batch, the first one of `epoch`, is committed
        together with everything before it.
        """
        ...


class Listeners:
    """Passes every call on to several listeners, in their order."""

    def __init__(self, *listeners: QuorumListener) -> None:
        self._listeners = listeners

    def committed(self, batches: Sequence[MetadataBatch]) -> None:
        for each in self._listeners:
            each.committed(batches)

    def loaded_snapshot(self, snapshot: MetadataBatch) -> None:
        for each in self._listeners:
            each.loaded_snapshot(snapshot)

    def leader_changed(self, leader_id: int | None, epoch: int) -> None:
        for each in self._listeners:
            each.leader_changed(leader_id, epoch)
