"""Delegation tokens."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.nodes.fake_node import FakeNode

from ottla.errors import DelegationTokenNotFoundError, UnsupportedByAuthenticationError
from ottla.wire.apis import ApiKey
from ottla.wire.messages.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from ottla.wire.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from ottla.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse
from ottla.wire.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse


def test_connection_without_a_login_gets_no_tokens(admin: Any, needs: Callable[..., None]) -> None:
    needs(ApiKey.CREATE_DELEGATION_TOKEN)
    for call in (
        admin.create_delegation_token,
        lambda: admin.renew_delegation_token(b"hmac"),
        lambda: admin.expire_delegation_token(b"hmac"),
        admin.describe_delegation_tokens,
    ):
        with pytest.raises(UnsupportedByAuthenticationError):
            call()


def test_token_is_created_with_owner_and_renewers(scripted: Any, node: FakeNode) -> None:
    node.handlers[CreateDelegationTokenRequest] = lambda request, version: CreateDelegationTokenResponse(
        principal_type=request.owner_principal_type,
        principal_name=request.owner_principal_name,
        token_requester_principal_type="User",
        token_requester_principal_name="me",
        issue_timestamp_ms=1,
        expiry_timestamp_ms=2,
        max_timestamp_ms=request.max_lifetime_ms,
        token_id="an-id",
        hmac=b"the-secret",
    )
    token = scripted.create_delegation_token(owner="User:alice", renewers=["User:b:c"], max_lifetime_ms=9)
    assert (token.id, token.hmac, token.owner, token.requester) == ("an-id", b"the-secret", "User:alice", "User:me")
    assert (token.renewers, token.issued, token.expires, token.max_lifetime_ends) == (("User:b:c",), 1, 2, 9)
    (request,) = node.asked_for(CreateDelegationTokenRequest)
    assert [(each.principal_type, each.principal_name) for each in request.renewers] == [("User", "b:c")]
    assert "the-secret" not in repr(token)


def test_tokens_are_renewed_expired_and_described(scripted: Any, node: FakeNode) -> None:
    node.handlers[RenewDelegationTokenRequest] = lambda request, version: RenewDelegationTokenResponse(
        expiry_timestamp_ms=request.renew_period_ms
    )
    node.handlers[ExpireDelegationTokenRequest] = lambda request, version: ExpireDelegationTokenResponse(error_code=62)
    described = DescribedDelegationToken(
        principal_type="User",
        principal_name="alice",
        token_id="an-id",
        hmac=b"hmac",
        renewers=[DescribedDelegationTokenRenewer(principal_type="User", principal_name="bob")],
    )
    node.handlers[DescribeDelegationTokenRequest] = lambda request, version: DescribeDelegationTokenResponse(tokens=[described])
    assert scripted.renew_delegation_token(b"hmac", renew_period_ms=77) == 77
    with pytest.raises(DelegationTokenNotFoundError, match="was not expired"):
        scripted.expire_delegation_token(b"hmac")
    (token,) = scripted.describe_delegation_tokens(["User:alice"])
    assert (token.owner, token.renewers) == ("User:alice", ("User:bob",))
    assert scripted.describe_delegation_tokens()
    assert [each.owners is None for each in node.asked_for(DescribeDelegationTokenRequest)] == [False, True]


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda admin: admin.create_delegation_token(owner="alice"), ValueError, "owner: a principal is written like"),
        (lambda admin: admin.create_delegation_token(renewers="User:a"), TypeError, "renewers must be a list"),
        (lambda admin: admin.create_delegation_token(max_lifetime_ms=-2), ValueError, "max_lifetime_ms is -2"),
        (lambda admin: admin.renew_delegation_token("text"), TypeError, "hmac must be the bytes"),
        (lambda admin: admin.expire_delegation_token(b"x", expiry_period_ms=-9), ValueError, "expiry_period_ms is -9"),
        (lambda admin: admin.describe_delegation_tokens(["alice"]), ValueError, "owners: a principal"),
    ],
)
def test_bad_argument_is_named(scripted: Any, call: Callable[[Any], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call(scripted)
