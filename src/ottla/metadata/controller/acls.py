"""Decides on CreateAcls and DeleteAcls requests. Pure.

A binding that exists already is created again without a record. Kafka does not check whether an operation suits its resource
type, whether a host is an address, or whether a principal's type is known.
"""

from __future__ import annotations

from typing import Final

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid
from ottla.metadata.acls import (
    ANY,
    CLUSTER_NAME,
    OPERATIONS,
    PATTERN_TYPES,
    PERMISSIONS,
    RESOURCE_TYPES,
    Acl,
    AclFilter,
    PatternType,
    ResourceType,
)
from ottla.metadata.controller.decision import Decision
from ottla.metadata.controller.state import ControllerState
from ottla.wire.messages.create_acls import AclCreation, AclCreationResult, CreateAclsRequest, CreateAclsResponse
from ottla.wire.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from ottla.wire.messages.metadata_records import AccessControlEntryRecord, RemoveAccessControlEntryRecord

RECORDS_MAX: Final = 10_000
"""So many bindings may be created, or deleted, in one request."""


def create_acls(state: ControllerState, request: CreateAclsRequest, now_ms: int) -> Decision[CreateAclsResponse]:
    """Add bindings."""
    response, wanted = CreateAclsResponse(), dict[Acl, None]()
    for creation in request.creations:
        acl = _wanted(creation)
        fault = _fault(acl)
        if fault is None:
            wanted[acl] = None
            response.results.append(AclCreationResult())
        else:
            response.results.append(AclCreationResult(error_code=ErrorCode.INVALID_REQUEST, error_message=fault))
    for record in state.image.security.acls.values():
        wanted.pop(Acl.of(record), None)
    if len(wanted) > RECORDS_MAX:
        raise _too_many(len(wanted), "create")
    return Decision(response, [_record(state.randomness.new_uuid(), acl) for acl in wanted])


def delete_acls(state: ControllerState, request: DeleteAclsRequest, now_ms: int) -> Decision[DeleteAclsResponse]:
    """Remove the bindings that pass any of the filters."""
    response, removed = DeleteAclsResponse(), dict[Uuid, None]()
    acls = state.image.security.acls
    for wanted in request.filters:
        chosen = filter_of(wanted)
        result = DeleteAclsFilterResult(error_message=None)
        response.filter_results.append(result)
        if (fault := _fault_of(chosen)) is not None:
            result.error_code, result.error_message = ErrorCode.INVALID_REQUEST, fault
            continue
        passes = chosen.finder()
        for acl_id, record in acls.items():
            if passes(record):
                removed[acl_id] = None
                result.matching_acls.append(_deleted(record))
    if len(removed) > RECORDS_MAX:
        raise _too_many(len(removed), "delete")
    return Decision(response, [RemoveAccessControlEntryRecord(id=acl_id) for acl_id in removed])


def filter_of(wanted: DeleteAclsFilter) -> AclFilter:
    return AclFilter(
        wanted.resource_type_filter,
        wanted.resource_name_filter,
        wanted.pattern_type_filter,
        wanted.principal_filter,
        wanted.host_filter,
        wanted.operation,
        wanted.permission_type,
    )


def _wanted(creation: AclCreation) -> Acl:
    return Acl(
        creation.resource_type,
        creation.resource_name,
        creation.resource_pattern_type,
        creation.principal,
        creation.host,
        creation.operation,
        creation.permission_type,
    )


def _record(acl_id: Uuid, acl: Acl) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        id=acl_id,
        resource_type=acl.resource_type,
        resource_name=acl.name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )


def _fault(acl: Acl) -> str | None:
    """What is wrong with a binding."""
    if acl.resource_type not in RESOURCE_TYPES:
        return f"there is no resource type {acl.resource_type}"
    if acl.resource_type == ResourceType.CLUSTER and acl.name != CLUSTER_NAME:
        return f"the only resource of type Cluster is {CLUSTER_NAME}, not {acl.name!r}"
    if not acl.name:
        return "the resource has no name: give one, or * for all"
    if acl.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        return f"a pattern is literal (3) or prefixed (4), not {acl.pattern_type}"
    if acl.operation not in OPERATIONS:
        return f"there is no operation {acl.operation}"
    if acl.permission not in PERMISSIONS:
        return f"there is no permission type {acl.permission}"
    if ":" not in acl.principal:
        return f"{acl.principal!r} is no principal: it needs a type, as in User:alice"
    return None


def _fault_of(chosen: AclFilter) -> str | None:
    """Which code of a filter nobody knows."""
    for kind, code, known in (
        ("resource type", chosen.resource_type, RESOURCE_TYPES),
        ("pattern type", chosen.pattern_type, PATTERN_TYPES),
        ("operation", chosen.operation, OPERATIONS),
        ("permission type", chosen.permission, PERMISSIONS),
    ):
        if code != ANY and code not in known:
            return f"there is no {kind} {code}: ANY is {ANY}"
    return None


def _deleted(record: AccessControlEntryRecord) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_message=None,
        resource_type=record.resource_type,
        resource_name=record.resource_name,
        pattern_type=record.pattern_type,
        principal=record.principal,
        host=record.host,
        operation=record.operation,
        permission_type=record.permission_type,
    )


def _too_many(count: int, what: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_REQUEST,
        f"the request would {what} {count} bindings, and one may {what} {RECORDS_MAX}: ask in several requests",
    )
