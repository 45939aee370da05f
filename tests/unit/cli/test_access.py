"""`ottla acls`, `users`, `tokens` and `quotas`: what is asked of the cluster, and what is shown of its answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.nodes.fake_node import FakeNetwork, FakeNode
from tests.unit.cli.conftest import WHERE, RunOttla

from ottla.cli.acls import decide, parse_resource
from ottla.client.admin.acl_types import AclBinding, AclOperation, AclPermission, AclResourceType, PatternType
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntityData,
    AlterClientQuotasResponseEntryData,
)
from ottla.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from ottla.wire.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse
from ottla.wire.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from ottla.wire.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse, DescribeConfigsResult

TOPIC, READ, WRITE, DESCRIBE = AclResourceType.TOPIC, AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE
ALICE, ALL = "User:alice", AclOperation.ALL


@pytest.fixture
def node(node: FakeNode) -> FakeNode:
    def altered(request: AlterClientQuotasRequest, version: int) -> AlterClientQuotasResponse:
        entries = [
            AlterClientQuotasResponseEntryData(
                error_message=None,
                entity=[
                    AlterClientQuotasResponseEntityData(entity_type=each.entity_type, entity_name=each.entity_name)
                    for each in entry.entity
                ],
            )
            for entry in request.entries
        ]
        return AlterClientQuotasResponse(entries=entries)

    def quotas(request: Any, version: int) -> DescribeClientQuotasResponse:
        entity = [EntityData(entity_type="user", entity_name="alice"), EntityData(entity_type="client-id", entity_name=None)]
        values = [ValueData(key="producer_byte_rate", value=1024.0), ValueData(key="request_percentage", value=12.5)]
        return DescribeClientQuotasResponse(entries=[EntryData(entity=entity, values=values)])

    def rules(request: Any, version: int) -> DescribeAclsResponse:
        acl = AclDescription(principal=ALICE, host="*", operation=READ, permission_type=AclPermission.ALLOW)
        resource = DescribeAclsResource(
            resource_type=TOPIC, resource_name="orders", pattern_type=PatternType.LITERAL, acls=[acl]
        )
        return DescribeAclsResponse(resources=[resource])

    node.handlers |= {
        AlterClientQuotasRequest: altered,
        DescribeClientQuotasRequest: quotas,
        DescribeAclsRequest: rules,
        CreateAclsRequest: lambda request, version: CreateAclsResponse(
            results=[AclCreationResult() for _ in request.creations]
        ),
        DescribeConfigsRequest: lambda request, version: DescribeConfigsResponse(
            results=[
                DescribeConfigsResult(resource_type=each.resource_type, resource_name=each.resource_name)
                for each in request.resources
            ]
        ),
        AlterUserScramCredentialsRequest: lambda request, version: AlterUserScramCredentialsResponse(
            results=[AlterUserScramCredentialsResult(user=each.name) for each in (*request.upsertions, *request.deletions)]
        ),
    }
    return node


@pytest.fixture
def network(node: FakeNode) -> FakeNetwork:
    return FakeNetwork({WHERE: node})


# Rules


@pytest.mark.parametrize(
    ("text", "resource"),
    [
        ("topic:orders", (TOPIC, "orders", PatternType.LITERAL)),
        ("topic:orders-*", (TOPIC, "orders-", PatternType.PREFIXED)),
        ("topic:*", (TOPIC, "*", PatternType.LITERAL)),
        ("cluster", (AclResourceType.CLUSTER, "kafka-cluster", PatternType.LITERAL)),
        ("transactional_id:a:b", (AclResourceType.TRANSACTIONAL_ID, "a:b", PatternType.LITERAL)),
    ],
)
def test_resources_are_written_in_short(text: str, resource: object) -> None:
    assert parse_resource(text) == resource


def rule(
    operation: AclOperation, permission: str = "allow", who: str = ALICE, host: str = "*", name: str = "orders"
) -> AclBinding:
    return AclBinding(TOPIC, name, who, operation, AclPermission[permission.upper()], host)


@pytest.mark.parametrize(
    ("rules", "operation", "host", "is_allowed"),
    [
        ([rule(READ)], READ, None, True),
        ([rule(READ)], DESCRIBE, None, True),
        ([rule(READ)], WRITE, None, False),
        ([rule(ALL)], WRITE, None, True),
        ([rule(DESCRIBE)], READ, None, False),
        ([rule(READ), rule(READ, "deny", name="*")], READ, None, False),
        ([rule(READ), rule(READ, "deny")], DESCRIBE, None, True),
        ([rule(READ), rule(ALL, "deny")], DESCRIBE, None, False),
        ([rule(READ, who="User:*")], READ, None, True),
        ([rule(READ, host="10.0.0.1")], READ, None, False),
        ([rule(READ, host="10.0.0.1")], READ, "10.0.0.1", True),
        ([rule(READ, who="User:bob")], READ, None, False),
    ],
)
def test_rules_are_decided_as_by_the_authorizer(
    rules: list[AclBinding], operation: AclOperation, host: str | None, is_allowed: bool
) -> None:
    for allows_without in (False, True):  # it counts only where there is no rule at all
        assert decide(rules, ALICE, host, operation, allows_without).is_allowed == is_allowed
    assert decide([], ALICE, host, operation, True).is_allowed


def test_check_says_by_which_rule(ottla: RunOttla) -> None:
    said = ottla("acls", "check", "alice", "describe", "topic:orders")
    assert (said.rc, said.lines) == (
        0,
        ["allowed: User:alice, Describe on topic:orders: a rule allows it", "  User:alice may Read topic:orders"],
    )
    said = ottla("acls", "check", "alice", "write", "topic:orders", "--json")
    assert (said.rc, json.loads(said.out)) == (1, {"allowed": False, "reason": "no rule allows it", "rule": None})


def test_check_without_an_authorizer(ottla: RunOttla, node: FakeNode) -> None:
    node.handlers[DescribeAclsRequest] = lambda request, version: DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED)
    said = ottla("acls", "check", "alice", "write", "topic:orders")
    assert said.rc == 0
    assert "no authorizer" in said.out


@pytest.mark.parametrize(
    "words",
    [
        ("add", "alice", "read,describe", "topic:orders-*", "--host", "10.0.0.1"),
        (
            *("--add", "--allow-principal", "User:alice", "--operation", "Read", "--operation", "Describe"),
            *("--topic", "orders-", "--resource-pattern-type", "prefixed", "--allow-host", "10.0.0.1"),
        ),
    ],
)
def test_rules_are_added_in_both_spellings(ottla: RunOttla, node: FakeNode, words: tuple[str, ...]) -> None:
    said = ottla("acls", *words)
    assert said.rc == 0, said.err
    assert said.lines[0] == (
        "Adding ACLs for resource `ResourcePattern(resourceType=TOPIC, name=orders-, patternType=PREFIXED)`:"
    )
    assert said.lines[1] == "\t(principal=User:alice, host=10.0.0.1, operation=READ, permissionType=ALLOW)"
    (request,) = node.asked_for(CreateAclsRequest)
    assert [(each.principal, each.operation, each.host) for each in request.creations] == [
        (ALICE, READ, "10.0.0.1"),
        (ALICE, DESCRIBE, "10.0.0.1"),
    ]


def test_convenient_flags_mean_what_clients_need(ottla: RunOttla, node: FakeNode) -> None:
    words = ("--allow-principal", "User:alice", "--topic", "t", "--group", "g", "--producer", "--consumer")
    assert ottla("acls", "--add", *words).rc == 0
    (request,) = node.asked_for(CreateAclsRequest)
    assert {(each.resource_name, AclOperation(each.operation).name) for each in request.creations} == {
        *(("t", name) for name in ("WRITE", "DESCRIBE", "CREATE", "READ")),
        ("g", "READ"),
    }


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("acls", "add", "alice", "read"), "write PRINCIPAL OPERATIONS RESOURCE"),
        (("acls", "add", "alice", "sing", "topic:t"), "'sing' is no operation"),
        (("acls", "add", "alice", "read", "orders"), "'orders' is no resource"),
        (("acls", "--add", "--topic", "t"), "say who"),
        (("acls", "--add", "--allow-principal", "User:a"), "name a resource"),
        (("acls", "--add", "--allow-principal", "User:a", "--consumer", "--topic", "t"), "needs a --group"),
        (("acls", "remove"), "say which rules"),
        (("users", "add", "alice", "--password", "x"), "others can see command lines"),
        (("users", "add", "alice"), "no terminal to ask for the password"),
        (("users", "add", "alice", "--password-file", "/nowhere"), "cannot be read"),
        (("tokens", "renew"), "name one token by its id"),
        (("tokens", "expire", "not base64!"), "neither the id of a token"),
        (("tokens", "create", "--max-lifetime", "long"), "a duration such as 7d"),
        (("quotas", "set", "produce=1"), "say whose quota"),
        (("quotas", "set", "--user", "a", "prodce=1"), "did you mean produce"),
        (("quotas", "set", "--user", "a", "--user-defaults", "produce=1"), "exclude each other"),
        (("quotas", "remove", "--user", "a"), "say which quotas"),
    ],
)
def test_wrong_usage(ottla: RunOttla, words: tuple[str, ...], sentence: str) -> None:
    said = ottla(*words)
    assert said.rc == 2
    assert sentence in said.err


# Users


def test_password_comes_from_a_file_or_the_environment(
    ottla: RunOttla, node: FakeNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "secret"
    file.write_text("sesame\n")
    said = ottla(
        "users", "add", "alice", "--password-file", file, "--mechanism", "SCRAM-SHA-256", "--mechanism", "scram-sha-512"
    )
    assert said.rc == 0, said.err
    assert "sesame" not in said.out + said.err
    monkeypatch.setenv("OTTLA_NEW_PASSWORD", "sesame")
    assert ottla("users", "add", "alice", "--iterations", 8192).rc == 0
    asked = [each for request in node.asked_for(AlterUserScramCredentialsRequest) for each in request.upsertions]
    assert [(each.name, each.mechanism, each.iterations) for each in asked] == [
        *(("alice", 1, 4096), ("alice", 2, 4096), ("alice", 2, 8192)),
    ]


def test_kafkas_spelling_of_a_scram_user(ottla: RunOttla, node: FakeNode) -> None:
    words = ("--alter", "--entity-type", "users", "--entity-name", "alice", "--add-config")
    said = ottla("configs", *words, "SCRAM-SHA-256=[iterations=8192,password=sesame]")
    assert (said.rc, said.lines) == (0, ["Completed updating config for user-principal 'alice'."])
    ((upsertion,),) = [each.upsertions for each in node.asked_for(AlterUserScramCredentialsRequest)]
    assert (upsertion.name, upsertion.mechanism, upsertion.iterations) == ("alice", 1, 8192)


# Quotas


@pytest.mark.parametrize(
    "words",
    [
        ("quotas", "set", "--user", "alice", "--client-defaults", "produce=10MB", "requests=12.5%"),
        (
            *("configs", "--alter", "--entity-type", "users", "--entity-name", "alice", "--client-defaults"),
            *("--add-config", "producer_byte_rate=10000000,request_percentage=12.5"),
        ),
    ],
)
def test_quotas_are_set_in_both_spellings(ottla: RunOttla, node: FakeNode, words: tuple[str, ...]) -> None:
    said = ottla(*words)
    assert said.rc == 0, said.err
    ((entry,),) = [each.entries for each in node.asked_for(AlterClientQuotasRequest)]
    assert {each.entity_type: each.entity_name for each in entry.entity} == {"user": "alice", "client-id": None}
    assert {each.key: each.value for each in entry.ops} == {"producer_byte_rate": 10_000_000, "request_percentage": 12.5}


def test_quotas_are_listed(ottla: RunOttla, node: FakeNode) -> None:
    said = ottla("quotas", "list")
    assert said.lines == [
        "Quota configs for user-principal 'alice', the default client-id are producer_byte_rate=1024.0, request_percentage=12.5"
    ]
    assert json.loads(ottla("quotas", "list", "--json").out) == [
        {"entity": {"user": "alice", "client-id": None}, "quotas": {"producer_byte_rate": 1024.0, "request_percentage": 12.5}}
    ]
    table = ottla("quotas", "list", columns=120).out
    assert "user alice, every other client" in table
    assert "1024" in table


def test_all_quotas_of_an_entity_are_removed(ottla: RunOttla, node: FakeNode) -> None:
    said = ottla("quotas", "remove", "--user", "alice", "--client-defaults", "--all")
    assert said.rc == 0, said.err
    ((entry,),) = [each.entries for each in node.asked_for(AlterClientQuotasRequest)]
    assert {each.key: each.remove for each in entry.ops} == {"producer_byte_rate": True, "request_percentage": True}
