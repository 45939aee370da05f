"""The steps of the exactly-once protocol, told as they are reached. A test listens, to end a process at one of them."""

from __future__ import annotations

from collections.abc import Callable

listener: Callable[[str], None] | None = None


def reached(step: str) -> None:
    """A process has come this far."""
    if listener is not None:
        listener(step)
