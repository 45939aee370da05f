"""DescribeDelegationTokenRequest, DescribeDelegationTokenResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import EMPTY, Message, Struct


class DescribeDelegationTokenOwner(Struct):
    __slots__ = ("principal_type", "principal_name")

    def __init__(
        self,
        *,
        principal_type: str = "",
        principal_name: str = "",
    ) -> None:
        self.principal_type = principal_type
        self.principal_name = principal_name
        self.unknown_tags = None


class DescribeDelegationTokenRequest(Message):
    __slots__ = ("owners",)

    def __init__(
        self,
        *,
        owners: list[DescribeDelegationTokenOwner] | None = EMPTY,
    ) -> None:
        self.owners = [] if owners is EMPTY else owners
        self.unknown_tags = None

    KEY = 41
    SCHEMA = """\
DescribeDelegationTokenRequest key=41 type=request listeners=broker,controller versions=1-3 flexible=2+
  Owners []DescribeDelegationTokenOwner 0+ nullable=0+
    PrincipalType string 0+
    PrincipalName string 0+
"""
    STRUCTS = (DescribeDelegationTokenOwner,)


class DescribedDelegationTokenRenewer(Struct):
    __slots__ = ("principal_type", "principal_name")

    def __init__(
        self,
        *,
        principal_type: str = "",
        principal_name: str = "",
    ) -> None:
        self.principal_type = principal_type
        self.principal_name = principal_name
        self.unknown_tags = None


class DescribedDelegationToken(Struct):
    __slots__ = ("principal_type", "principal_name", "token_requester_principal_type", "token_requester_principal_name", "issue_timestamp", "expiry_timestamp", "max_timestamp", "token_id", "hmac", "renewers")

    def __init__(
        self,
        *,
        principal_type: str = "",
        principal_name: str = "",
        token_requester_principal_type: str = "",
        token_requester_principal_name: str = "",
        issue_timestamp: int = 0,
        expiry_timestamp: int = 0,
        max_timestamp: int = 0,
        token_id: str = "",
        hmac: bytes = b"",
        renewers: list[DescribedDelegationTokenRenewer] = EMPTY,
    ) -> None:
        self.principal_type = principal_type
        self.principal_name = principal_name
        self.token_requester_principal_type = token_requester_principal_type
        self.token_requester_principal_name = token_requester_principal_name
        self.issue_timestamp = issue_timestamp
        self.expiry_timestamp = expiry_timestamp
        self.max_timestamp = max_timestamp
        self.token_id = token_id
        self.hmac = hmac
        self.renewers = [] if renewers is EMPTY else renewers
        self.unknown_tags = None


class DescribeDelegationTokenResponse(Message):
    __slots__ = ("error_code", "tokens", "throttle_time_ms")

    def __init__(
        self,
        *,
        error_code: int = 0,
        tokens: list[DescribedDelegationToken] = EMPTY,
        throttle_time_ms: int = 0,
    ) -> None:
        self.error_code = error_code
        self.tokens = [] if tokens is EMPTY else tokens
        self.throttle_time_ms = throttle_time_ms
        self.unknown_tags = None

    KEY = 41
    SCHEMA = """\
DescribeDelegationTokenResponse key=41 type=response versions=1-3 flexible=2+
  ErrorCode int16 0+
  Tokens []DescribedDelegationToken 0+
    PrincipalType string 0+
    PrincipalName string 0+
    TokenRequesterPrincipalType string 3+
    TokenRequesterPrincipalName string 3+
    IssueTimestamp int64 0+
    ExpiryTimestamp int64 0+
    MaxTimestamp int64 0+
    TokenId string 0+
    Hmac bytes 0+
    Renewers []DescribedDelegationTokenRenewer 0+
      PrincipalType string 0+
      PrincipalName string 0+
  ThrottleTimeMs int32 0+
"""
    STRUCTS = (DescribedDelegationToken, DescribedDelegationTokenRenewer)
