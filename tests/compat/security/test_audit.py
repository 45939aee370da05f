"""The audit log: the same lines, at the same levels, for Ottla and for Apache Kafka."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.logs.batches import make_batch
from tests.support.peers.fetching import fetch_of, part
from tests.support.peers.raw_client import RawClient
from tests.support.peers.sasl_login import plain_login
from tests.support.peers.topics import await_true, make_topic
from tests.support.servers.kafka_server import KafkaServer, ports_of
from tests.support.servers.ottla_server import StartServer
from tests.support.servers.sasl_server import ALICES_PASSWORD, sasl_properties

from ottla.metadata.acls import Operation, PatternType, Permission, ResourceType
from ottla.wire.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

LOGGER = 8
LINE = re.compile(
    r"Principal = (\S+) is (Allowed|Denied) operation = (\w+) from host = 127\.0\.0\.1 on resource = (\S+) for request = (\w+) "
    r"with resourceRefCount = (\d+) based on rule (\w+)"
)
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@pytest.fixture(scope="module", params=["INFO", "DEBUG"])
def level(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def server(start_server: StartServer, server_kind: str, level: str) -> Iterator[KafkaServer]:
    options: dict[str, Any] = {}
    if server_kind == "apache":
        options["jvm_flags"] = [f"-Dorg.slf4j.simpleLogger.log.kafka.authorizer.logger={level.lower()}"]
    with start_server(sasl_properties() | SETTINGS, **options) as server:
        for topic in ("written", "denied"):
            make_topic(server.bootstrap, topic)
        with RawClient.to(server.bootstrap) as client:
            rule = AclCreation(
                resource_type=ResourceType.TOPIC,
                resource_name="written",
                resource_pattern_type=PatternType.LITERAL,
                principal="User:alice",
                host="*",
                operation=Operation.WRITE,
                permission_type=Permission.ALLOW,
            )
            assert not client.request(CreateAclsRequest(creations=[rule]), 3).results[0].error_code
            if server_kind == "ottla":
                config = AlterableConfig(name="kafka.authorizer.logger", config_operation=0, value=level)
                resource = AlterConfigsResource(resource_type=LOGGER, resource_name="1", configs=[config])
                assert not client.request(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses[0].error_code
        yield server


def test_decisions_are_lines_with_principal_resource_and_rule(server: KafkaServer, level: str) -> None:
    with RawClient(ports_of(server.properties)["SASL"]) as client:
        plain_login(client, "alice", ALICES_PASSWORD)
        named = [MetadataRequestTopic(name=name) for name in ("written", "denied")]
        await_true(
            lambda: client.request(MetadataRequest(topics=named[:1]), 9).topics[0].error_code == 0, "the rule to be known"
        )
        batch = bytes(make_batch())
        topics = [
            TopicProduceData(name=name, partition_data=[PartitionProduceData(index=0, records=batch)])
            for name in ("written", "denied")
        ]
        answer = client.request(ProduceRequest(acks=1, timeout_ms=10_000, topic_data=topics), 9)
        assert sorted(each.partition_responses[0].error_code for each in answer.responses) == [0, 29]
        client.request(fetch_of("written", part(0, 0), max_wait_ms=0), 12)
        client.request(MetadataRequest(topics=None), 9)
        client.request(ListGroupsRequest(), 4)

    def lines() -> list[tuple[str, ...]]:
        return [found.groups() for found in LINE.finditer(server.log_text()) if found[1] == "User:alice"]

    denied = [
        ("User:alice", "Denied", "WRITE", "Topic:LITERAL:denied", "Produce", "1", "DefaultDeny"),
        ("User:alice", "Denied", "READ", "Topic:LITERAL:written", "Fetch", "1", "DefaultDeny"),
    ]
    allowed = [
        ("User:alice", "Allowed", "DESCRIBE", "Topic:LITERAL:written", "Metadata", "1", "MatchingAcl"),
        ("User:alice", "Allowed", "WRITE", "Topic:LITERAL:written", "Produce", "1", "MatchingAcl"),
    ]
    await_true(lambda: set(denied) <= set(lines()), "the lines of what was denied")
    found = [line for line in lines() if line[4] != "Metadata" or line[1] == "Allowed"]  # denied until the rule was known
    assert [line for line in found if line[1] == "Denied"] == denied, "what only filters an answer is no line"
    assert {line for line in found if line[1] == "Allowed"} == (set(allowed) if level == "DEBUG" else set())
