"""The requests about delegation tokens. The controller decides; a broker describes tokens from its own metadata.

CreateDelegationToken    makes a token for the client, v3: or for another owner.
RenewDelegationToken     lets a token expire later.
ExpireDelegationToken    lets a token expire sooner, or removes it.
DescribeDelegationToken  the tokens of given owners, with their HMACs. v3: who has asked for a token.

Only who has proved its name may have tokens, and not with a token: else a stolen one would live for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ottla.broker.handlers.admin.controller_calls import ask_controller
from ottla.broker.requests.context import Handled, RequestContext
from ottla.config.listeners import PLAINTEXT
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import ANONYMOUS
from ottla.metadata.acls import Operation, ResourceType
from ottla.metadata.controller.delegation_tokens import REQUESTER_SINCE, owner_of
from ottla.metadata.delegation_tokens import principal_of, token_hmac, without_token
from ottla.wire.apis import APIS
from ottla.wire.base import Message
from ottla.wire.messages.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from ottla.wire.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from ottla.wire.messages.metadata_records import DelegationTokenRecord

_NO_TIME: Final = -1


def handle(context: RequestContext, request: Message) -> Handled:
    is_forwarded = context.connection.is_forwarded
    if not is_forwarded:
        _check_login(context)
    if isinstance(request, DescribeDelegationTokenRequest):
        return _describe(context, request)
    if isinstance(request, CreateDelegationTokenRequest) and not is_forwarded:
        _check_owner(context, request)
    return ask_controller(context, request)


def refuse(context: RequestContext, request: Any, error: KafkaError) -> Message:
    if not isinstance(request, CreateDelegationTokenRequest):
        response: Any = APIS[context.api_key].response_class()
        response.error_code = error.code
        if error.code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED and hasattr(response, "expiry_timestamp_ms"):
            response.expiry_timestamp_ms = _NO_TIME
        return response  # type: ignore[no-any-return]
    owner, requester = owner_of(request, context.connection.principal), context.connection.principal
    refusal = CreateDelegationTokenResponse(
        error_code=error.code,
        principal_type=owner.type,
        principal_name=owner.name,
        issue_timestamp_ms=_NO_TIME,
        expiry_timestamp_ms=_NO_TIME,
        max_timestamp_ms=_NO_TIME,
    )
    if context.version >= REQUESTER_SINCE:
        refusal.token_requester_principal_type, refusal.token_requester_principal_name = requester.type, requester.name
    return refusal


def _check_login(context: RequestContext) -> None:
    connection = context.connection
    if connection.principal.is_token_authenticated:
        why = "it has logged in with a token itself"
    elif connection.security.protocol == PLAINTEXT or (not connection.security.uses_sasl and connection.principal == ANONYMOUS):
        why = "it has not said who it is"
    else:
        return
    raise KafkaError(
        ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
        f"the client may not ask for delegation tokens: {why}. Log in with user and password, or with a certificate",
    )


def _check_owner(context: RequestContext, request: CreateDelegationTokenRequest) -> None:
    """Making a token for somebody else is making oneself somebody else."""
    principal = without_token(context.connection.principal)
    owner = owner_of(request, principal)
    grants = context.services.authorization.grants_of(context.connection)
    if not (
        owner == principal
        or grants is None
        or grants.allows(Operation.CREATE_TOKENS, ResourceType.USER, str(owner), context.api_key)
    ):
        raise KafkaError(
            ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
            f"{principal} may not make tokens for {owner}: it needs CreateTokens",
        )
    for renewer in request.renewers:
        if renewer.principal_type != principal.type:
            raise KafkaError(ErrorCode.INVALID_PRINCIPAL_TYPE, f"a renewer must be of type User, not {renewer.principal_type}")


def _describe(context: RequestContext, request: DescribeDelegationTokenRequest) -> DescribeDelegationTokenResponse:
    secret_key = context.services.controller.token_settings.secret_key
    if secret_key is None:
        raise KafkaError(
            ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, "delegation tokens are off: set delegation.token.secret.key on all nodes"
        )
    owners = None
    if request.owners is not None:
        owners = {f"{each.principal_type}:{each.principal_name}" for each in request.owners}
    may_see = _sight(context)
    tokens = [
        _described(token, secret_key, context.version >= REQUESTER_SINCE)
        for token in context.services.metadata.image.security.tokens.values()
        if (owners is None or not owners.isdisjoint(_people(token))) and may_see(token)
    ]
    return DescribeDelegationTokenResponse(tokens=tokens)


def _sight(context: RequestContext) -> Callable[[DelegationTokenRecord], bool]:
    """Which tokens a client may see: its own, those it may renew, and what it is granted."""
    who = str(context.connection.principal)
    grants = context.services.authorization.grants_of(context.connection)

    def may_see(token: DelegationTokenRecord) -> bool:
        if grants is None or who in _people(token):
            return True
        return any(
            grants.allows(operation, resource_type, name, context.api_key, is_silent=True)
            for operation, resource_type, name in (
                (Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id),
                (Operation.DESCRIBE_TOKENS, ResourceType.USER, token.owner),
            )
        )

    return may_see


def _people(token: DelegationTokenRecord) -> set[str]:
    return {token.owner, token.requester, *token.renewers}


def _described(token: DelegationTokenRecord, secret_key: str, names_requester: bool) -> DescribedDelegationToken:
    owner, requester = principal_of(token.owner), principal_of(token.requester if names_requester else ":")
    renewers = [principal_of(each) for each in token.renewers]
    return DescribedDelegationToken(
        principal_type=owner.type,
        principal_name=owner.name,
        token_requester_principal_type=requester.type,
        token_requester_principal_name=requester.name,
        issue_timestamp=token.issue_timestamp,
        expiry_timestamp=token.expiration_timestamp,
        max_timestamp=token.max_timestamp,
        token_id=token.token_id,
        hmac=token_hmac(secret_key, token.token_id),
        renewers=[DescribedDelegationTokenRenewer(principal_type=each.type, principal_name=each.name) for each in renewers],
    )
