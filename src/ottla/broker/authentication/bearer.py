"""The server side of OAUTHBEARER (RFC 7628) without IO: one message with a token, and its check.

client   n,[a=authorization id], 01 auth=Bearer TOKEN 01 [name=value 01]… 01
server   nothing, or why the token is refused, as JSON; the client then sends one byte 01, and the login fails
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from ottla.broker.authentication.exchange import LoggedIn, LoginFailed
from ottla.ids import Principal

_FIRST: Final = re.compile(
    r"n,(?:a=(?P<authorization_id>(?:[^=,\0]|=2C|=3D)+))?,\x01(?P<pairs>(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)+)\x01"
)
_AUTH: Final = re.compile(r"bearer +(?P<token>[A-Za-z0-9._~+/-]+=*)", re.IGNORECASE)
_ACKNOWLEDGED: Final = b"\x01"


class Claims(NamedTuple):
    """What a valid token says."""

    name: str
    expires_ms: int


class TokenRefused(Exception):
    """The token is not valid. The text is for the node's log, and never repeats the token."""

    def __init__(self, reason: str, scope: str | None = None) -> None:
        super().__init__(reason)
        self.scope = scope
        """What the token would have to be for, if that is all that is wrong."""


class TokenCheck(Protocol):
    """The rule that says which tokens are valid."""

    def __call__(self, token: str, now_ms: int) -> Claims:
        """Raises `TokenRefused`."""
        ...


class BearerExchange:
    """One login."""

    __slots__ = ("_check", "_now_ms", "_refusal", "username")

    def __init__(self, check: TokenCheck, now_ms: Callable[[], int]) -> None:
        self._check = check
        self._now_ms = now_ms
        self._refusal: LoginFailed | None = None
        """Why the token was refused, until the client has acknowledged it."""
        self.username = ""

    def prepare(self, message: bytes) -> Callable[[], None] | None:
        return None

    def step(self, message: bytes) -> tuple[bytes, LoggedIn | None]:
        if self._refusal is not None:
            if message != _ACKNOWLEDGED:
                raise LoginFailed(f"{self._refusal}; and the client goes on with another message")
            raise self._refusal
        authorization_id, token = _read(message)
        try:
            claims = self._check(token, self._now_ms())
        except TokenRefused as refused:
            status = {"status": "invalid_token"}
            if refused.scope is not None:
                status = {"status": "insufficient_scope", "scope": refused.scope}
            told = json.dumps(status, separators=(",", ":"))
            self._refusal = LoginFailed(f"its token is refused: {refused}", told)
            return told.encode(), None
        self.username = claims.name
        if authorization_id not in ("", claims.name):
            text = "the authorization id must be empty or the name in the token"
            raise LoginFailed(text, f"Authentication failed: {text}")
        return b"", LoggedIn(Principal("User", claims.name), claims.expires_ms)


def _read(message: bytes) -> tuple[str, str]:
    """Authorization id and token of the first message."""
    try:
        first = _FIRST.fullmatch(message.decode())
    except UnicodeDecodeError:
        first = None
    if first is None:
        raise LoginFailed("its message is none of OAUTHBEARER")
    pairs = [pair.partition("=") for pair in first["pairs"].split("\x01")[:-1]]
    auths = [value for name, _, value in pairs if name == "auth"]
    if len(auths) != 1 or (auth := _AUTH.fullmatch(auths[0])) is None:
        raise LoginFailed("its message has no bearer token")
    authorization_id = (first["authorization_id"] or "").replace("=2C", ",").replace("=3D", "=")
    return authorization_id, auth["token"]
