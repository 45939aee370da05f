"""Who uses the console: nobody in particular, whom a reverse proxy names in a header, or whom an OpenID provider has logged in.

What a user may do is decided by groups: editors may change things where the console allows changes, viewers look. Where groups
of viewers are named, others are refused.

The login with OpenID Connect is the authorization code flow with PKCE. The ID token's signature is checked with the provider's
key set, and its issuer, audience, expiry and nonce. Sessions are kept in memory: a restarted console asks for a login again,
which a provider that still knows the user answers without a page.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import ipaddress
import json
import secrets
import time
import urllib.error
import urllib.request
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ottla.broker.authentication.bearer import TokenRefused
from ottla.broker.authentication.jwt import SignedRules, signed_check
from ottla.broker.authentication.key_set import InvalidKeySet, KeySet, parse_key_set
from ottla.errors import OttlaError

LOGIN_COOKIE = "ottla_login"
STATE_COOKIE = "ottla_login_state"
CALLBACK, LOGOUT = "/login/callback", "/logout"
STATE_S = 600.0
SESSION_S = 8 * 3600.0
SESSIONS_MAX = 10_000
ANSWER_S = 5.0
ANSWER_BYTES_MAX = 1 << 20
KEYS_S = 600.0
"""How long a key set is used without looking for a newer one."""
PAUSE_S = 10.0
"""A key set is not asked for again within this time, whatever tokens say."""


class LoginRefused(OttlaError):
    """Who asks is not known, or may not use the console."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class User(NamedTuple):
    """Who asks, as a proxy or a provider said; no name where nobody logs in."""

    name: str = ""
    groups: tuple[str, ...] = ()
    is_editor: bool = True
    can_log_out: bool = False


@dataclass(frozen=True, slots=True)
class Roles:
    """Which groups may what."""

    editors: frozenset[str] = frozenset()
    viewers: frozenset[str] = frozenset()
    """Empty: everybody who has logged in may look."""

    def user(self, name: str, groups: Sequence[str], *, can_log_out: bool = False) -> User:
        """The user with the role that the groups give. Raises `LoginRefused` if they give none."""
        found = frozenset(groups)
        is_editor = bool(found & self.editors)
        if self.viewers and not is_editor and not found & self.viewers:
            raise LoginRefused(
                403, f"{name} is in none of the groups that may use this console: {', '.join(sorted(self.viewers))}"
            )
        return User(name, tuple(groups), is_editor, can_log_out)


class Access(Protocol):
    """How users become known."""

    async def user(self, request: Request, *, is_api: bool) -> User | Response:
        """Who asks, or what to answer instead of a page. Raises `LoginRefused`."""
        ...


class Everybody:
    """No login: everybody who reaches the console may use it."""

    async def user(self, request: Request, *, is_api: bool) -> User | Response:
        return User()


@dataclass(frozen=True, slots=True)
class ProxyLogin:
    """A reverse proxy logs users in and names them in headers, which count only from its addresses."""

    header: str
    groups_header: str | None
    trusted: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]
    roles: Roles

    async def user(self, request: Request, *, is_api: bool) -> User | Response:
        address = request.client.host if request.client is not None else ""
        try:
            is_trusted = any(ipaddress.ip_address(address) in each for each in self.trusted)
        except ValueError:
            is_trusted = False
        if not is_trusted:
            raise LoginRefused(401, f"{address or 'this address'} is none of the trusted proxies: use the console by its proxy")
        names = request.headers.getlist(self.header)
        if len(names) != 1 or not names[0].strip():
            raise LoginRefused(
                401, f"the proxy has to send one header {self.header} with the user's name, and sent {len(names)}"
            )
        groups = request.headers.getlist(self.groups_header) if self.groups_header is not None else []
        return self.roles.user(names[0].strip(), [each.strip() for text in groups for each in text.split(",") if each.strip()])


@dataclass(frozen=True, slots=True)
class Provider:
    """An OpenID provider, and this console as it knows it."""

    issuer: str
    client_id: str
    client_secret: str = ""
    """Empty: a public client, which PKCE alone protects."""
    scopes: str = "openid profile email groups"
    name_claim: str = "preferred_username"
    groups_claim: str = "groups"
    redirect: str = ""
    """The console's address for browsers; empty: the one that they used."""


class _Begun(NamedTuple):
    """A login that has begun."""

    verifier: str
    nonce: str
    target: str
    redirect: str
    until_s: float


class OpenIdLogin:
    """The authorization code flow with PKCE."""

    def __init__(self, provider: Provider, roles: Roles) -> None:
        self._provider = provider
        self._roles = roles
        self._begun: OrderedDict[str, _Begun] = OrderedDict()
        self._sessions: OrderedDict[str, tuple[User, float]] = OrderedDict()
        self._about: dict[str, Any] | None = None
        self._keys = _Keys()

    async def user(self, request: Request, *, is_api: bool) -> User | Response:
        path = request.url.path
        if path == CALLBACK:
            return await self._finish(request)
        session = request.cookies.get(LOGIN_COOKIE, "")
        if path == LOGOUT:
            self._sessions.pop(session, None)
            response = Response("You are logged out of the console. ", media_type="text/plain")
            response.delete_cookie(LOGIN_COOKIE)
            return response
        found = self._sessions.get(session)
        if found is not None and found[1] > time.monotonic():
            return found[0]
        if is_api or request.method not in ("GET", "HEAD"):
            raise LoginRefused(401, "log in first: load a page of the console in this browser")
        return await self._begin(request)

    async def _begin(self, request: Request) -> Response:
        about = await self._discover()
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        # One slash: `//host` would lead a browser to another host.
        path = "/" + request.scope["raw_path"].decode("latin-1").lstrip("/")
        target = path + (f"?{request.url.query}" if request.url.query else "")
        redirect = (self._provider.redirect or f"{request.url.scheme}://{request.headers.get('host', '')}").rstrip(
            "/"
        ) + CALLBACK
        self._begun[state] = _Begun(verifier, nonce, target, redirect, time.monotonic() + STATE_S)
        while len(self._begun) > SESSIONS_MAX:
            self._begun.popitem(last=False)
        query = {
            "response_type": "code",
            "client_id": self._provider.client_id,
            "redirect_uri": redirect,
            "scope": self._provider.scopes,
            "state": state,
            "nonce": nonce,
            "code_challenge": _base64(hashlib.sha256(verifier.encode()).digest()),
            "code_challenge_method": "S256",
        }
        where = about["authorization_endpoint"]
        response = RedirectResponse(f"{where}{'&' if '?' in where else '?'}{urlencode(query)}", 302)
        # Lax: the provider's redirect back is a navigation from elsewhere, for which strict cookies are not sent.
        response.set_cookie(STATE_COOKIE, state, httponly=True, samesite="lax", max_age=int(STATE_S), path=CALLBACK)
        response.headers["Cache-Control"] = "no-store"
        return response

    async def _finish(self, request: Request) -> Response:
        query = request.query_params
        state = query.get("state", "")
        begun = self._begun.pop(state, None)
        if begun is None or begun.until_s < time.monotonic() or request.cookies.get(STATE_COOKIE) != state:
            raise LoginRefused(400, "this login was not begun here, or too long ago: load the page that you want again")
        if "error" in query:
            said = query.get("error_description") or query["error"]
            raise LoginRefused(403, f"the login was refused: {said}")
        form = {
            "grant_type": "authorization_code",
            "code": query.get("code", ""),
            "redirect_uri": begun.redirect,
            "client_id": self._provider.client_id,
            "code_verifier": begun.verifier,
        }
        if self._provider.client_secret:
            form["client_secret"] = self._provider.client_secret
        about = await self._discover()
        answer = await _ask(about["token_endpoint"], form)
        claims = await self._claims(str(answer.get("id_token", "")), about)
        if not secrets.compare_digest(str(claims.get("nonce", "")), begun.nonce):
            raise LoginRefused(403, "the login was refused: the ID token belongs to another login")
        name = claims.get(self._provider.name_claim) or claims.get("email") or claims.get("sub")
        groups = claims.get(self._provider.groups_claim) or []
        names = [groups] if isinstance(groups, str) else [str(each) for each in groups] if isinstance(groups, list) else []
        user = self._roles.user(str(name), names, can_log_out=True)
        session = secrets.token_urlsafe(32)
        self._sessions[session] = user, time.monotonic() + SESSION_S
        while len(self._sessions) > SESSIONS_MAX:
            self._sessions.popitem(last=False)
        response = RedirectResponse(begun.target, 302)
        is_secure = urlsplit(begun.redirect).scheme == "https"
        response.set_cookie(
            LOGIN_COOKIE, session, httponly=True, samesite="lax", secure=is_secure, max_age=int(SESSION_S), path="/"
        )
        response.delete_cookie(STATE_COOKIE, path=CALLBACK)
        return response

    async def _claims(self, token: str, about: Mapping[str, Any]) -> Mapping[str, Any]:
        """The claims of an ID token that is genuine, for this console and not over."""
        rules = SignedRules("sub", expected_audience=(self._provider.client_id,), expected_issuer=self._provider.issuer)
        for is_new in (False, True):
            keys = await self._keys.get(about["jwks_uri"], is_new=is_new)
            try:
                signed_check(rules, keys)(token, int(time.time() * 1000))
            except TokenRefused as refused:
                problem = str(refused)
                continue
            body = token.split(".")[1]
            found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
            return found
        raise LoginRefused(403, f"the login was refused: the provider's ID token is not valid: {problem}")

    async def _discover(self) -> dict[str, Any]:
        """What the provider says of itself."""
        if self._about is None:
            about = await _ask(f"{self._provider.issuer.rstrip('/')}/.well-known/openid-configuration")
            if about.get("issuer") != self._provider.issuer:
                raise LoginRefused(
                    502,
                    f"the OpenID provider calls itself {about.get('issuer')}, and the console was told {self._provider.issuer}",
                )
            missing = [name for name in ("authorization_endpoint", "token_endpoint", "jwks_uri") if not about.get(name)]
            if missing:
                raise LoginRefused(502, f"the OpenID provider {self._provider.issuer} does not name its {', '.join(missing)}")
            self._about = about
        return self._about


@dataclass(slots=True)
class _Keys:
    """The provider's key set."""

    found: KeySet = field(default_factory=KeySet)
    asked_s: float = -1e9

    async def get(self, url: str, *, is_new: bool) -> KeySet:
        age_s = time.monotonic() - self.asked_s
        if age_s > KEYS_S or (is_new and age_s > PAUSE_S):
            self.asked_s = time.monotonic()
            try:
                self.found = parse_key_set(json.dumps(await _ask(url)))
            except InvalidKeySet as problem:
                raise LoginRefused(502, f"{url} is no key set: {problem}") from None
            except ImportError:
                raise LoginRefused(
                    500, "logins with OpenID need the package cryptography: pip install 'ottla[security]'"
                ) from None
        return self.found


async def _ask(url: str, form: Mapping[str, str] | None = None) -> dict[str, Any]:
    """A JSON object from the provider."""

    def call() -> dict[str, Any]:
        data = None if form is None else urlencode(form).encode()
        request = urllib.request.Request(url, data, {"Accept": "application/json"})
        with urllib.request.urlopen(request, timeout=ANSWER_S) as answer:
            found = json.loads(answer.read(ANSWER_BYTES_MAX))
        if not isinstance(found, dict):
            raise ValueError("it is no JSON object")
        return found

    try:
        return await asyncio.to_thread(call)
    except urllib.error.HTTPError as refused:
        said = refused.read(500).decode("utf-8", "replace")
        raise LoginRefused(502, f"the OpenID provider refuses {urlsplit(url).path} with HTTP {refused.code}: {said}") from None
    except (OSError, ValueError) as problem:
        raise LoginRefused(502, f"the OpenID provider at {url} does not answer: {problem}") from None


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
