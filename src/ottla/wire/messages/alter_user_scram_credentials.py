"""AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import EMPTY, Message, Struct


class ScramCredentialUpsertion(Struct):
    __slots__ = ("name", "mechanism", "iterations", "salt", "salted_password")

    def __init__(
        self,
        *,
        name: str = "",
        mechanism: int = 0,
        iterations: int = 0,
        salt: bytes = b"",
        salted_password: bytes = b"",
    ) -> None:
        self.name = name
        self.mechanism = mechanism
        self.iterations = iterations
        self.salt = salt
        self.salted_password = salted_password
        self.unknown_tags = None


class ScramCredentialDeletion(Struct):
    __slots__ = ("name", "mechanism")

    def __init__(
        self,
        *,
        name: str = "",
        mechanism: int = 0,
    ) -> None:
        self.name = name
        self.mechanism = mechanism
        self.unknown_tags = None


class AlterUserScramCredentialsRequest(Message):
    __slots__ = ("deletions", "upsertions")

    def __init__(
        self,
        *,
        deletions: list[ScramCredentialDeletion] = EMPTY,
        upsertions: list[ScramCredentialUpsertion] = EMPTY,
    ) -> None:
        self.deletions = [] if deletions is EMPTY else deletions
        self.upsertions = [] if upsertions is EMPTY else upsertions
        self.unknown_tags = None

    KEY = 51
    SCHEMA = """\
AlterUserScramCredentialsRequest key=51 type=request listeners=broker,controller versions=0 flexible=0+
  Deletions []ScramCredentialDeletion 0+
    Name string 0+
    Mechanism int8 0+
  Upsertions []ScramCredentialUpsertion 0+
    Name string 0+
    Mechanism int8 0+
    Iterations int32 0+
    Salt bytes 0+
    SaltedPassword bytes 0+
"""
    STRUCTS = (ScramCredentialDeletion, ScramCredentialUpsertion)


class AlterUserScramCredentialsResult(Struct):
    __slots__ = ("user", "error_code", "error_message")

    def __init__(
        self,
        *,
        user: str = "",
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.user = user
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tags = None


class AlterUserScramCredentialsResponse(Message):
    __slots__ = ("throttle_time_ms", "results")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[AlterUserScramCredentialsResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is EMPTY else results
        self.unknown_tags = None

    KEY = 51
    SCHEMA = """\
AlterUserScramCredentialsResponse key=51 type=response versions=0 flexible=0+
  ThrottleTimeMs int32 0+
  Results []AlterUserScramCredentialsResult 0+
    User string 0+
    ErrorCode int16 0+
    ErrorMessage string 0+ nullable=0+
"""
    STRUCTS = (AlterUserScramCredentialsResult,)
