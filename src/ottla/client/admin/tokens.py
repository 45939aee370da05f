"""Delegation tokens: create, renew, expire, describe."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ottla.client.admin.checks import INT64_MAX, listed, number
from ottla.client.admin.requests import ask_controller_whole, raise_refused
from ottla.client.cluster import Cluster
from ottla.errors import ArgumentError
from ottla.wire.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from ottla.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from ottla.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse
from ottla.wire.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse

BROKER_DEFAULT = -1


class DelegationToken(NamedTuple):
    """A token, and who may renew it. The hmac is the secret. Times are in ms since 1970."""

    id: str
    hmac: bytes
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued: int
    expires: int
    max_lifetime_ends: int

    def __repr__(self) -> str:
        return f"DelegationToken({self.id!r}, hmac hidden, owner={self.owner!r}, expires={self.expires})"


async def create_delegation_token(
    cluster: Cluster, *, owner: str | None = None, renewers: Iterable[str] = (), max_lifetime_ms: int = BROKER_DEFAULT
) -> DelegationToken:
    """Create a token for the principal of this connection, or for `owner`. Principals are written `User:alice`."""
    number(max_lifetime_ms, "max_lifetime_ms", -1, INT64_MAX)
    may_renew = [_principal(each, "renewers") for each in listed(renewers, "renewers")]
    owner_type, owner_name = (None, None) if owner is None else _principal(owner, "owner")
    request = CreateDelegationTokenRequest(
        owner_principal_type=owner_type,
        owner_principal_name=owner_name,
        renewers=[CreatableRenewers(principal_type=kind, principal_name=name) for kind, name in may_renew],
        max_lifetime_ms=max_lifetime_ms,
    )
    response: CreateDelegationTokenResponse = await ask_controller_whole(
        cluster, request, "the delegation token was not created"
    )
    return DelegationToken(
        response.token_id,
        bytes(response.hmac),
        f"{response.principal_type}:{response.principal_name}",
        f"{response.token_requester_principal_type}:{response.token_requester_principal_name}",
        tuple(f"{kind}:{name}" for kind, name in may_renew),
        response.issue_timestamp_ms,
        response.expiry_timestamp_ms,
        response.max_timestamp_ms,
    )


async def renew_delegation_token(cluster: Cluster, hmac: bytes, *, renew_period_ms: int = BROKER_DEFAULT) -> int:
    """Let a token expire later, by the broker's period or this one. Returns when it expires."""
    number(renew_period_ms, "renew_period_ms", -1, INT64_MAX)
    request = RenewDelegationTokenRequest(hmac=_hmac(hmac), renew_period_ms=renew_period_ms)
    response: RenewDelegationTokenResponse = await ask_controller_whole(
        cluster, request, "the delegation token was not renewed"
    )
    return response.expiry_timestamp_ms


async def expire_delegation_token(cluster: Cluster, hmac: bytes, *, expiry_period_ms: int = -1) -> int:
    """Let a token expire in `expiry_period_ms`, or now (-1). Returns when it expires."""
    number(expiry_period_ms, "expiry_period_ms", -1, INT64_MAX)
    request = ExpireDelegationTokenRequest(hmac=_hmac(hmac), expiry_time_period_ms=expiry_period_ms)
    response: ExpireDelegationTokenResponse = await ask_controller_whole(
        cluster, request, "the delegation token was not expired"
    )
    return response.expiry_timestamp_ms


async def describe_delegation_tokens(cluster: Cluster, owners: Iterable[str] | None = None) -> list[DelegationToken]:
    """The tokens of owners (None: all) that the principal owns, may renew or may describe."""
    asked = None if owners is None else [_principal(each, "owners") for each in listed(owners, "owners")]
    request = DescribeDelegationTokenRequest(
        owners=None
        if asked is None
        else [DescribeDelegationTokenOwner(principal_type=kind, principal_name=name) for kind, name in asked]
    )
    response: DescribeDelegationTokenResponse = await cluster.ask_any(request)
    raise_refused(response.error_code, "the delegation tokens cannot be described")
    return [
        DelegationToken(
            each.token_id,
            bytes(each.hmac),
            f"{each.principal_type}:{each.principal_name}",
            f"{each.token_requester_principal_type}:{each.token_requester_principal_name}",
            tuple(f"{one.principal_type}:{one.principal_name}" for one in each.renewers),
            each.issue_timestamp,
            each.expiry_timestamp,
            each.max_timestamp,
        )
        for each in response.tokens
    ]


def _principal(value: str, argument: str) -> tuple[str, str]:
    kind, colon, name = value.partition(":") if isinstance(value, str) else ("", "", "")
    if not kind or not colon or not name:
        raise ArgumentError(f"{argument}: a principal is written like User:alice, not {value!r}")
    return kind, name


def _hmac(value: bytes) -> bytes:
    if not isinstance(value, bytes) or not value:
        raise TypeError("hmac must be the bytes of a token's hmac")
    return value
