"""StandardAuthorizer beside its rules in their plainest form; the whole of it beside Apache's is in `tests/compat/security`."""

from random import Random
from typing import Any

import pytest
from tests.support.cases.access import Question, World, is_allowed, worlds
from tests.support.cases.examples import examples

from ottla.config.authorizer import AuthorizerConfig
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import Principal, Uuid
from ottla.metadata.acls import Acl, Operation, PatternType, Permission, ResourceType
from ottla.metadata.authorizer import StandardAuthorizer
from ottla.wire.messages.metadata_records import AccessControlEntryRecord

ANN = Principal("User", "ann")
HOST = "10.0.0.1"
WORLDS = examples(1000)


def record_of(acl: Acl, number: int) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        id=Uuid(number.to_bytes(16, "big")),
        resource_type=acl.resource_type,
        resource_name=acl.name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )


def authorizer_of(*acls: Acl, **settings: Any) -> StandardAuthorizer:
    authorizer = StandardAuthorizer(AuthorizerConfig(**settings))
    records = {record.id: record for record in (record_of(acl, number) for number, acl in enumerate(acls))}
    authorizer.follow(records, records)
    return authorizer


def answer(authorizer: StandardAuthorizer, asked: Question) -> bool:
    who = asked.principal, asked.host, asked.operation, asked.resource_type
    return authorizer.allows_any(*who) if asked.name is None else authorizer.allows(*who, asked.name)


def test_decides_as_the_rules_say() -> None:
    decided = [0, 0]
    for world in worlds(Random(11), WORLDS, 40):
        authorizer = followed(world)
        for asked in world.questions:
            expected = is_allowed(world, asked)
            assert answer(authorizer, asked) == expected, (world, asked)
            decided[expected] += 1
    assert min(decided) > WORLDS


def followed(world: World) -> StandardAuthorizer:
    """An authorizer that has seen bindings come and go, in several steps."""
    authorizer = StandardAuthorizer(AuthorizerConfig(frozenset(world.super_users), world.allow_everyone))
    records = {record.id: record for record in (record_of(acl, number) for number, acl in enumerate(world.acls))}
    half = dict(list(records.items())[: len(records) // 2])
    authorizer.follow(half, half)
    authorizer.follow(records.keys() - half.keys(), records)
    dropped = list(records)[: world.dropped]
    authorizer.follow(dropped, {key: record for key, record in records.items() if key not in dropped})
    return authorizer


def test_nothing_is_left_of_removed_bindings() -> None:
    for world in worlds(Random(12), 50, 0):
        authorizer = followed(world)
        authorizer.follow([Uuid(number.to_bytes(16, "big")) for number in range(len(world.acls))], {})
        assert not any(authorizer._patterns.values())
        assert not any(authorizer._lengths.values())
        assert not authorizer._of_principal


def test_verdict_names_its_rule() -> None:
    prefixed = Acl(ResourceType.TOPIC, "a", PatternType.PREFIXED, "User:ann", "*", Operation.READ, Permission.ALLOW)
    deny = Acl(ResourceType.TOPIC, "ab", PatternType.LITERAL, "User:*", HOST, Operation.ALL, Permission.DENY)
    authorizer = authorizer_of(prefixed, deny, super_users=frozenset(["User:root"]))
    decide = authorizer.decide
    assert decide(ANN, HOST, Operation.DESCRIBE, ResourceType.TOPIC, "aa").rule == prefixed
    assert decide(ANN, HOST, Operation.READ, ResourceType.TOPIC, "ab").rule == deny
    assert str(decide(ANN, HOST, Operation.WRITE, ResourceType.TOPIC, "aa")) == "DefaultDeny"
    assert str(decide(Principal("User", "root"), HOST, Operation.WRITE, ResourceType.TOPIC, "aa")) == "SuperUser"
    assert str(authorizer_of(allow_everyone=True).decide(ANN, HOST, 3, ResourceType.TOPIC, "b")) == "DefaultAllow"
    assert str(decide(ANN, HOST, Operation.READ, ResourceType.TOPIC, "ab")) == (
        "MatchingAcl(acl=StandardAcl(resourceType=Topic, resourceName=ab, patternType=LITERAL, principal=User:*, "
        f"host={HOST}, operation=ALL, permissionType=DENY))"
    )


def test_only_super_users_are_answered_before_the_bindings_are_loaded() -> None:
    authorizer = StandardAuthorizer(AuthorizerConfig(frozenset(["User:root"]), True))
    assert authorizer.allows(Principal("User", "root"), HOST, Operation.READ, ResourceType.TOPIC, "t")
    with pytest.raises(KafkaError, match="has not loaded") as refused:
        authorizer.allows(ANN, HOST, Operation.READ, ResourceType.TOPIC, "t")
    assert refused.value.code == ErrorCode.UNKNOWN_SERVER_ERROR
    authorizer.follow((), {})
    assert authorizer.allows(ANN, HOST, Operation.READ, ResourceType.TOPIC, "t")


def test_codes_that_nobody_knows_cover_and_match_nothing() -> None:
    authorizer = authorizer_of(
        Acl(ResourceType.TOPIC, "t", PatternType.LITERAL, "User:ann", "*", -1, Permission.ALLOW), allow_everyone=True
    )
    assert not authorizer.allows(ANN, HOST, Operation.READ, ResourceType.TOPIC, "t")
    assert authorizer.allows(ANN, HOST, Operation.READ, ResourceType.TOPIC, "u")
