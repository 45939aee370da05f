"""Decides on delegation tokens: create, renew and expire them, and remove those that have expired. Pure.

A token is known by its HMAC, which only its owner and those it was given to have. Errors are answers: nothing is written then.
"""

from __future__ import annotations

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import Principal, uuid_text
from ottla.metadata.controller.decision import Asker, Decision
from ottla.metadata.controller.state import ControllerState
from ottla.metadata.delegation_tokens import token_hmac, without_token
from ottla.metadata.features import DELEGATION_TOKENS_FROM
from ottla.wire.messages.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from ottla.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse
from ottla.wire.messages.metadata_records import DelegationTokenRecord, RemoveDelegationTokenRecord
from ottla.wire.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse

REMOVED_AT_ONCE_MAX = 1000
REQUESTER_SINCE = 3
"""The version of CreateDelegationToken and DescribeDelegationToken from which answers say who has asked for a token."""


def create_token(
    state: ControllerState, request: CreateDelegationTokenRequest, now_ms: int, asker: Asker
) -> Decision[CreateDelegationTokenResponse]:
    """A new token for the client, or for the owner that the request names."""
    settings, secret_key = state.settings.tokens, _secret_key(state)
    requester, owner = without_token(asker.principal), owner_of(request, asker.principal)
    for renewer in request.renewers:
        if renewer.principal_type != "User":
            raise KafkaError(
                ErrorCode.INVALID_PRINCIPAL_TYPE, f"a renewer must be of type User, and not {renewer.principal_type}"
            )
    now = state.unix_ms
    lifetime_ms = settings.lifetime_ms_max
    if request.max_lifetime_ms > 0:
        lifetime_ms = min(lifetime_ms, request.max_lifetime_ms)
    record = DelegationTokenRecord(
        owner=str(owner),
        requester=str(requester),
        renewers=[f"User:{renewer.principal_name}" for renewer in request.renewers],
        issue_timestamp=now,
        max_timestamp=now + lifetime_ms,
        expiration_timestamp=now + min(lifetime_ms, settings.expiry_ms),
        token_id=uuid_text(state.randomness.new_uuid()),
    )
    response = CreateDelegationTokenResponse(
        principal_type=owner.type,
        principal_name=owner.name,
        issue_timestamp_ms=record.issue_timestamp,
        expiry_timestamp_ms=record.expiration_timestamp,
        max_timestamp_ms=record.max_timestamp,
        token_id=record.token_id,
        hmac=token_hmac(secret_key, record.token_id),
    )
    if asker.version >= REQUESTER_SINCE:
        response.token_requester_principal_type, response.token_requester_principal_name = requester.type, requester.name
    return Decision(response, [record])


def owner_of(request: CreateDelegationTokenRequest, asker: Principal) -> Principal:
    """Whose token it will be."""
    if not request.owner_principal_name:
        return without_token(asker)
    return Principal(request.owner_principal_type or "", request.owner_principal_name)


def renew_token(
    state: ControllerState, request: RenewDelegationTokenRequest, now_ms: int, asker: Asker
) -> Decision[RenewDelegationTokenResponse]:
    """Let a token expire later."""
    token = _token(state, request.hmac)
    _check_not_expired(state, token)
    _check_may_change(token, asker)
    period_ms = state.settings.tokens.expiry_ms
    if request.renew_period_ms > 0:
        period_ms = min(period_ms, request.renew_period_ms)
    renewed = _expiring(token, min(token.max_timestamp, state.unix_ms + period_ms))
    return Decision(RenewDelegationTokenResponse(expiry_timestamp_ms=renewed.expiration_timestamp), [renewed])


def expire_token(
    state: ControllerState, request: ExpireDelegationTokenRequest, now_ms: int, asker: Asker
) -> Decision[ExpireDelegationTokenResponse]:
    """Let a token expire at a time; with a negative one it is removed now."""
    token = _token(state, request.hmac)
    _check_may_change(token, asker)
    if request.expiry_time_period_ms < 0:
        response = ExpireDelegationTokenResponse(expiry_timestamp_ms=state.unix_ms)
        return Decision(response, [RemoveDelegationTokenRecord(token_id=token.token_id)])
    _check_not_expired(state, token)
    expiring = _expiring(token, min(token.max_timestamp, state.unix_ms + request.expiry_time_period_ms))
    return Decision(ExpireDelegationTokenResponse(expiry_timestamp_ms=expiring.expiration_timestamp), [expiring])


def remove_expired_tokens(state: ControllerState, now_ms: int) -> Decision[bool]:
    """Remove tokens that have expired; whether there may be more."""
    expired = [token for token in state.image.security.tokens.values() if _is_expired(state, token)]
    records = [RemoveDelegationTokenRecord(token_id=token.token_id) for token in expired[:REMOVED_AT_ONCE_MAX]]
    return Decision(len(expired) > REMOVED_AT_ONCE_MAX, records)


def _secret_key(state: ControllerState) -> str:
    secret_key = state.settings.tokens.secret_key
    if secret_key is None:
        raise KafkaError(
            ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, "delegation tokens are off: set delegation.token.secret.key on all nodes"
        )
    if state.image.metadata_version < DELEGATION_TOKENS_FROM:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "delegation tokens need a newer metadata.version")
    return secret_key


def _token(state: ControllerState, hmac: bytes) -> DelegationTokenRecord:
    secret_key, tokens = _secret_key(state), state.image.security.tokens
    token = tokens.get(state.token_ids.id_of(hmac, secret_key, tokens))
    if token is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND, "there is no such token: it may have expired")
    return token


def _check_may_change(token: DelegationTokenRecord, asker: Asker) -> None:
    who = str(asker.principal)
    if who != token.owner and who not in token.renewers:
        raise KafkaError(
            ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, f"{who} is neither the owner of the token nor one of its renewers"
        )


def _check_not_expired(state: ControllerState, token: DelegationTokenRecord) -> None:
    if _is_expired(state, token):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED, "the token has expired: ask for a new one")


def _is_expired(state: ControllerState, token: DelegationTokenRecord) -> bool:
    return min(token.max_timestamp, token.expiration_timestamp) < state.unix_ms


def _expiring(token: DelegationTokenRecord, expiration_timestamp: int) -> DelegationTokenRecord:
    return DelegationTokenRecord(
        owner=token.owner,
        requester=token.requester,
        renewers=list(token.renewers),
        issue_timestamp=token.issue_timestamp,
        max_timestamp=token.max_timestamp,
        expiration_timestamp=expiration_timestamp,
        token_id=token.token_id,
    )
