"""`TokenCache`: the bearer token of one client, for OAUTHBEARER. One token serves all connections until it is due for renewal.

The token function is called for the first login, and again when a login finds that the token's refresh time has passed. That
time lies before the expiry, where Kafka's sasl.login.refresh settings put it. If the function fails then and the old token is
still valid, the old one is used. A token without a known expiry is not kept: every login asks for one. Belongs to one event
loop.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from base64 import urlsafe_b64decode
from collections.abc import Callable
from typing import NamedTuple

from ottla.link.sasl import SaslFault
from ottla.link.security import Token, TokenProvider

logger = logging.getLogger("ottla.link")

_PRECISION = 1_000_000


class RefreshTimes(NamedTuple):
    """When a token is renewed: Kafka's sasl.login.refresh.* settings."""

    window_factor: float = 0.8
    """After this share of the token's lifetime,"""
    window_jitter: float = 0.05
    """and a random share of up to this,"""
    min_period_s: float = 60
    """but not sooner than this after the last time,"""
    buffer_s: float = 300
    """and not later than this before its expiry. Both bounds are ignored for a token that is too short-lived for them."""

    def at_ms(self, now_ms: int, expiry_ms: int, chance: float) -> int:
        """When to renew a token that was fetched at `now_ms`; `chance` is from 0 to 1."""
        lifetime_ms = max(0, expiry_ms - now_ms)
        at_ms = now_ms + int(lifetime_ms * (self.window_factor + self.window_jitter * chance))
        if lifetime_ms < (self.min_period_s + self.buffer_s) * 1000:
            return at_ms
        at_ms = min(at_ms, expiry_ms - int(self.buffer_s * 1000))
        return max(at_ms, now_ms + int(self.min_period_s * 1000))


class TokenCache:
    """The token of one client."""

    def __init__(
        self, provider: TokenProvider, refresh: RefreshTimes, unix_ms: Callable[[], int], random_below: Callable[[int], int]
    ) -> None:
        self._provider = provider
        self._refresh = refresh
        self._unix_ms = unix_ms
        self._random_below = random_below
        self._lock = asyncio.Lock()
        self._token: Token | None = None
        self._expiry_ms = self._due_ms = 0

    async def get(self) -> Token:
        """The token for a login. Raises `SaslFault` if there is none."""
        async with self._lock:  # connections that open together share one call of the function
            if self._token is not None and self._unix_ms() < self._due_ms:
                return self._token
            try:
                token = await fetch_token(self._provider)
            except SaslFault as fault:
                if self._token is None or self._unix_ms() >= self._expiry_ms:
                    raise
                logger.warning("the token is still valid, but could not be renewed: %s. The next login tries again", fault)
                return self._token
            self._keep(token)
            return token

    def _keep(self, token: Token) -> None:
        expiry_s = expiry_of(token)
        if expiry_s is None:
            self._token = None
            return
        now_ms = self._unix_ms()
        self._token, self._expiry_ms = token, int(expiry_s * 1000)
        self._due_ms = self._refresh.at_ms(now_ms, self._expiry_ms, self._random_below(_PRECISION) / _PRECISION)

    def refused(self, token: Token) -> None:
        """A node does not take `token`: the next login gets a new one."""
        if self._token == token:
            self._token = None


async def fetch_token(provider: TokenProvider) -> Token:
    """What the token function returns. A plain function runs in a worker thread. Raises `SaslFault`."""
    try:
        if inspect.iscoroutinefunction(provider):
            found = await provider()
        else:
            found = await asyncio.get_running_loop().run_in_executor(None, provider)
            if inspect.isawaitable(found):
                found = await found
    except Exception as error:
        raise SaslFault(f"the function that returns the token raised {type(error).__name__}: {error}") from error
    is_triple = isinstance(found, tuple) and len(found) == 3 and isinstance(found[0], str)
    if not isinstance(found, str) and not is_triple:
        raise SaslFault(
            f"the function that returns the token returned {type(found).__name__}: it has to be the token as a string, or "
            "(token, expiry in seconds since 1970 or None, extensions)"
        )
    return found  # type: ignore[no-any-return]  # checked above


def expiry_of(token: Token) -> float | None:
    """When a token expires, in seconds since 1970: what its function said, or the claim `exp` of a JWT; None if unknown."""
    if not isinstance(token, str):
        return token[1] if token[1] is not None else expiry_of(token[0])
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        expiry = claims["exp"]
    except (ValueError, KeyError, TypeError):
        return None
    return float(expiry) if isinstance(expiry, int | float) and not isinstance(expiry, bool) else None
