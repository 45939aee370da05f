"""Our authorizer decides as Apache Kafka's own, on generated bindings and requests."""

from random import Random

import pytest
from tests.support.cases.access import World, is_allowed, worlds
from tests.support.servers.apache_kafka import ApacheKafka

from ottla.config.authorizer import AuthorizerConfig
from ottla.ids import Uuid
from ottla.metadata.authorizer import StandardAuthorizer
from ottla.wire.messages.metadata_records import AccessControlEntryRecord

PAIRS = 100_000


@pytest.mark.slow
def test_100_000_requests_are_decided_as_by_apaches_authorizer(apache_kafka: ApacheKafka) -> None:
    all_worlds = list(worlds(Random(33), 2200, 50))
    lines = [line for world in all_worlds for line in told(world)]
    answers = apache_kafka.run_java("AclOracle.java", stdin="".join(f"{line}\n" for line in lines)).stdout.split()
    theirs = iter(answers)
    allowed = 0
    for world in all_worlds:
        authorizer = authorizer_of(world)
        for asked in world.questions:
            who = asked.principal, asked.host, asked.operation, asked.resource_type
            ours = authorizer.allows_any(*who) if asked.name is None else authorizer.allows(*who, asked.name)
            assert ours == (next(theirs) == "1"), (world, asked)
            assert ours == is_allowed(world, asked), "the plain rules are Apache's"
            allowed += ours
    assert len(answers) >= PAIRS
    assert PAIRS // 5 < allowed < PAIRS * 4 // 5


def told(world: World) -> list[str]:
    """A world, in the oracle's lines."""
    lines = [f"world\t{';'.join(world.super_users)}\t{world.allow_everyone}"]
    lines += ["\t".join(map(str, ("acl", *acl))) for acl in world.acls]
    lines += ["drop"] * world.dropped
    for asked in world.questions:
        fields = [asked.principal.type, asked.principal.name, asked.host, str(asked.operation), str(asked.resource_type)]
        lines.append("\t".join(["any", *fields] if asked.name is None else ["ask", *fields, asked.name]))
    return lines


def authorizer_of(world: World) -> StandardAuthorizer:
    authorizer = StandardAuthorizer(AuthorizerConfig(frozenset(world.super_users), world.allow_everyone))
    records = [
        AccessControlEntryRecord(
            id=Uuid(number.to_bytes(16, "big")),
            resource_type=acl.resource_type,
            resource_name=acl.name,
            pattern_type=acl.pattern_type,
            principal=acl.principal,
            host=acl.host,
            operation=acl.operation,
            permission_type=acl.permission,
        )
        for number, acl in enumerate(world.acls)
    ]
    authorizer.follow([record.id for record in records], {record.id: record for record in records})
    left = {record.id: record for record in records[world.dropped :]}
    authorizer.follow([record.id for record in records[: world.dropped]], left)
    return authorizer
