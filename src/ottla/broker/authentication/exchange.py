"""The contract of one login: messages of the client in, challenges and at last the principal out. No IO, no clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from ottla.ids import Principal


class LoginFailed(Exception):
    """The login is over. The text is for the node's log; it may say more than a stranger is to learn."""

    def __init__(self, reason: str, told: str | None = None) -> None:
        super().__init__(reason)
        self.told = told
        """What the peer is told; None: only that the credentials are invalid, which says nothing about users."""


class LoggedIn(NamedTuple):
    """The login has succeeded."""

    principal: Principal
    expires_ms: int | None = None
    """When the credentials expire, in ms since 1970; None: never."""


class Exchange(Protocol):
    """One login of one mechanism."""

    username: str
    """As the client names itself, for the log; empty until it has."""

    def prepare(self, message: bytes) -> Callable[[], None] | None:
        """Work that `step` needs for this message and that takes too long for the event loop, if there is any. Pure."""
        ...

    def step(self, message: bytes) -> tuple[bytes, LoggedIn | None]:
        """The answer to a message of the client, and the outcome if this was the last. Raises `LoginFailed`."""
        ...
