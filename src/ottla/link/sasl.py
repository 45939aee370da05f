"""The SASL mechanisms without IO: what to send first, and what to answer to each challenge of the node."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Protocol

from ottla.link.scram import HASHES, ScramClient, ScramFault
from ottla.link.security import PLAIN, SaslOptions

_EXTENSION_NAME: Final = re.compile(r"[A-Za-z]+")
_EXTENSION_VALUE: Final = re.compile(r"[\x21-\x7E \t\r\n]+")
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")


class SaslFault(Exception):
    """The login cannot go on. The text goes on after "the login failed: "."""


class Exchange(Protocol):
    """One login of one mechanism."""

    def first(self) -> bytes: ...

    def next(self, challenge: bytes) -> bytes | None:
        """What to answer; None: the login is over, and the node has proved what it has to. Raises `SaslFault`."""
        ...


class PlainExchange:
    """PLAIN (RFC 4616): one message with user name and password."""

    def __init__(self, username: str, password: str) -> None:
        self._message = f"\0{username}\0{password}".encode()

    def first(self) -> bytes:
        return self._message

    def next(self, challenge: bytes) -> bytes | None:
        return None


class ScramExchange:
    """SCRAM: two messages each way."""

    def __init__(self, client: ScramClient) -> None:
        self._client = client
        self._is_proof_sent = False

    def first(self) -> bytes:
        return self._client.first()

    def next(self, challenge: bytes) -> bytes | None:
        try:
            if self._is_proof_sent:
                self._client.verify(challenge)
                return None
            self._is_proof_sent = True
            return self._client.final(challenge)
        except ScramFault as fault:
            raise SaslFault(f"the node does not follow SCRAM: {fault}") from None


class BearerExchange:
    """OAUTHBEARER (RFC 7628): one message with token and extensions. A refusal comes as JSON, which must be acknowledged."""

    def __init__(self, token: str, extensions: Mapping[str, str]) -> None:
        if not _TOKEN.fullmatch(token):
            raise SaslFault(
                "what the token function returned is no bearer token: it has to be a non-empty string of the form of a JWT"
            )
        for name, value in extensions.items():
            if name == "auth" or not _EXTENSION_NAME.fullmatch(name) or not _EXTENSION_VALUE.fullmatch(value):
                raise SaslFault(
                    f"the SASL extension {name!r} is not allowed: names are letters only and not auth, values are printable"
                )
        pairs = "".join(f"{name}={value}\x01" for name, value in extensions.items())
        self._message = f"n,,\x01auth=Bearer {token}\x01{pairs}\x01".encode()
        self._refusal = ""

    def first(self) -> bytes:
        return self._message

    def next(self, challenge: bytes) -> bytes | None:
        if not challenge:
            return None
        if self._refusal:
            raise SaslFault(f"the node refuses the token: {self._refusal}")
        self._refusal = challenge.decode("utf-8", "replace")
        return b"\x01"


def exchange_with_password(sasl: SaslOptions, nonce: str) -> Exchange:
    """The exchange of PLAIN or SCRAM."""
    if sasl.mechanism == PLAIN:
        return PlainExchange(sasl.username, sasl.password)
    assert sasl.mechanism in HASHES
    extensions = "tokenauth=true" if sasl.is_delegation_token else ""
    return ScramExchange(ScramClient(sasl.mechanism, sasl.username, sasl.password, nonce, extensions))
