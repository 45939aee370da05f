"""Where key sets (JWKS) come from outside the process: a file, or a server over HTTPS. Calls block: for worker threads.

`env/real/key_sets.py` implements it.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from ottla.env.tls import TlsOptions


class KeySetAddress(NamedTuple):
    """Where the key set of an issuer is."""

    url: str
    """`file:///…` or `https://…`."""
    connect_timeout_ms: int = 10_000
    read_timeout_ms: int = 10_000
    tls: TlsOptions = TlsOptions()

    @property
    def is_file(self) -> bool:
        return self.url.lower().startswith("file:")


class KeySetFailed(Exception):
    """The key set cannot be read. The text says what happened and what to do."""


class KeySets(Protocol):
    """Reads key sets."""

    def read(self, address: KeySetAddress) -> bytes:
        """The document. Raises `KeySetFailed`."""
        ...
