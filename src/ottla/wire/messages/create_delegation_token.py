"""CreateDelegationTokenRequest, CreateDelegationTokenResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import EMPTY, Message, Struct


class CreatableRenewers(Struct):
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


class CreateDelegationTokenRequest(Message):
    __slots__ = ("owner_principal_type", "owner_principal_name", "renewers", "max_lifetime_ms")

    def __init__(
        self,
        *,
        owner_principal_type: str | None = "",
        owner_principal_name: str | None = "",
        renewers: list[CreatableRenewers] = EMPTY,
        max_lifetime_ms: int = 0,
    ) -> None:
        self.owner_principal_type = owner_principal_type
        self.owner_principal_name = owner_principal_name
        self.renewers = [] if renewers is EMPTY else renewers
        self.max_lifetime_ms = max_lifetime_ms
        self.unknown_tags = None

    KEY = 38
    SCHEMA = """\
CreateDelegationTokenRequest key=38 type=request listeners=broker,controller versions=1-3 flexible=2+
  OwnerPrincipalType string 3+ nullable=3+
  OwnerPrincipalName string 3+ nullable=3+
  Renewers []CreatableRenewers 0+
    PrincipalType string 0+
    PrincipalName string 0+
  MaxLifetimeMs int64 0+
"""
    STRUCTS = (CreatableRenewers,)


class CreateDelegationTokenResponse(Message):
    __slots__ = ("error_code", "principal_type", "principal_name", "token_requester_principal_type", "token_requester_principal_name", "issue_timestamp_ms", "expiry_timestamp_ms", "max_timestamp_ms", "token_id", "hmac", "throttle_time_ms")

    def __init__(
        self,
        *,
        error_code: int = 0,
        principal_type: str = "",
        principal_name: str = "",
        token_requester_principal_type: str = "",
        token_requester_principal_name: str = "",
        issue_timestamp_ms: int = 0,
        expiry_timestamp_ms: int = 0,
        max_timestamp_ms: int = 0,
        token_id: str = "",
        hmac: bytes = b"",
        throttle_time_ms: int = 0,
    ) -> None:
        self.error_code = error_code
        self.principal_type = principal_type
        self.principal_name = principal_name
        self.token_requester_principal_type = token_requester_principal_type
        self.token_requester_principal_name = token_requester_principal_name
        self.issue_timestamp_ms = issue_timestamp_ms
        self.expiry_timestamp_ms = expiry_timestamp_ms
        self.max_timestamp_ms = max_timestamp_ms
        self.token_id = token_id
        self.hmac = hmac
        self.throttle_time_ms = throttle_time_ms
        self.unknown_tags = None

    KEY = 38
    SCHEMA = """\
CreateDelegationTokenResponse key=38 type=response versions=1-3 flexible=2+
  ErrorCode int16 0+
  PrincipalType string 0+
  PrincipalName string 0+
  TokenRequesterPrincipalType string 3+
  TokenRequesterPrincipalName string 3+
  IssueTimestampMs int64 0+
  ExpiryTimestampMs int64 0+
  MaxTimestampMs int64 0+
  TokenId string 0+
  Hmac bytes 0+
  ThrottleTimeMs int32 0+
"""
    STRUCTS = ()
