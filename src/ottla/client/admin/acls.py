"""Access control rules: find, create, delete (DescribeAcls, CreateAcls, DeleteAcls)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ottla.client.admin.acl_types import (
    AclBinding,
    AclFilter,
    AclOperation,
    AclPermission,
    AclResourceType,
    PatternType,
)
from ottla.client.admin.checks import listed, member, member_or_unknown, text
from ottla.client.admin.requests import raise_refused, refused, refused_or, to_controller
from ottla.client.admin.results import Results, results_for
from ottla.client.cluster import Cluster
from ottla.errors import ArgumentError, KafkaError
from ottla.wire.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from ottla.wire.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from ottla.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

EVERY_RULE = AclFilter()


async def describe_acls(cluster: Cluster, acl_filter: AclFilter = EVERY_RULE) -> list[AclBinding]:
    """The rules that match the filter."""
    wanted = _checked_filter(acl_filter, "acl_filter")

    async def attempt() -> DescribeAclsResponse:
        response: DescribeAclsResponse = await cluster.ask_any(DescribeAclsRequest(**_filter_fields(wanted)))
        raise_refused(response.error_code, "the access control rules cannot be listed", response.error_message)
        return response

    return [
        _binding(
            resource.resource_type,
            resource.resource_name,
            resource.pattern_type,
            (acl.principal, acl.host, acl.operation, acl.permission_type),
        )
        for resource in (await cluster.retrying(attempt)).resources
        for acl in resource.acls
    ]


async def create_acls(cluster: Cluster, acls: Iterable[AclBinding]) -> Results[AclBinding, None]:
    """Create rules. A rule that exists already is no error."""
    wanted = list(dict.fromkeys(_checked_binding(each) for each in listed(acls, "acls")))

    async def ask(items: list[AclBinding]) -> dict[AclBinding, KafkaError | None]:
        creations = [
            AclCreation(
                resource_type=int(each.resource_type),
                resource_name=each.resource_name,
                resource_pattern_type=int(each.pattern_type),
                principal=each.principal,
                host=each.host,
                operation=int(each.operation),
                permission_type=int(each.permission),
            )
            for each in items
        ]
        response: CreateAclsResponse = await cluster.ask_controller(CreateAclsRequest(creations=creations))
        return {
            each: refused_or(result.error_code, f"the rule {shown(each)} was not created", result.error_message, None)
            for each, result in zip(items, response.results, strict=False)
        }

    return results_for(wanted, await to_controller(cluster, wanted, ask) if wanted else {})


async def delete_acls(cluster: Cluster, filters: Iterable[AclFilter | AclBinding]) -> Results[AclFilter, list[AclBinding]]:
    """Delete the rules that match each filter; an `AclBinding` matches only itself. Returns what was deleted."""
    wanted = list(dict.fromkeys(_checked_filter(_as_filter(each), "filters") for each in listed(filters, "filters")))

    async def ask(items: list[AclFilter]) -> dict[AclFilter, list[AclBinding] | KafkaError]:
        asked = [DeleteAclsFilter(**_filter_fields(each)) for each in items]
        response: DeleteAclsResponse = await cluster.ask_controller(DeleteAclsRequest(filters=asked))
        return {each: _deleted(result) for each, result in zip(items, response.filter_results, strict=False)}

    return results_for(wanted, await to_controller(cluster, wanted, ask) if wanted else {})


def _filter_fields(wanted: AclFilter) -> dict[str, Any]:
    """The fields of a filter, which DescribeAcls and DeleteAcls have by the same names."""
    return {
        "resource_type_filter": int(wanted.resource_type),
        "resource_name_filter": wanted.resource_name,
        "pattern_type_filter": int(wanted.pattern_type),
        "principal_filter": wanted.principal,
        "host_filter": wanted.host,
        "operation": int(wanted.operation),
        "permission_type": int(wanted.permission),
    }


def _deleted(result: DeleteAclsFilterResult) -> list[AclBinding] | KafkaError:
    if result.error_code:
        return refused(result.error_code, "the rules were not deleted", result.error_message)
    found = []
    for each in result.matching_acls:
        access = (each.principal, each.host, each.operation, each.permission_type)
        binding = _binding(each.resource_type, each.resource_name, each.pattern_type, access)
        if each.error_code:
            return refused(each.error_code, f"the rule {shown(binding)} was not deleted", each.error_message)
        found.append(binding)
    return found


def shown(acl: AclBinding) -> str:
    """A rule for error texts: `User:alice allow read topic orders`."""
    words = [member(AclPermission, acl.permission, "permission"), member(AclOperation, acl.operation, "operation")]
    resource = member(AclResourceType, acl.resource_type, "resource_type")
    return f"{acl.principal} {' '.join(word.name.lower() for word in words)} {resource.name.lower()} {acl.resource_name}"


def _binding(resource_type: int, name: str, pattern_type: int, access: tuple[str, str, int, int]) -> AclBinding:
    principal, host, operation, permission = access
    return AclBinding(
        member_or_unknown(AclResourceType, resource_type),
        name,
        principal,
        member_or_unknown(AclOperation, operation),
        member_or_unknown(AclPermission, permission),
        host,
        member_or_unknown(PatternType, pattern_type),
    )


def _as_filter(each: AclFilter | AclBinding) -> AclFilter:
    if isinstance(each, AclBinding):
        _checked_binding(each)
        return AclFilter(*each)
    return each


def _checked_binding(acl: AclBinding) -> AclBinding:
    if not isinstance(acl, AclBinding):
        raise TypeError(f"acls: a rule is an AclBinding, not {acl!r}")
    checked = AclBinding(
        member(AclResourceType, acl.resource_type, "acls: resource_type"),
        text(acl.resource_name, "acls: resource_name"),
        text(acl.principal, "acls: principal"),
        member(AclOperation, acl.operation, "acls: operation"),
        member(AclPermission, acl.permission, "acls: permission"),
        text(acl.host, "acls: host"),
        member(PatternType, acl.pattern_type, "acls: pattern_type"),
    )
    if ":" not in acl.principal:
        raise ArgumentError(f"acls: principal is {acl.principal!r}, but must have its type in front: User:{acl.principal}")
    for name, value in (("resource_type", checked.resource_type), ("operation", checked.operation)):
        if value in (0, 1):
            raise ArgumentError(f"acls: {name} of a rule must be definite: any is for filters")
    if checked.permission in (0, 1):
        raise ArgumentError("acls: permission of a rule must be allow or deny")
    if checked.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise ArgumentError("acls: pattern_type of a rule must be literal or prefixed: any and match are for filters")
    return checked


def _checked_filter(wanted: AclFilter, argument: str) -> AclFilter:
    if not isinstance(wanted, AclFilter):
        raise TypeError(f"{argument}: must be an AclFilter, not {wanted!r}")
    return AclFilter(
        member(AclResourceType, wanted.resource_type, f"{argument}: resource_type"),
        wanted.resource_name,
        wanted.principal,
        member(AclOperation, wanted.operation, f"{argument}: operation"),
        member(AclPermission, wanted.permission, f"{argument}: permission"),
        wanted.host,
        member(PatternType, wanted.pattern_type, f"{argument}: pattern_type"),
    )
