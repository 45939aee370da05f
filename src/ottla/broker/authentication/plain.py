"""PLAIN (RFC 4616) with the users of a JAAS text: one message, `authorization id NUL user NUL password`."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping
from typing import Final

from ottla.broker.authentication.exchange import LoggedIn, LoginFailed
from ottla.ids import Principal

_USER_PREFIX: Final = "user_"
_NOBODY: Final = hashlib.sha256(b"nobody").digest()
_PARTS: Final = 3


class PlainUsers:
    """The users of one listener: `user_NAME="password"` in its JAAS text. Keeps hashes, which have one length to compare."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._hashes = {
            option.removeprefix(_USER_PREFIX): hashlib.sha256(password.encode()).digest()
            for option, password in options.items()
            if option.startswith(_USER_PREFIX)
        }

    def accept(self, username: str, password: str) -> bool:
        """Whether this is a user and its password. Takes the same time for a user that does not exist."""
        expected = self._hashes.get(username)
        given = hashlib.sha256(password.encode()).digest()
        is_same = hmac.compare_digest(given, _NOBODY if expected is None else expected)
        return is_same and expected is not None


class PlainExchange:
    """One login."""

    __slots__ = ("_users", "username")

    def __init__(self, users: PlainUsers) -> None:
        self._users = users
        self.username = ""

    def prepare(self, message: bytes) -> Callable[[], None] | None:
        return None

    def step(self, message: bytes) -> tuple[bytes, LoggedIn | None]:
        try:
            parts = message.decode().split("\0")
        except UnicodeDecodeError:
            raise LoginFailed("the message is not UTF-8") from None
        if len(parts) != _PARTS:
            raise _failed(f"a PLAIN message has three parts with zero characters between them, and this one has {len(parts)}")
        authorization_id, self.username, password = parts
        if not self.username:
            raise _failed("the user name is empty")
        if not password:
            raise _failed("the password is empty")
        if not self._users.accept(self.username, password):
            raise _failed("user name or password is wrong")
        if authorization_id not in ("", self.username):
            raise _failed("the authorization id must be empty or the user name")
        return b"", LoggedIn(Principal("User", self.username))


def _failed(text: str) -> LoginFailed:
    return LoginFailed(text, f"Authentication failed: {text}")
