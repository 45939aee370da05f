"""Delegation tokens: the HMAC that is a token's password. The metadata log has a token's id, owner and times, never its HMAC.

Every node makes it with delegation.token.secret.key, which is the same on all nodes of a cluster. Pure.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import NamedTuple

from ottla.ids import Principal
from ottla.wire.messages.metadata_records import DelegationTokenRecord


class TokenSettings(NamedTuple):
    """The settings `delegation.token.…`."""

    secret_key: str | None = None
    """None: tokens are switched off."""
    lifetime_ms_max: int = 604_800_000
    """How long a token may be renewed."""
    expiry_ms: int = 86_400_000
    """How long a token is valid after it was made or renewed."""
    check_interval_ms: int = 3_600_000
    """How often expired tokens are removed."""

    def __repr__(self) -> str:
        return f"TokenSettings({'off' if self.secret_key is None else 'on'})"


def token_hmac(secret_key: str, token_id: str) -> bytes:
    """The HMAC of a token."""
    return hmac.digest(secret_key.encode(), token_id.encode(), "sha512")


def principal_of(text: str) -> Principal:
    """The principal in a token's record, such as `User:alice`."""
    type_, _, name = text.partition(":")
    return Principal(type_, name)


def without_token(principal: Principal) -> Principal:
    """The principal as records name it: however it has logged in."""
    return principal._replace(is_token_authenticated=False)


class TokenIds:
    """The ids of tokens by their HMACs, made when they are first asked for."""

    def __init__(self) -> None:
        self._tokens: Mapping[str, DelegationTokenRecord] = {}
        self._ids: dict[bytes, str] = {}

    def id_of(self, hmac: bytes, secret_key: str, tokens: Mapping[str, DelegationTokenRecord]) -> str:
        """The id of one of `tokens`; empty if none has this HMAC."""
        if tokens is not self._tokens:
            known = {token_id: found for found, token_id in self._ids.items()}
            self._ids = {known.get(token_id) or token_hmac(secret_key, token_id): token_id for token_id in tokens}
            self._tokens = tokens
        return self._ids.get(bytes(hmac), "")
