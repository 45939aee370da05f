"""JSON Web Tokens as credentials (RFC 7519): the rules for unsecured ones, for tests, and for signed ones.

`unsecured_check` follows Kafka's default handler, `signed_check` its OAuthBearerValidatorCallbackHandler. No clock, no IO: the
keys come from `Keys`, which somebody else keeps up to date. No error repeats a token.
"""

from __future__ import annotations

import json
import math
from base64 import urlsafe_b64decode
from binascii import Error as Base64Error
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, NoReturn, Protocol

from ottla.broker.authentication.bearer import Claims, TokenCheck, TokenRefused

_PARTS: Final = 3
_SHOWN_MAX: Final = 40


class Keys(Protocol):
    """The keys that sign tokens."""

    def verify(self, algorithm: str, key_id: str | None, signed: bytes, signature: bytes) -> str | None:
        """None if one of the keys made `signature`; else why none did, for the log."""
        ...


class UnsecuredRules(NamedTuple):
    """The JAAS options `unsecuredValidator…`."""

    name_claim: str = "sub"
    scope_claim: str = "scope"
    required_scope: str = ""
    """Words, all of which the token's scope must have."""
    clock_skew_ms: int = 0


class SignedRules(NamedTuple):
    """The settings `sasl.oauthbearer.…`."""

    name_claim: str = "sub"
    scope_claim: str = "scope"
    expected_audience: tuple[str, ...] = ()
    """One of them must be in the token's audience; empty: any audience."""
    expected_issuer: str | None = None
    clock_skew_ms: int = 30_000


def unsecured_rules(options: Mapping[str, str]) -> UnsecuredRules:
    """The rules in a JAAS text. Raises `ValueError`."""
    skew = options.get("unsecuredValidatorAllowableClockSkewMs", "0")
    if not skew.isascii() or not skew.isdigit():
        raise ValueError("unsecuredValidatorAllowableClockSkewMs must be a number of milliseconds, from 0 on")
    return UnsecuredRules(
        name_claim=options.get("unsecuredValidatorPrincipalClaimName") or "sub",
        scope_claim=options.get("unsecuredValidatorScopeClaimName") or "scope",
        required_scope=options.get("unsecuredValidatorRequiredScope") or "",
        clock_skew_ms=int(skew),
    )


def unsecured_check(rules: UnsecuredRules) -> TokenCheck:
    """The check of tokens without a signature: anybody can make one."""

    def check(token: str, now_ms: int) -> Claims:
        header, body, _, signature = _read(token)
        if header.get("alg") != "none" or signature:
            raise TokenRefused("it is signed, and this listener takes unsecured tokens only: set its key set")
        name = _name(body, rules.name_claim)
        expires_ms, issued_ms = _time_ms(body, "exp"), _time_ms(body, "iat", is_required=False)
        if issued_ms is not None:
            if expires_ms <= issued_ms:
                raise TokenRefused("it expires before it was issued")
            if issued_ms > now_ms + rules.clock_skew_ms:
                raise TokenRefused("it was issued in the future")
        _check_expiry(expires_ms, now_ms, rules.clock_skew_ms)
        missing = set(rules.required_scope.split()) - _scope(body, rules.scope_claim)
        if missing:
            raise TokenRefused(f"its scope lacks {' '.join(sorted(missing))}", rules.required_scope)
        return Claims(name, expires_ms)

    return check


def signed_check(rules: SignedRules, keys: Keys) -> TokenCheck:
    """The check of signed tokens. One without a signature is never valid."""

    def check(token: str, now_ms: int) -> Claims:
        header, body, signed, signature = _read(token)
        algorithm, key_id = header.get("alg"), header.get("kid")
        if not isinstance(algorithm, str) or not isinstance(key_id, str | None):
            raise TokenRefused("its header does not name algorithm and key as texts")
        if "crit" in header:
            raise TokenRefused("its header demands extensions that are not known here")
        refusal = keys.verify(algorithm, key_id, signed, signature)
        if refusal is not None:
            raise TokenRefused(refusal)
        name = _name(body, rules.name_claim)
        expires_ms, starts_ms = _time_ms(body, "exp"), _time_ms(body, "nbf", is_required=False)
        _time_ms(body, "iat")
        _check_expiry(expires_ms, now_ms, rules.clock_skew_ms)
        if starts_ms is not None and starts_ms > now_ms + rules.clock_skew_ms:
            raise TokenRefused("it is not valid yet (nbf)")
        if rules.expected_issuer is not None and body.get("iss") != rules.expected_issuer:
            raise TokenRefused(f"its issuer is {_shown(body.get('iss'))}, and not {rules.expected_issuer}")
        if rules.expected_audience:
            audience = body.get("aud")
            found = [audience] if isinstance(audience, str) else audience if isinstance(audience, list) else []
            if not any(each in rules.expected_audience for each in found if isinstance(each, str)):
                raise TokenRefused(f"its audience is {_shown(audience)}, and has none of {', '.join(rules.expected_audience)}")
        scope = body.get(rules.scope_claim)
        words = [scope] if isinstance(scope, str) else scope if isinstance(scope, list) else []
        if not all(isinstance(word, str) and word.strip() for word in words) or len(set(words)) != len(words):
            raise TokenRefused(f"its claim {rules.scope_claim} has an empty word or one twice")
        return Claims(name, expires_ms)

    return check


def _read(token: str) -> tuple[Mapping[str, Any], Mapping[str, Any], bytes, bytes]:
    """Header, body, the signed bytes and the signature."""
    parts = token.split(".")
    if len(parts) != _PARTS:
        raise TokenRefused(f"a JSON Web Token has three parts with dots between them, and this one has {len(parts)}")
    header, body, signature = parts
    return _object(header, "header"), _object(body, "body"), f"{header}.{body}".encode(), _decoded(signature, "signature")


def _object(text: str, what: str) -> Mapping[str, Any]:
    try:
        found = json.loads(_decoded(text, what), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise TokenRefused(f"its {what} is no JSON object")
    return found


def _decoded(text: str, what: str) -> bytes:
    try:
        if "+" in text or "/" in text or "~" in text:
            raise ValueError("not of the URL-safe alphabet")
        return urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (Base64Error, ValueError):
        raise TokenRefused(f"its {what} is not Base64 for URLs") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _name(body: Mapping[str, Any], claim: str) -> str:
    name = body.get(claim)
    if not isinstance(name, str) or not name.strip():
        raise TokenRefused(f"its claim {claim}, which has the user's name, is missing or empty")
    return name


def _time_ms(body: Mapping[str, Any], claim: str, is_required: bool = True) -> Any:
    """The time in a claim, in ms; None if there is none and none is required."""
    value = body.get(claim)
    if value is None and not is_required:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or abs(value) > 1 << 52:
        raise TokenRefused(f"its claim {claim} is no time")
    return round(value * 1000)


def _check_expiry(expires_ms: int, now_ms: int, skew_ms: int) -> None:
    if now_ms - skew_ms >= expires_ms:
        raise TokenRefused(f"it expired {(now_ms - expires_ms) / 1000:.0f} s ago")


def _scope(body: Mapping[str, Any], claim: str) -> set[str]:
    scope = body.get(claim)
    if isinstance(scope, str):
        return set(scope.split())
    return {word for word in scope if isinstance(word, str)} if isinstance(scope, list) else set()


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"
