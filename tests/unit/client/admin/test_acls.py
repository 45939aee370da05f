"""Access control rules."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.nodes.fake_node import FakeNode

from ottla.client.admin.acl_types import (
    AclBinding,
    AclFilter,
    AclOperation,
    AclPermission,
    AclResourceType,
    PatternType,
)
from ottla.errors import ClusterAuthorizationError, SecurityDisabledError, UnknownServerError
from ottla.wire.apis import ApiKey
from ottla.wire.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse
from ottla.wire.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from ottla.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse


def test_rules_are_created_found_and_deleted(
    admin: Any, name: str, needs: Callable[..., None], eventually: Callable[..., None]
) -> None:
    needs(ApiKey.CREATE_ACLS, ApiKey.DESCRIBE_ACLS, ApiKey.DELETE_ACLS)
    read = AclBinding("topic", name, "User:alice", "read")
    deny = AclBinding("group", name, "User:*", AclOperation.ALL, "deny", "10.0.0.1", "prefixed")
    admin.create_acls([read, deny, read]).raise_first()
    mine = AclFilter(resource_name=name)
    full_read = AclBinding(
        AclResourceType.TOPIC, name, "User:alice", AclOperation.READ, AclPermission.ALLOW, "*", PatternType.LITERAL
    )
    full_deny = AclBinding(
        AclResourceType.GROUP, name, "User:*", AclOperation.ALL, AclPermission.DENY, "10.0.0.1", PatternType.PREFIXED
    )
    eventually(lambda: sorted(admin.describe_acls(mine)), sorted([full_read, full_deny]))
    assert set(admin.describe_acls()) >= {full_read, full_deny}
    assert admin.describe_acls(AclFilter(principal="User:alice", resource_name=name)) == [full_read]
    matching = AclFilter("group", f"{name}-and-more", pattern_type="match")
    assert admin.describe_acls(matching) == [full_deny]
    results = admin.delete_acls([full_read, AclFilter(resource_name=name, permission="deny"), AclFilter("user", "nobody")])
    assert [sorted(each) for each in results.values()] == [[full_read], [full_deny], []]
    eventually(lambda: admin.describe_acls(mine), [])


def test_each_rule_has_its_own_error(scripted: Any, node: FakeNode) -> None:
    first, second, third = (AclBinding("topic", each, "User:a", "read") for each in "abc")
    node.handlers[CreateAclsRequest] = lambda request, version: CreateAclsResponse(
        results=[AclCreationResult(), AclCreationResult(error_code=31)]
    )
    results = scripted.create_acls([first, second, third])
    errors = [type(each) for each in results.errors.values()]
    assert errors == [ClusterAuthorizationError, UnknownServerError]
    assert "User:a allow read topic b was not created" in str(results.errors[next(iter(results.errors))])


def test_deletion_that_failed_in_part_is_an_error(scripted: Any, node: FakeNode) -> None:
    matching = [DeleteAclsMatchingAcl(resource_type=2, resource_name="a", principal="User:a", operation=3, permission_type=3)]
    matching.append(DeleteAclsMatchingAcl(error_code=-1, error_message="disk full", resource_type=99))
    node.handlers[DeleteAclsRequest] = lambda request, version: DeleteAclsResponse(
        filter_results=[DeleteAclsFilterResult(matching_acls=matching)]
    )
    with pytest.raises(UnknownServerError, match="disk full"):
        scripted.delete_acls([AclFilter()]).raise_first()


def test_server_without_an_authorizer_says_so(scripted: Any, node: FakeNode) -> None:
    node.handlers[DescribeAclsRequest] = lambda request, version: DescribeAclsResponse(error_code=54, error_message="no rules")
    with pytest.raises(SecurityDisabledError, match="no rules"):
        scripted.describe_acls()


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (AclBinding("planet", "a", "User:a", "read"), "acls: resource_type is 'planet'"),
        (AclBinding("any", "a", "User:a", "read"), "acls: resource_type of a rule must be definite"),
        (AclBinding("topic", "", "User:a", "read"), "acls: resource_name must not be empty"),
        (AclBinding("topic", "a", "alice", "read"), "acls: principal is 'alice', .* User:alice"),
        (AclBinding("topic", "a", "User:a", "any"), "acls: operation of a rule must be definite"),
        (AclBinding("topic", "a", "User:a", "read", "any"), "acls: permission of a rule must be allow or deny"),
        (AclBinding("topic", "a", "User:a", "read", pattern_type="match"), "acls: pattern_type of a rule"),
    ],
)
def test_bad_rule_is_named(scripted: Any, rule: AclBinding, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        scripted.create_acls([rule])


def test_bad_filter_is_named(scripted: Any) -> None:
    with pytest.raises(ValueError, match="acl_filter: operation is 'fly'"):
        scripted.describe_acls(AclFilter(operation="fly"))
    with pytest.raises(TypeError, match="filters: must be an AclFilter"):
        scripted.delete_acls(["all"])
