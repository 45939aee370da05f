"""The settings of the authorizer: `authorizer.class.name`, and those that Kafka's StandardAuthorizer reads by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ottla.config.values import InvalidConfig

CLASS: Final = "authorizer.class.name"
SUPER_USERS: Final = "super.users"
ALLOW_EVERYONE: Final = "allow.everyone.if.no.acl.found"
STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_SHORT: Final = "StandardAuthorizer"


class AuthorizerConfig(NamedTuple):
    """Of a node with an authorizer."""

    super_users: frozenset[str] = frozenset()
    """Principals, such as `User:admin`, that may do everything."""
    allow_everyone: bool = False
    """Whether everybody may do everything with what no binding covers."""

    @classmethod
    def from_settings(cls, settings: Mapping[str, str]) -> AuthorizerConfig | None:
        """None without an authorizer: everything is allowed. Raises `InvalidConfig`."""
        name = settings.get(CLASS, "").strip()
        if not name:
            return None
        if name not in (STANDARD_AUTHORIZER, _SHORT):
            raise InvalidConfig(
                CLASS, f"{CLASS} is {name}, which cannot run here: Ottla's authorizer decides as Kafka's {STANDARD_AUTHORIZER}"
            )
        is_everyone = settings.get(ALLOW_EVERYONE, "").strip().lower() == "true"  # as Java reads it: all else is false
        return cls(frozenset(_principals(settings.get(SUPER_USERS, ""))), is_everyone)


def _principals(text: str) -> list[str]:
    """The entries between semicolons, each compared as a whole: the names of certificates have commas."""
    principals = [entry for entry in map(str.strip, text.split(";")) if entry]
    for entry in principals:
        type_, _, name = entry.partition(":")
        if not type_ or not name:
            raise InvalidConfig(
                SUPER_USERS, f"{SUPER_USERS} has {entry!r}: each entry must be a principal such as User:admin, separated by ;"
            )
    return principals
