"""What a decision of the controller is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from ottla.wire.base import Message

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Decision(Generic[R]):
    """Records to append, and the answer to give once they are committed.

    The records are one change: they reach the log together or not at all. Without records the answer still waits until
    everything decided before it is committed, so that nobody is told of a state that could be lost.
    """

    response: R
    records: Sequence[Message] = field(default=())
