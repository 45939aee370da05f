"""CreateAcls: adds bindings to the access control lists. The controller decides.

v1: pattern types. It is the oldest that is served.
"""

from __future__ import annotations

from ottla.broker.handlers.admin.controller_calls import ask_controller
from ottla.broker.handlers.admin.describe_acls import check_authorizer, check_codes
from ottla.broker.requests.context import Handled, RequestContext
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.metadata.acls import ANY, PatternType
from ottla.wire.messages.create_acls import AclCreation, AclCreationResult, CreateAclsRequest, CreateAclsResponse


def handle(context: RequestContext, request: CreateAclsRequest) -> Handled:
    check_codes(map(_codes, request.creations))
    if context.connection.is_controller_listener:
        check_authorizer(context)
        if any(ANY in _codes(each) or each.resource_pattern_type == PatternType.MATCH for each in request.creations):
            # With this code, as Kafka: nothing of the request is created.
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                "a binding has ANY (1) as resource type, pattern type, operation or permission type, or MATCH (2) as pattern "
                "type: these are for filters",
            )
    return ask_controller(context, request)


def refuse(context: RequestContext, request: CreateAclsRequest, error: KafkaError) -> CreateAclsResponse:
    result = AclCreationResult(error_code=error.code, error_message=str(error))
    return CreateAclsResponse(results=[result] * len(request.creations))


def _codes(creation: AclCreation) -> tuple[int, int, int, int]:
    return creation.resource_type, creation.resource_pattern_type, creation.operation, creation.permission_type
