"""What every API answers to users who are allowed nothing, something and enough: the same for Ottla and for Apache Kafka.

The rows are in `tests/support/cases/access_rows.py`; each step of a row has a user of its own, who logs in with PLAIN. Requests
go to a broker, which forwards some, and to a controller's listener.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from tests.support.cases.access_rows import BROKER, DENIALS, ROWS, TOPICS, Ask, Row, codes_in, request_of
from tests.support.logs.batches import make_batch
from tests.support.peers.raw_client import RawClient
from tests.support.servers.kafka_server import KafkaServer, free_ports, ports_of
from tests.support.servers.ottla_server import StartServer

from ottla.ids import Uuid
from ottla.metadata.acls import CLUSTER_NAME, OPERATIONS, RESOURCE_TYPES, PatternType, Permission, ResourceType
from ottla.wire.apis import APIS
from ottla.wire.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest

STEPS = [(row, at) for row in ROWS for at in range(len(row.steps))]
USERS = {(row.name, at): f"user{number}" for number, (row, at) in enumerate(STEPS)}
BATCH = bytes(make_batch())
TRANSACTIONAL_BATCH = bytes(make_batch(producer=(1, 0, 0), transactional=True))
LISTENERS = ("PLAINTEXT", "SASL", "CONTROLLER")
STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


class Guarded(NamedTuple):
    server: KafkaServer
    ids: dict[str, Uuid]

    def client(self, user: str, listener: str = BROKER) -> RawClient:
        client = RawClient(ports_of(self.server.properties)[listener])
        assert client.request(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 0
        login = f"\0{user}\0secret".encode()
        assert client.request(SaslAuthenticateRequest(auth_bytes=login), 2).error_code == 0
        return client


def guarded_properties() -> dict[str, object]:
    """Brokers talk to each other as User:ANONYMOUS, to the controller as User:admin."""
    ports = dict(zip(LISTENERS, free_ports(len(LISTENERS)), strict=True))
    users = " ".join(f'user_{name}="secret"' for name in ("admin", *USERS.values()))
    module = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="admin" password="secret" {users};'
    return {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{ports['CONTROLLER']}",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "authorizer.class.name": STANDARD,
        "super.users": "User:admin;User:ANONYMOUS",
        **{f"listener.name.{name}.sasl.enabled.mechanisms": "PLAIN" for name in ("sasl", "controller")},
        **{f"listener.name.{name}.plain.sasl.jaas.config": module for name in ("sasl", "controller")},
    }


@pytest.fixture(scope="module")
def guarded(start_server: StartServer) -> Iterator[Guarded]:
    with start_server(guarded_properties()) as server, RawClient(ports_of(server.properties)["PLAINTEXT"]) as admin:
        wanted = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in TOPICS]
        created = admin.request(CreateTopicsRequest(topics=wanted, timeout_ms=30_000), 7)
        assert [each.error_code for each in created.topics] == [0, 0]
        bindings = [binding for row, at in STEPS for binding in bindings_of(row, at)]
        for start in range(0, len(bindings), 100):
            results = admin.request(CreateAclsRequest(creations=bindings[start : start + 100]), 3).results
            assert {each.error_code for each in results} == {0}
        for kind, key in ((0, "g"), (1, "x")):  # the coordinators' topics
            while admin.request(FindCoordinatorRequest(key_type=kind, coordinator_keys=[key]), 6).coordinators[0].error_code:
                pass
        topics = [MetadataRequestTopic(name=name) for name in TOPICS]
        described = admin.request(MetadataRequest(topics=topics, allow_auto_topic_creation=False), 12).topics
        yield Guarded(server, {each.name: each.topic_id for each in described})


def bindings_of(row: Row, at: int) -> list[AclCreation]:
    """What the user of a step is allowed."""
    operations = {name.replace("_", ""): code for code, name in OPERATIONS.items()}
    types = {name: code for code, name in RESOURCE_TYPES.items()}
    found = []
    for text in filter(None, (part.strip() for part in row.steps[at][0].split(","))):
        operation, kind, *name = text.split()
        found.append(
            AclCreation(
                resource_type=types[kind],
                resource_name=CLUSTER_NAME if types[kind] == ResourceType.CLUSTER else name[0],
                resource_pattern_type=PatternType.LITERAL,
                principal=f"User:{USERS[row.name, at]}",
                host="*",
                operation=operations[operation.upper()],
                permission_type=Permission.ALLOW,
            )
        )
    return found


def asked() -> list[Any]:
    cases = []
    for row, at in STEPS:
        for version in row.versions or sorted({APIS[row.key].oldest, APIS[row.key].advertised()[1]}):
            for listener in row.listeners:
                id = f"{row.name}-{at}-v{version}-{listener.lower()}"
                cases.append(pytest.param(row, at, version, listener, id=id))
    return cases


@pytest.mark.parametrize(("row", "at", "version", "listener"), asked())
def test_answers(guarded: Guarded, row: Row, at: int, version: int, listener: str) -> None:
    ask = Ask(version, guarded.ids, BATCH, TRANSACTIONAL_BATCH)
    with guarded.client(USERS[row.name, at], listener) as client:
        response = client.request(request_of(row.key, row.fields(ask)), version)
    codes, expected = codes_in(response), row.steps[at][1]
    if expected is None:
        assert not DENIALS.intersection(codes), response
    else:
        assert codes == list(expected), response
