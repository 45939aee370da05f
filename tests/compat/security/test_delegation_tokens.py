"""Delegation tokens: made, described, used, renewed and expired; the same for Ottla and for Apache Kafka."""

import time
from base64 import b64encode
from typing import Any

import pytest
from tests.support.peers.sasl_login import is_closed, is_usable, plain_login, scram_login
from tests.support.servers.sasl_server import ALICES_PASSWORD, BOBS_PASSWORD

from ottla.errors.codes import ErrorCode
from ottla.wire.messages.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from ottla.wire.messages.describe_delegation_token import DescribeDelegationTokenOwner, DescribeDelegationTokenRequest
from ottla.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.renew_delegation_token import RenewDelegationTokenRequest

DAY_MS = 86_400_000


@pytest.fixture
def alice(dial: Any) -> Any:
    return plain_login(dial(), "alice", ALICES_PASSWORD)


@pytest.fixture
def bob(dial: Any) -> Any:
    return plain_login(dial(), "bob", BOBS_PASSWORD)


def create(client: Any, version: int = 3, **fields: Any) -> Any:
    fields.setdefault("max_lifetime_ms", -1)
    return client.request(CreateDelegationTokenRequest(**fields), version)


def renew(client: Any, hmac: bytes, period_ms: int = -1) -> Any:
    return client.request(RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms), 2)


def expire(client: Any, hmac: bytes, period_ms: int = -1) -> Any:
    return client.request(ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms), 2)


def described(client: Any, *owners: str) -> dict[str, Any]:
    request = DescribeDelegationTokenRequest(
        owners=[DescribeDelegationTokenOwner(principal_type="User", principal_name=owner) for owner in owners] or None
    )
    response = client.request(request, 3)
    assert response.error_code == 0
    return {token.token_id: token for token in response.tokens}


def known(client: Any, token: Any) -> Any:
    """Wait until the broker has heard of a token; return it as described."""
    deadline_s = time.monotonic() + 30
    while (found := described(client).get(token.token_id)) is None:
        assert time.monotonic() < deadline_s
        time.sleep(0.02)
    return found


def log_in(client: Any, token: Any, mechanism: str = "SCRAM-SHA-256", extensions: str = "tokenauth=true") -> Any:
    return scram_login(client, token.token_id, b64encode(token.hmac).decode(), mechanism, extensions)


def test_a_token_as_it_is_made_and_described(alice: Any) -> None:
    made = create(alice, renewers=[CreatableRenewers(principal_type="User", principal_name="bob")])
    assert (made.error_code, made.principal_type, made.principal_name) == (0, "User", "alice")
    assert (made.token_requester_principal_type, made.token_requester_principal_name) == ("User", "alice")
    assert made.expiry_timestamp_ms - made.issue_timestamp_ms == DAY_MS
    assert made.max_timestamp_ms - made.issue_timestamp_ms == 7 * DAY_MS
    assert (len(made.token_id), len(made.hmac)) == (22, 64)
    found = known(alice, made)
    assert (found.principal_name, found.token_requester_principal_name, found.hmac) == ("alice", "alice", made.hmac)
    assert (found.issue_timestamp, found.expiry_timestamp, found.max_timestamp) == (
        made.issue_timestamp_ms,
        made.expiry_timestamp_ms,
        made.max_timestamp_ms,
    )
    assert [(each.principal_type, each.principal_name) for each in found.renewers] == [("User", "bob")]
    assert made.token_id in described(alice, "bob", "eve"), "renewers count as owners"
    assert made.token_id not in described(alice, "eve")
    assert not alice.request(DescribeDelegationTokenRequest(owners=[]), 3).tokens


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_login_with_a_token(alice: Any, dial: Any, mechanism: str) -> None:
    made = create(alice)
    known(alice, made)
    client = dial()
    done = log_in(client, made, mechanism)
    assert done.error_code == 0
    assert DAY_MS - 60_000 < done.session_lifetime_ms <= DAY_MS
    assert is_usable(client)
    assert log_in(dial(), made, mechanism).error_code == 0
    for request, version in (
        (CreateDelegationTokenRequest(max_lifetime_ms=-1), 3),
        (DescribeDelegationTokenRequest(owners=None), 3),
        (RenewDelegationTokenRequest(hmac=made.hmac, renew_period_ms=-1), 2),
        (ExpireDelegationTokenRequest(hmac=made.hmac, expiry_time_period_ms=-1), 2),
    ):
        assert client.request(request, version).error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def test_tokens_are_no_users_and_users_no_tokens(alice: Any, dial: Any) -> None:
    made = create(alice)
    known(alice, made)
    assert log_in(dial(), made, extensions="").error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert scram_login(dial(), "nobody", "x", extensions="tokenauth=true").error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    wrong = scram_login(dial(), made.token_id, "wrong", extensions="tokenauth=true")
    assert wrong.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_lifetimes_that_are_asked_for(alice: Any) -> None:
    short = create(alice, max_lifetime_ms=5000)
    assert short.max_timestamp_ms - short.issue_timestamp_ms == 5000
    assert short.expiry_timestamp_ms == short.max_timestamp_ms
    long = create(alice, max_lifetime_ms=100 * DAY_MS)
    assert long.max_timestamp_ms - long.issue_timestamp_ms == 7 * DAY_MS


def test_renewing(alice: Any, bob: Any) -> None:
    made = create(alice, renewers=[CreatableRenewers(principal_type="User", principal_name="bob")])
    known(alice, made)
    now_ms = int(time.time() * 1000)
    renewed = renew(bob, made.hmac, 10_000)
    assert renewed.error_code == 0
    assert abs(renewed.expiry_timestamp_ms - now_ms - 10_000) < 5000
    assert abs(renew(alice, made.hmac).expiry_timestamp_ms - now_ms - DAY_MS) < 60_000
    assert abs(renew(alice, made.hmac, 100 * DAY_MS).expiry_timestamp_ms - now_ms - DAY_MS) < 60_000


def test_who_is_neither_owner_nor_renewer(alice: Any, bob: Any) -> None:
    made = create(alice)
    known(alice, made)
    for answer in (renew(bob, made.hmac), expire(bob, made.hmac)):
        assert (answer.error_code, answer.expiry_timestamp_ms) == (ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, 0)


def test_a_token_for_another_owner(alice: Any, bob: Any) -> None:
    made = create(alice, owner_principal_type="User", owner_principal_name="bob")
    assert (made.error_code, made.principal_name, made.token_requester_principal_name) == (0, "bob", "alice")
    known(bob, made)
    assert renew(alice, made.hmac).error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert renew(bob, made.hmac).error_code == 0


def test_expiring(alice: Any, dial: Any) -> None:
    made = create(alice)
    known(alice, made)
    later = expire(alice, made.hmac, 60_000)
    assert later.error_code == 0
    assert abs(later.expiry_timestamp_ms - time.time() * 1000 - 60_000) < 5000
    assert expire(alice, made.hmac).error_code == 0
    deadline_s = time.monotonic() + 30
    while made.token_id in described(alice):
        assert time.monotonic() < deadline_s
    for answer in (renew(alice, made.hmac), expire(alice, made.hmac), expire(alice, b"x")):
        assert answer.error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    assert log_in(dial(), made).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_an_expired_token_logs_in_and_its_first_request_ends_the_connection(alice: Any, dial: Any) -> None:
    made = create(alice, max_lifetime_ms=1000)
    known(alice, made)
    while time.time() * 1000 <= made.expiry_timestamp_ms:
        time.sleep(0.05)
    assert renew(alice, made.hmac).error_code == ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert expire(alice, made.hmac, 1000).error_code == ErrorCode.DELEGATION_TOKEN_EXPIRED
    client = dial()
    done = log_in(client, made)
    assert (done.error_code, done.session_lifetime_ms) == (0, 0)
    client.send(MetadataRequest(topics=[]), 12)
    assert is_closed(client)
    assert expire(alice, made.hmac).error_code == 0


def test_a_renewer_of_another_type(alice: Any) -> None:
    refused = create(alice, renewers=[CreatableRenewers(principal_type="Group", principal_name="x")])
    assert refused.error_code == ErrorCode.INVALID_PRINCIPAL_TYPE


def test_without_a_login(dial: Any) -> None:
    client = dial("PLAINTEXT")
    made = create(client)
    assert (made.error_code, made.issue_timestamp_ms, made.token_id) == (ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, -1, "")
    for answer in (renew(client, b"x"), expire(client, b"x"), client.request(DescribeDelegationTokenRequest(), 3)):
        assert answer.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def test_the_oldest_versions(alice: Any) -> None:
    made = create(alice, version=1)
    assert (made.error_code, made.principal_name) == (0, "alice")
    known(alice, made)
    assert alice.request(RenewDelegationTokenRequest(hmac=made.hmac, renew_period_ms=-1), 1).error_code == 0
    tokens = alice.request(DescribeDelegationTokenRequest(owners=None), 1).tokens
    assert made.token_id in {token.token_id for token in tokens}
