"""DescribeAcls: the bindings that pass a filter, grouped by resource. Every node answers from its own copy of the metadata.

v1: pattern types; before, only literal patterns could be asked for. It is the oldest that is served.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from ottla.broker.requests.context import CloseConnection, Handled, RequestContext
from ottla.broker.requests.scheduler import off_loop
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid
from ottla.metadata.acls import UNKNOWN, AclFilter
from ottla.wire.elements import MANY_ELEMENTS
from ottla.wire.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from ottla.wire.messages.metadata_records import AccessControlEntryRecord


def handle(context: RequestContext, request: DescribeAclsRequest) -> Handled:
    wanted = AclFilter(
        request.resource_type_filter,
        request.resource_name_filter,
        request.pattern_type_filter,
        request.principal_filter,
        request.host_filter,
        request.operation,
        request.permission_type,
    )
    check_codes([(wanted.resource_type, wanted.pattern_type, wanted.operation, wanted.permission)])
    check_authorizer(context)
    acls = context.services.metadata.image.security.acls
    if len(acls) > MANY_ELEMENTS:
        return off_loop(context, partial(_described, acls, wanted))
    return _described(acls, wanted)


def refuse(context: RequestContext, request: DescribeAclsRequest, error: KafkaError) -> DescribeAclsResponse:
    return DescribeAclsResponse(error_code=error.code, error_message=str(error))


def check_codes(all_codes: Iterable[tuple[int, ...]]) -> None:
    """Raise `CloseConnection` if one of an entry's codes is 0: as in Kafka, the request cannot be read."""
    if any(UNKNOWN in codes for codes in all_codes):
        raise CloseConnection("a resource type, pattern type, operation or permission type 0 (unknown)")


def check_authorizer(context: RequestContext) -> None:
    """Raise SECURITY_DISABLED if this node has no authorizer."""
    if context.services.authorization.authorizer is None:
        raise KafkaError(
            ErrorCode.SECURITY_DISABLED,
            "access control lists have no effect here: set authorizer.class.name and super.users on every node",
        )


def _described(acls: Mapping[Uuid, AccessControlEntryRecord], wanted: AclFilter) -> DescribeAclsResponse:
    passes = wanted.finder()
    resources: dict[tuple[int, str, int], DescribeAclsResource] = {}
    for acl in acls.values():
        if not passes(acl):
            continue
        key = acl.resource_type, acl.resource_name, acl.pattern_type
        resource = resources.get(key)
        if resource is None:
            resource = resources[key] = DescribeAclsResource(
                resource_type=acl.resource_type, resource_name=acl.resource_name, pattern_type=acl.pattern_type
            )
        resource.acls.append(
            AclDescription(principal=acl.principal, host=acl.host, operation=acl.operation, permission_type=acl.permission_type)
        )
    return DescribeAclsResponse(error_message="", resources=list(resources.values()))
