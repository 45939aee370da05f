"""What a link needs to know about security: TLS and SASL, as plain values. Checks their combination, does nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ottla.env.tls import TlsOptions

if TYPE_CHECKING:
    from ottla.link.tokens import SharedToken, TokenCache

PLAIN: Final = "PLAIN"
SCRAM_SHA_256: Final = "SCRAM-SHA-256"
SCRAM_SHA_512: Final = "SCRAM-SHA-512"
OAUTHBEARER: Final = "OAUTHBEARER"
MECHANISMS: Final = (PLAIN, SCRAM_SHA_256, SCRAM_SHA_512, OAUTHBEARER)

Token = str | tuple[str, float | None, Mapping[str, str]]
"""A bearer token; or the token, when it expires (seconds since the Unix epoch, None if unknown) and its SASL extensions."""

TokenProvider = Callable[[], Token | Awaitable[Token]]


@dataclass(frozen=True, slots=True)
class SaslOptions:
    """How to log in. Raises `ValueError` if a part that the mechanism needs is missing."""

    mechanism: str
    username: str = ""
    password: str = field(default="", repr=False)
    token: TokenProvider | TokenCache | SharedToken | None = field(default=None, repr=False)
    """OAUTHBEARER: called for every login; a cache, when a new token is due. A plain function runs in a worker thread, because
    it may ask a server."""
    is_delegation_token: bool = False
    """SCRAM: `username` and `password` are id and HMAC of a delegation token (Kafka's `tokenauth`)."""

    def __post_init__(self) -> None:
        if self.mechanism not in MECHANISMS:
            raise ValueError(
                f"the SASL mechanism {self.mechanism} is not supported: choose among {', '.join(MECHANISMS)} (sasl.mechanism)"
            )
        if self.mechanism == OAUTHBEARER:
            if self.token is None:
                raise ValueError("OAUTHBEARER needs a function that returns a token, and there is none")
        elif not self.username or not self.password:
            missing = "password" if self.username else "user name"
            raise ValueError(f"{self.mechanism} needs a user name and a password: the {missing} is missing")
        if "\0" in self.username + self.password:
            raise ValueError("a user name and a password cannot contain a zero character")


@dataclass(frozen=True, slots=True)
class LinkSecurity:
    """TLS and SASL of a link; None: without."""

    tls: TlsOptions | None = None
    sasl: SaslOptions | None = None


NO_SECURITY: Final = LinkSecurity()
