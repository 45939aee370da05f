"""DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import EMPTY, Message, Struct


class UserName(Struct):
    __slots__ = ("name",)

    def __init__(
        self,
        *,
        name: str = "",
    ) -> None:
        self.name = name
        self.unknown_tags = None


class DescribeUserScramCredentialsRequest(Message):
    __slots__ = ("users",)

    def __init__(
        self,
        *,
        users: list[UserName] | None = EMPTY,
    ) -> None:
        self.users = [] if users is EMPTY else users
        self.unknown_tags = None

    KEY = 50
    SCHEMA = """\
DescribeUserScramCredentialsRequest key=50 type=request listeners=broker,controller versions=0 flexible=0+
  Users []UserName 0+ nullable=0+
    Name string 0+
"""
    STRUCTS = (UserName,)


class CredentialInfo(Struct):
    __slots__ = ("mechanism", "iterations")

    def __init__(
        self,
        *,
        mechanism: int = 0,
        iterations: int = 0,
    ) -> None:
        self.mechanism = mechanism
        self.iterations = iterations
        self.unknown_tags = None


class DescribeUserScramCredentialsResult(Struct):
    __slots__ = ("user", "error_code", "error_message", "credential_infos")

    def __init__(
        self,
        *,
        user: str = "",
        error_code: int = 0,
        error_message: str | None = "",
        credential_infos: list[CredentialInfo] = EMPTY,
    ) -> None:
        self.user = user
        self.error_code = error_code
        self.error_message = error_message
        self.credential_infos = [] if credential_infos is EMPTY else credential_infos
        self.unknown_tags = None


class DescribeUserScramCredentialsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "results")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        results: list[DescribeUserScramCredentialsResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.results = [] if results is EMPTY else results
        self.unknown_tags = None

    KEY = 50
    SCHEMA = """\
DescribeUserScramCredentialsResponse key=50 type=response versions=0 flexible=0+
  ThrottleTimeMs int32 0+
  ErrorCode int16 0+
  ErrorMessage string 0+ nullable=0+
  Results []DescribeUserScramCredentialsResult 0+
    User string 0+
    ErrorCode int16 0+
    ErrorMessage string 0+ nullable=0+
    CredentialInfos []CredentialInfo 0+
      Mechanism int8 0+
      Iterations int32 0+
"""
    STRUCTS = (DescribeUserScramCredentialsResult, CredentialInfo)
