"""Bearer tokens for OAUTHBEARER. One token serves many connections until it is due for renewal.

`TokenCache` is the token of one client and its event loop, `SharedToken` that of all clients of a process with equal settings.

A token is fetched for the first login, and again when a login finds that its refresh time has passed. That time lies before the
expiry, where Kafka's sasl.login.refresh settings put it. If fetching fails then, the old one is used while it is valid. A token
without a known expiry is not kept: every login asks for one.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from ottla.link.sasl import SaslFault
from ottla.link.security import Token, TokenProvider

logger = logging.getLogger("ottla.link")

_PRECISION = 1_000_000
_MILLISECONDS = 500_000_000_000
"""In milliseconds this is in 1985, in seconds in the year 17814."""


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


class KeptToken:
    """A token until it is due, or no token."""

    def __init__(self, refresh: RefreshTimes, unix_ms: Callable[[], int], random_below: Callable[[int], int]) -> None:
        self._refresh = refresh
        self._unix_ms = unix_ms
        self._random_below = random_below
        self._kept: tuple[Token, int, int] | None = None
        """The token, its expiry and its refresh time."""

    def current(self) -> Token | None:
        """The token, unless a new one is due."""
        kept = self._kept
        return kept[0] if kept is not None and self._unix_ms() < kept[2] else None

    def valid_despite(self, fault: SaslFault) -> Token:
        """The token, which could not be renewed. Raises `fault` if it is no longer valid."""
        kept = self._kept
        if kept is None or self._unix_ms() >= kept[1]:
            raise fault
        logger.warning("the token is still valid, but could not be renewed: %s. The next login tries again", fault)
        return kept[0]

    def keep(self, token: Token) -> None:
        expiry_s = expiry_of(token)
        if expiry_s is None:
            self._kept = None
            return
        expiry_ms = int(expiry_s * 1000)
        due_ms = self._refresh.at_ms(self._unix_ms(), expiry_ms, self._random_below(_PRECISION) / _PRECISION)
        self._kept = token, expiry_ms, due_ms

    def forget(self, token: Token) -> None:
        kept = self._kept
        if kept is not None and kept[0] == token:
            self._kept = None


class TokenCache:
    """The token of one client. Belongs to one event loop."""

    def __init__(
        self, provider: TokenProvider, refresh: RefreshTimes, unix_ms: Callable[[], int], random_below: Callable[[int], int]
    ) -> None:
        self._provider = provider
        self._kept = KeptToken(refresh, unix_ms, random_below)
        self._lock = asyncio.Lock()

    async def get(self) -> Token:
        """The token for a login. Raises `SaslFault` if there is none."""
        async with self._lock:  # connections that open together share one call of the function
            if (kept := self._kept.current()) is not None:
                return kept
            try:
                token = await fetch_token(self._provider)
            except SaslFault as fault:
                return self._kept.valid_despite(fault)
            self._kept.keep(token)
            return token

    def refused(self, token: Token) -> None:
        """A node does not take `token`: the next login gets a new one."""
        self._kept.forget(token)


class SharedToken:
    """The token of several clients, each with an event loop in a thread of its own. `fetch` blocks and raises `SaslFault`."""

    def __init__(
        self,
        fetch: Callable[[], Token],
        lock: AbstractContextManager[Any],
        refresh: RefreshTimes,
        unix_ms: Callable[[], int],
        random_below: Callable[[int], int],
    ) -> None:
        self._fetch = fetch
        self._lock = lock
        self._kept = KeptToken(refresh, unix_ms, random_below)
        self._failures = 0
        self._fault = SaslFault("")
        """The last failure."""

    async def get(self) -> Token:
        """The token for a login. Raises `SaslFault` if there is none."""
        if (kept := self._kept.current()) is not None:
            return kept
        return await asyncio.get_running_loop().run_in_executor(None, self._renewed, self._failures)

    def _renewed(self, failures: int) -> Token:
        with self._lock:  # logins that need a token together share one call, and its failure
            if (kept := self._kept.current()) is not None:
                return kept
            if self._failures != failures:
                return self._kept.valid_despite(self._fault)
            try:
                token = self._fetch()
            except SaslFault as fault:
                self._failures += 1
                self._fault = fault
                return self._kept.valid_despite(fault)
            self._kept.keep(token)
            return token

    def refused(self, token: Token) -> None:
        """A node does not take `token`: the next login gets a new one."""
        self._kept.forget(token)


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
    return checked_token(found, "the function that returns the token")


def checked_token(found: object, what: str) -> Token:
    """What a token function returned, as a token. Raises `SaslFault`; `what` names the function."""
    match found:
        case str():
            return found
        case (str() as token, int() | float() | None as expiry_s):
            checked: Token = token, expiry_s, {}
        case (str(), int() | float() | None as expiry_s, Mapping()):
            checked = found  # type: ignore[assignment]  # as matched
        case _:
            raise SaslFault(
                f"{what} returned {type(found).__name__}: it has to be the token as a string, (token, expiry) or (token, "
                "expiry, extensions), with the expiry in seconds since 1970 or None"
            )
    if expiry_s is not None and expiry_s > _MILLISECONDS:
        raise SaslFault(f"{what} returned an expiry in milliseconds, {expiry_s}: divide it by 1000, it has to be in seconds")
    return checked


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
