"""Requests to a schema registry outside the process. Calls block: for worker threads.

`env/real/schema_registry.py` implements it.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol


class RegistryAddress(NamedTuple):
    """Where a schema registry is, and who asks."""

    urls: tuple[str, ...]
    """They are tried in turn."""
    user_info: str | None = None
    """`user:password`; None: nobody logs in."""
    timeout_s: float = 5.0


class RegistryFailed(Exception):
    """The registry does not answer, or not as a registry does. The text says what happened and what to do."""


class SchemaRegistries(Protocol):
    """Asks schema registries."""

    def get(self, address: RegistryAddress, path: str) -> bytes | None:
        """The answer to GET `path`, or None if the registry has no such thing (404). Raises `RegistryFailed`."""
        ...
