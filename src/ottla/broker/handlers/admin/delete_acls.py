"""DeleteAcls: removes the bindings that pass filters from the access control lists. The controller decides.

v1: pattern types. It is the oldest that is served.
"""

from __future__ import annotations

from ottla.broker.handlers.admin.controller_calls import ask_controller
from ottla.broker.handlers.admin.describe_acls import check_authorizer, check_codes
from ottla.broker.requests.context import Handled, RequestContext
from ottla.errors import KafkaError
from ottla.wire.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse


def handle(context: RequestContext, request: DeleteAclsRequest) -> Handled:
    check_codes(
        (each.resource_type_filter, each.pattern_type_filter, each.operation, each.permission_type) for each in request.filters
    )
    if context.connection.is_controller_listener:
        check_authorizer(context)
    return ask_controller(context, request)


def refuse(context: RequestContext, request: DeleteAclsRequest, error: KafkaError) -> DeleteAclsResponse:
    result = DeleteAclsFilterResult(error_code=error.code, error_message=str(error))
    return DeleteAclsResponse(filter_results=[result] * len(request.filters))
