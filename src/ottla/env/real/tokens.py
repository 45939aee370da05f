"""Tokens from an OAuth 2.0 token endpoint over HTTP, and from files (`env/tokens.py` is the contract).

Requests and answers are those of Kafka's ClientCredentialsJwtRetriever. The proxies of the environment (HTTPS_PROXY, NO_PROXY)
are used. Redirects are not followed: they would carry the secret to another server.
"""

from __future__ import annotations

import http.client
import json
import ssl
import time
import urllib.error
import urllib.request
from base64 import b64encode
from typing import Any
from urllib.parse import quote_plus, urlencode

from ottla.env.real.tls import tls_context
from ottla.env.tls import TlsFailed
from ottla.env.tokens import TokenEndpoint, TokenFailed

ANSWER_MAX_BYTES = 1_000_000
_FINAL = frozenset({*range(300, 500), 501, 505}) - {408, 425, 429}
"""HTTP statuses that another attempt does not change."""


class _Again(Exception):
    """Another attempt may succeed."""


class RealTokenSources:
    """`TokenSources` over HTTP and files."""

    def from_endpoint(self, endpoint: TokenEndpoint) -> tuple[str, float | None]:
        deadline_s = time.monotonic() + endpoint.backoff_max_ms / 1000
        wait_s = endpoint.backoff_ms / 1000
        attempts = 0
        while True:
            attempts += 1
            try:
                return _ask(endpoint)
            except _Again as error:
                left_s = deadline_s - time.monotonic()
                if left_s <= 0:
                    times = f"after {attempts} attempts" if attempts > 1 else "at the first attempt"
                    raise TokenFailed(f"{error} ({times})") from error.__cause__
            time.sleep(min(wait_s, left_s))
            wait_s *= 2

    def from_file(self, path: str) -> str:
        where = f"the token file {path} (sasl.oauthbearer.token.endpoint.url)"
        try:
            with open(path, encoding="utf-8") as file:
                token = file.read(ANSWER_MAX_BYTES).strip()
        except FileNotFoundError:
            raise TokenFailed(f"{where} does not exist: check the path, and that it is mounted where the client runs") from None
        except (OSError, UnicodeDecodeError) as error:
            raise TokenFailed(f"{where} cannot be read: {getattr(error, 'strerror', None) or error}") from None
        if not token:
            raise TokenFailed(f"{where} is empty: it must have one token")
        return token


def _ask(endpoint: TokenEndpoint) -> tuple[str, float | None]:
    """One request. Raises `TokenFailed`, or `_Again`."""
    where = f"the token endpoint {endpoint.url}"
    now_s = time.time()
    try:
        with _opener(endpoint).open(_request(endpoint), timeout=endpoint.connect_timeout_ms / 1000) as response:
            return _token(where, response.read(ANSWER_MAX_BYTES), now_s)
    except urllib.error.HTTPError as error:
        with error:
            text = f"{where} answered {error.code} {error.reason}{_reason(error)}"
        if error.code not in _FINAL:
            raise _Again(f"{text}: it has a problem of its own, try later") from None
        if error.code < 400:
            target = error.headers.get("Location") or "another address"
            raise TokenFailed(f"{text}: it redirects to {target}; give that address itself, if it is right") from None
        raise TokenFailed(f"{text}: check the URL, the client id, its secret and sasl.oauthbearer.scope") from None
    except TlsFailed as error:
        raise TokenFailed(f"{where} cannot be asked: {error}") from None
    except (OSError, http.client.HTTPException) as error:
        cause = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(cause, ssl.SSLError):
            raise TokenFailed(f"{where} cannot be asked: {_tls_text(cause)}") from None
        timeouts = f"connecting within {endpoint.connect_timeout_ms} ms, an answer within {endpoint.read_timeout_ms} ms"
        problem = f"no answer in time ({timeouts})" if isinstance(cause, TimeoutError) else _shown(cause)
        raise _Again(f"{where} cannot be reached: {problem}. Check the URL and the network") from error


def _opener(endpoint: TokenEndpoint) -> urllib.request.OpenerDirector:
    read_timeout_s = endpoint.read_timeout_ms / 1000
    handlers: list[urllib.request.BaseHandler] = [_NoRedirect(), _Http(read_timeout_s)]
    if endpoint.url.lower().startswith("https:"):
        handlers.append(_Https(read_timeout_s, tls_context(endpoint.tls)))
    return urllib.request.build_opener(*handlers)


def _request(endpoint: TokenEndpoint) -> urllib.request.Request:
    client_id, secret = endpoint.client_id, endpoint.client_secret
    if endpoint.urlencode:
        client_id, secret = quote_plus(client_id), quote_plus(secret)
    form = {"grant_type": "client_credentials"}
    if endpoint.scope:
        form["scope"] = endpoint.scope
    headers = {
        "Accept": "application/json",
        "Authorization": "Basic " + b64encode(f"{client_id}:{secret}".encode()).decode(),
        "Cache-Control": "no-cache",
        "Content-Type": "application/x-www-form-urlencoded",
        "User-Agent": "ottla",
    }
    return urllib.request.Request(endpoint.url, urlencode(form).encode(), headers, method="POST")


def _token(where: str, answer: bytes, now_s: float) -> tuple[str, float | None]:
    try:
        found: Any = json.loads(answer)
    except ValueError:
        raise TokenFailed(f"{where} answered no JSON: check that it is the URL of the tokens, not of a page") from None
    fields = found if isinstance(found, dict) else {}
    token = fields.get("access_token") or fields.get("id_token")
    if not isinstance(token, str):
        raise TokenFailed(f"{where} answered without access_token: check that it is an OAuth 2.0 token endpoint")
    lifetime_s = fields.get("expires_in")
    try:
        return token, None if lifetime_s is None else now_s + float(lifetime_s)
    except (TypeError, ValueError):
        return token, None


def _reason(error: urllib.error.HTTPError) -> str:
    """What the body of a refusal says, by the names that servers use."""
    try:
        found = json.loads(error.read(ANSWER_MAX_BYTES))
    except (ValueError, OSError, http.client.HTTPException):
        return ""
    if not isinstance(found, dict):
        return ""
    names = ("error", "errorCode"), ("error_description", "errorSummary", "errorMessage")
    said = [next((str(found[name]) for name in group if found.get(name)), "") for group in names]
    shown = ": ".join(" ".join(part.split())[:300] for part in said if part)
    return f" ({shown})" if shown else ""


def _tls_text(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"its certificate is not trusted ({error.verify_message}): name its authority by the option "
            "ssl.truststore.location of sasl.jaas.config"
        )
    reason = (error.reason or str(error)).lower().replace("_", " ")
    return f"TLS fails ({reason}): check that the URL is one of https"


def _shown(error: object) -> str:
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).lower()


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


class _Http(urllib.request.HTTPHandler):
    def __init__(self, read_timeout_s: float) -> None:
        super().__init__()
        self._read_timeout_s = read_timeout_s

    def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        def connection(host: str, /, **options: Any) -> http.client.HTTPConnection:
            return _connection(http.client.HTTPConnection, self._read_timeout_s, host, options)

        return self.do_open(connection, request)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, read_timeout_s: float, context: ssl.SSLContext) -> None:
        super().__init__(context=context)
        self._read_timeout_s = read_timeout_s
        self._ssl_context = context

    def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        def connection(host: str, /, **options: Any) -> http.client.HTTPConnection:
            return _connection(
                http.client.HTTPSConnection, self._read_timeout_s, host, {**options, "context": self._ssl_context}
            )

        return self.do_open(connection, request)


def _connection(
    kind: type[http.client.HTTPConnection], read_timeout_s: float, host: str, options: dict[str, Any]
) -> http.client.HTTPConnection:
    """A connection that waits for answers as long as `read_timeout_s`, whatever its limit for connecting is."""

    class Connection(kind):  # type: ignore[misc, valid-type]
        def connect(self) -> None:
            super().connect()
            self.sock.settimeout(read_timeout_s)

    return Connection(host, **options)
