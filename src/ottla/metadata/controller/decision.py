"""What a decision of the controller is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

from ottla.wire.base import Message

R = TypeVar("R")


class Decision(NamedTuple, Generic[R]):
    """Records to append, and the answer to give once they are committed.

    The records are one change: they reach the log together or not at all. Without records the answer still waits until
    everything decided before it is committed, so that nobody is told of a state that could be lost.
    """

    response: R
    records: Sequence[Message] = ()
