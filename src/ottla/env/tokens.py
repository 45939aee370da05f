"""Where bearer tokens for OAUTHBEARER come from outside the process: a token endpoint (OAuth 2.0) or a file.

Calls block: the caller is a worker thread. `env/real/tokens.py` implements them.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from ottla.env.tls import TlsOptions


class TokenEndpoint(NamedTuple):
    """A server that hands out tokens for a client's id and secret (the grant `client_credentials`)."""

    url: str
    client_id: str
    client_secret: str
    scope: str | None = None
    urlencode: bool = False
    """Whether id and secret are URL-encoded in the header, as RFC 6749 wants it and few servers do."""
    connect_timeout_ms: int = 10_000
    read_timeout_ms: int = 10_000
    backoff_ms: int = 100
    backoff_max_ms: int = 10_000
    """How long attempts are repeated."""
    tls: TlsOptions = TlsOptions()

    def __repr__(self) -> str:
        return f"TokenEndpoint({self.url}, client_id={self.client_id!r})"


class TokenFailed(Exception):
    """There is no token. The text says what happened and what to do."""


class TokenSources(Protocol):
    """Both raise `TokenFailed`."""

    def from_endpoint(self, endpoint: TokenEndpoint) -> tuple[str, float | None]:
        """A token and when it expires, in seconds since 1970; None if the endpoint does not say."""
        ...

    def from_file(self, path: str) -> str: ...
