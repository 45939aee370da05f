"""What the controller decides on and returns: who asks, the records to append, the response."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

from ottla.ids import ANONYMOUS, Principal
from ottla.metadata.controller.mutation_quota import Mutations
from ottla.wire.base import Message

R = TypeVar("R")


class Asker(NamedTuple):
    """Who asks for a decision: a client, the same whether its request was forwarded or not; or a node, for itself."""

    version: int
    """Of the request."""
    principal: Principal = ANONYMOUS
    host: str = ""
    client_id: str | None = None
    listener: str = ""
    """The listener that the request came through; of a forwarded one, the controller's."""
    mutations: Mutations | None = None
    """What pays for the partitions that it creates and deletes; None: they are free."""


ITSELF = Asker(-1)
"""The controller, or a test."""


class Decision(NamedTuple, Generic[R]):
    """Records to append, and the response to send once they are committed.

    The records are atomic: all of them reach the log, or none. A response without records still waits until all earlier
    decisions are committed, so that no client sees a state that could be lost.
    """

    response: R
    records: Sequence[Message] = ()

    @property
    def raises_kraft_version(self) -> bool:
        """Whether the quorum raises kraft.version to its newest level first, with control records of its own."""
        return False


class UpgradeDecision(Decision[R]):
    """A decision that raises kraft.version too."""

    __slots__ = ()

    @property
    def raises_kraft_version(self) -> bool:
        return True
