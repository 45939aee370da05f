"""AlterClientQuotas: sets and removes limits for users, client ids and addresses. The controller decides.

Both versions (0 and 1) have the same fields.
"""

from __future__ import annotations

from ottla.broker.handlers.admin.controller_calls import ask_controller
from ottla.broker.requests.context import Handled, RequestContext
from ottla.errors import KafkaError
from ottla.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntityData,
    AlterClientQuotasResponseEntryData,
)


def handle(context: RequestContext, request: AlterClientQuotasRequest) -> Handled:
    return ask_controller(context, request)


def refuse(context: RequestContext, request: AlterClientQuotasRequest, error: KafkaError) -> AlterClientQuotasResponse:
    response = AlterClientQuotasResponse()
    for entry in request.entries:
        refused = AlterClientQuotasResponseEntryData(error_code=error.code, error_message=str(error))
        refused.entity = [
            AlterClientQuotasResponseEntityData(entity_type=part.entity_type, entity_name=part.entity_name)
            for part in entry.entity
        ]
        response.entries.append(refused)
    return response
