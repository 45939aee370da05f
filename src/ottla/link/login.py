"""Logs in on a connection: SaslHandshake, then SaslAuthenticate until both sides are content. Texts for what can go wrong."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from ottla.env.world import Randomness
from ottla.errors.codes import ErrorCode, error_name
from ottla.link.errors import AuthenticationFailed, LinkError, NoCommonVersion
from ottla.link.sasl import BearerExchange, Exchange, SaslFault, exchange_with_password
from ottla.link.security import OAUTHBEARER, PLAIN, SaslOptions, Token
from ottla.link.tokens import SharedToken, TokenCache, fetch_token
from ottla.link.versions import PeerVersions
from ottla.wire.base import Message
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest

ROUNDS_MAX: Final = 4
"""More SaslAuthenticate requests than any mechanism needs."""

HANDSHAKE_VERSION: Final = 1
"""Version 0 is followed by messages without a Kafka header, as brokers before 1.0 want it."""

Ask = Callable[[Message], Awaitable[Any]]


async def log_in(versions: PeerVersions, ask: Ask, sasl: SaslOptions, randomness: Randomness | None) -> int:
    """Log in; returns how long the session lasts, in ms (0: without end). Raises `AuthenticationFailed`.

    `ask` sends a request and returns its answer.
    """
    address = versions.address
    token: Token | None = None
    try:
        if versions.newest(SaslHandshakeRequest.KEY) < HANDSHAKE_VERSION:
            raise AuthenticationFailed(address, f"{address} is older than Kafka 1.0: Ottla cannot log in there. Upgrade it")
        versions.newest(SaslAuthenticateRequest.KEY)
        if sasl.mechanism == OAUTHBEARER:
            token = await _token(sasl)
        exchange = _password_exchange(sasl, randomness) if token is None else _bearer_exchange(token)
        await _choose_mechanism(address, ask, sasl)
        to_send: bytes | None = exchange.first()
        for _ in range(ROUNDS_MAX):
            response = await ask(SaslAuthenticateRequest(auth_bytes=to_send or b""))
            if response.error_code:
                _forget(sasl, token)
                raise _refused(address, sasl, response.error_code, response.error_message)
            to_send = exchange.next(response.auth_bytes)
            if to_send is None:
                return int(response.session_lifetime_ms)
    except SaslFault as fault:
        _forget(sasl, token)
        raise AuthenticationFailed(
            address, f"the login{_as_user(sasl)} at {address} with {sasl.mechanism} failed: {fault}"
        ) from fault.__cause__
    except NoCommonVersion as none:
        raise AuthenticationFailed(
            address, f"{address} cannot log anybody in with SASL: {none}. Connect without a login (security.protocol)"
        ) from None
    raise AuthenticationFailed(address, f"{address} did not finish the login with {sasl.mechanism} in {ROUNDS_MAX} rounds")


def _bearer_exchange(token: Token) -> Exchange:
    return BearerExchange(token, {}) if isinstance(token, str) else BearerExchange(token[0], token[2])


async def _token(sasl: SaslOptions) -> Token:
    assert sasl.token is not None
    return await (sasl.token.get() if isinstance(sasl.token, TokenCache | SharedToken) else fetch_token(sasl.token))


def _password_exchange(sasl: SaslOptions, randomness: Randomness | None) -> Exchange:
    if sasl.mechanism == PLAIN:
        return exchange_with_password(sasl, "")
    if randomness is None:
        raise ValueError(f"{sasl.mechanism} needs random numbers: pass `randomness` to Link.connect")
    return exchange_with_password(sasl, f"{randomness.below(1 << 128):032x}")


async def _choose_mechanism(address: str, ask: Ask, sasl: SaslOptions) -> None:
    response = await ask(SaslHandshakeRequest(mechanism=sasl.mechanism))
    code = response.error_code
    if code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        offered = ", ".join(response.mechanisms) or "none"
        raise AuthenticationFailed(
            address,
            f"{address} does not offer the SASL mechanism {sasl.mechanism}; it offers: {offered}. Choose one of those "
            "(sasl.mechanism), or enable yours on the node (sasl.enabled.mechanisms)",
        )
    if code == ErrorCode.ILLEGAL_SASL_STATE:
        raise AuthenticationFailed(
            address,
            f"{address} does not want a login here: it is a listener without SASL. Give the port of a SASL_PLAINTEXT or "
            "SASL_SSL listener, or connect without a login (security.protocol)",
        )
    if code:
        raise _refused(address, sasl, code, None)


def _forget(sasl: SaslOptions, token: Token | None) -> None:
    """The next login must not use a token that was refused."""
    if token is not None and isinstance(sasl.token, TokenCache | SharedToken):
        sasl.token.refused(token)


def _refused(address: str, sasl: SaslOptions, code: int, message: str | None) -> LinkError:
    said = message or error_name(code)
    if sasl.mechanism == OAUTHBEARER:
        advice = "Check that the token is valid, has not expired, and has the audience, issuer and scope that the node expects"
    elif sasl.mechanism == PLAIN:
        advice = "Check user name and password"
    else:
        advice = (
            f"Check user name and password, and that the user has credentials for {sasl.mechanism} "
            "(kafka-configs --describe --entity-type users)"
        )
    text = f"{address} refused the login{_as_user(sasl)} with {sasl.mechanism}: {said.rstrip('.')}. {advice}"
    return AuthenticationFailed(address, text)


def _as_user(sasl: SaslOptions) -> str:
    return f" of user {sasl.username}" if sasl.username else ""
