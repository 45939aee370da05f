"""The APIs of the protocol: which there are, in which versions, on which listeners, and with which message classes.

A broker advertises the versions of the schemas, with two exceptions: `ADVERTISED_OLDEST`, and an unstable newest version.
Message classes are imported on first use.
"""

from importlib import import_module
from typing import Final

from ottla.wire.api_table import ROWS, ApiKey
from ottla.wire.base import Message

__all__ = ["ADVERTISED_OLDEST", "APIS", "Api", "ApiKey"]

ADVERTISED_OLDEST: Final = {ApiKey.PRODUCE: 0}
"""Produce 0 to 2 were removed but are advertised: older librdkafka checks the oldest version before it compresses."""


class Api:
    """One API. `flexible_from` is the first flexible version, or -1; a removed API has no versions at all."""

    __slots__ = (
        "_request_class",
        "_response_class",
        "flexible_from",
        "is_cluster_action",
        "is_forwardable",
        "is_latest_unstable",
        "key",
        "listeners",
        "name",
        "newest",
        "oldest",
    )

    def __init__(self, row: tuple[int, str, int, int, int, str, bool, bool, bool]) -> None:
        self.key, self.name, self.oldest, self.newest, self.flexible_from, listeners, *flags = row
        self.listeners: tuple[str, ...] = tuple(listeners.split(",")) if listeners else ()
        self.is_cluster_action, self.is_forwardable, self.is_latest_unstable = flags
        self._request_class: type[Message] | None = None
        self._response_class: type[Message] | None = None

    def __repr__(self) -> str:
        return f"Api({self.key} {self.name} {self.oldest}-{self.newest})"

    @property
    def is_removed(self) -> bool:
        return self.newest < self.oldest

    def has_version(self, version: int) -> bool:
        return self.oldest <= version <= self.newest

    def is_flexible(self, version: int) -> bool:
        """Whether `version` is flexible. Also answers for unknown newer versions, whose headers must still be read."""
        return 0 <= self.flexible_from <= version

    def advertised(self, unstable: bool = False) -> tuple[int, int]:
        """The oldest and newest version to announce in ApiVersions; `unstable` includes an unstable newest one."""
        newest = self.newest - 1 if self.is_latest_unstable and not unstable else self.newest
        return ADVERTISED_OLDEST.get(self.key, self.oldest), newest

    @property
    def request_class(self) -> type[Message]:
        if self._request_class is None:
            self._request_class = self._find("Request")
        return self._request_class

    @property
    def response_class(self) -> type[Message]:
        if self._response_class is None:
            self._response_class = self._find("Response")
        return self._response_class

    def _find(self, ending: str) -> type[Message]:
        if self.is_removed:
            raise LookupError(f"the API {self.name} was removed from the protocol and has no messages")
        module = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in self.name).lstrip("_")
        found: type[Message] = getattr(import_module(f"ottla.wire.messages.{module}"), self.name + ending)
        return found


APIS: Final[dict[int, Api]] = {row[0]: Api(row) for row in ROWS}
"""Every API by key, including removed ones."""
