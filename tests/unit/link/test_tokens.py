"""The token of a client: fetched once for all connections, and again before it expires."""

import asyncio
import json
import threading
from base64 import urlsafe_b64encode
from collections.abc import Awaitable
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.link.sasl import SaslFault
from ottla.link.tokens import RefreshTimes, TokenCache, expiry_of, fetch_token

T = TypeVar("T")
HOUR_MS = 3_600_000


def run(work: Awaitable[T]) -> T:
    async def wait() -> T:
        return await work

    return asyncio.run(wait())


def jwt(claims: Any) -> str:
    body = urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    return f"e30.{body}.c2ln"


class Issuer:
    """Counts the tokens that it hands out; each lives for an hour."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000_000_000
        self.count = 0
        self.error: Exception | None = None

    def __call__(self) -> Any:
        if self.error is not None:
            raise self.error
        self.count += 1
        return f"token{self.count}", (self.now_ms + HOUR_MS) / 1000, {"a": "b"}

    def cache(self) -> TokenCache:
        return TokenCache(self, RefreshTimes(), lambda: self.now_ms, lambda below: 0)


async def names(cache: TokenCache, count: int = 1) -> list[str]:
    return [token[0] for token in await asyncio.gather(*(cache.get() for _ in range(count)))]


def test_connections_that_open_together_share_one_call() -> None:
    issuer = Issuer()
    assert run(names(issuer.cache(), 5)) == ["token1"] * 5
    assert issuer.count == 1


def test_a_token_is_renewed_after_the_refresh_time_and_before_it_expires() -> None:
    async def body() -> None:
        issuer = Issuer()
        cache = issuer.cache()
        assert await names(cache) == ["token1"]
        issuer.now_ms += int(HOUR_MS * 0.8) - 1
        assert await names(cache) == ["token1"]
        issuer.now_ms += 2
        assert await names(cache) == ["token2"]
        assert await names(cache) == ["token2"]

    asyncio.run(body())


def test_a_valid_token_is_used_while_the_function_fails(caplog: pytest.LogCaptureFixture) -> None:
    async def body() -> None:
        issuer = Issuer()
        cache = issuer.cache()
        await names(cache)
        issuer.now_ms += int(HOUR_MS * 0.9)
        issuer.error = OSError("the issuer is down")
        assert await names(cache) == ["token1"]
        assert "could not be renewed: the function that returns the token raised OSError" in caplog.text
        issuer.now_ms += HOUR_MS
        with pytest.raises(SaslFault, match="the issuer is down"):
            await cache.get()
        issuer.error = None
        assert await names(cache) == ["token2"]

    asyncio.run(body())


def test_a_refused_token_is_not_used_again() -> None:
    async def body() -> None:
        issuer = Issuer()
        cache = issuer.cache()
        first = await cache.get()
        cache.refused(first)
        assert await names(cache) == ["token2"]
        cache.refused(first)  # by a connection that is late: the new one stays
        assert await names(cache) == ["token2"]

    asyncio.run(body())


def test_a_token_without_expiry_is_fetched_for_every_login() -> None:
    calls: list[str] = []

    def provider() -> str:
        calls.append(threading.current_thread().name)
        return "opaque"

    async def body() -> None:
        cache = TokenCache(provider, RefreshTimes(), lambda: 0, lambda below: 0)
        assert [await cache.get(), await cache.get()] == ["opaque", "opaque"]

    asyncio.run(body())
    assert len(calls) == 2
    assert threading.current_thread().name not in calls, "it may block, so it runs in a worker thread"


@pytest.mark.parametrize(
    ("token", "expiry_s"),
    [
        (jwt({"exp": 12}), 12.0),
        (jwt({"exp": 12.5}), 12.5),
        ((jwt({"exp": 12}), None, {}), 12.0),
        ((jwt({"exp": 12}), 7, {}), 7),
        (jwt({"exp": "12"}), None),
        (jwt({"exp": True}), None),
        (jwt({}), None),
        (jwt([]), None),
        ("opaque", None),
        ("a.!.c", None),
    ],
)
def test_the_expiry_is_what_the_function_says_or_a_claim_of_the_token(token: Any, expiry_s: float | None) -> None:
    assert expiry_of(token) == expiry_s


@given(st.integers(1, 10**9), st.floats(0, 1))
def test_a_token_is_renewed_before_it_expires(lifetime_ms: int, chance: float) -> None:
    at_ms = RefreshTimes().at_ms(0, lifetime_ms, chance)
    assert 0 <= at_ms <= lifetime_ms * 0.85
    if lifetime_ms >= 360_000:
        assert 60_000 <= at_ms <= lifetime_ms - 300_000


def test_what_is_no_token_is_refused() -> None:
    with pytest.raises(SaslFault, match="returned int"):
        run(fetch_token(lambda: 5))  # type: ignore[arg-type, return-value]
