"""AlterUserScramCredentials: sets and deletes users' SCRAM credentials. The controller decides.

There is only version 0.
"""

from __future__ import annotations

from ottla.broker.handlers.admin.controller_calls import ask_controller
from ottla.broker.requests.context import Handled, RequestContext
from ottla.errors import KafkaError
from ottla.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)


def handle(context: RequestContext, request: AlterUserScramCredentialsRequest) -> Handled:
    return ask_controller(context, request)


def refuse(
    context: RequestContext, request: AlterUserScramCredentialsRequest, error: KafkaError
) -> AlterUserScramCredentialsResponse:
    names = dict.fromkeys([*(each.name for each in request.deletions), *(each.name for each in request.upsertions)])
    return AlterUserScramCredentialsResponse(
        results=[AlterUserScramCredentialsResult(user=name, error_code=error.code, error_message=str(error)) for name in names]
    )
