"""DefaultPrincipalData. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import Message


class DefaultPrincipalData(Message):
    __slots__ = ("type", "name", "token_authenticated")

    def __init__(
        self,
        *,
        type: str = "",
        name: str = "",
        token_authenticated: bool = False,
    ) -> None:
        self.type = type
        self.name = name
        self.token_authenticated = token_authenticated
        self.unknown_tags = None

    SCHEMA = """\
DefaultPrincipalData type=data versions=0 flexible=0+
  Type string 0+
  Name string 0+
  TokenAuthenticated bool 0+
"""
    STRUCTS = ()
