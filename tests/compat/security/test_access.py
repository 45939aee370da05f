"""What every API answers to users who are allowed nothing, something and enough: the same for Ottla and for Apache Kafka.

The rows are in `tests/support/cases/access_rows.py`; each step of a row has a user of its own, who logs in with PLAIN. Requests
go to a broker, which forwards some, and to a controller's listener.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from tests.support.cases.access_rows import (
    BROKER,
    DENIALS,
    GROUPS,
    ROWS,
    TOPICS,
    TRANSACTION,
    UNSET,
    Ask,
    Row,
    codes_in,
    request_of,
)
from tests.support.logs.batches import make_batch
from tests.support.peers.raw_client import RawClient
from tests.support.peers.sasl_login import is_closed
from tests.support.servers.kafka_server import HANG_S, KafkaServer, free_ports, ports_of
from tests.support.servers.ottla_server import StartServer

from ottla.ids import Uuid
from ottla.metadata.acls import ANY, CLUSTER_NAME, OPERATIONS, RESOURCE_TYPES, Operation, PatternType, Permission, ResourceType
from ottla.wire.apis import APIS
from ottla.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from ottla.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.wire.messages.create_delegation_token import CreateDelegationTokenRequest
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ottla.wire.messages.describe_delegation_token import DescribeDelegationTokenRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest

STEPS = [(row, at) for row in ROWS for at in range(len(row.steps))]
USERS = {(row.name, at): f"user{number}" for number, (row, at) in enumerate(STEPS)}
CONNECTED = ("carol", "dave", "erin", "frank")
"""Users whose rights change while they are connected."""
BATCH = bytes(make_batch())
TRANSACTIONAL_BATCH = bytes(make_batch(producer=(1, 0, 0), transactional=True))
LISTENERS = ("PLAINTEXT", "SASL", "CONTROLLER")
STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


class Guarded(NamedTuple):
    server: KafkaServer
    ids: dict[str, Uuid]
    token: bytes

    def client(self, user: str, listener: str = BROKER) -> RawClient:
        client = RawClient(ports_of(self.server.properties)[listener])
        assert client.request(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 0
        login = f"\0{user}\0secret".encode()
        assert client.request(SaslAuthenticateRequest(auth_bytes=login), 2).error_code == 0
        return client


def guarded_properties() -> dict[str, object]:
    """Brokers talk to each other as User:ANONYMOUS, to the controller as User:admin."""
    ports = dict(zip(LISTENERS, free_ports(len(LISTENERS)), strict=True))
    users = " ".join(f'user_{name}="secret"' for name in ("admin", *CONNECTED, *USERS.values()))
    module = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="admin" password="secret" {users};'
    return {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{ports['CONTROLLER']}",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "authorizer.class.name": STANDARD,
        "delegation.token.secret.key": "a key for tests",
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
        for group in GROUPS:
            commit_offsets(admin, group)
        begin_transaction(admin)
        guarded = Guarded(server, {each.name: each.topic_id for each in described}, b"")
        yield guarded._replace(token=make_token(guarded))


def until(done: Callable[[], object]) -> None:
    """Repeat a request until it is answered well: coordinators load, brokers learn what the controller has decided."""
    deadline_s = time.monotonic() + HANG_S
    while not done():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


def commit_offsets(admin: RawClient, group: str) -> None:
    offset = OffsetCommitRequestPartition(partition_index=0, committed_offset=0)
    topics = [OffsetCommitRequestTopic(name=name, partitions=[offset]) for name in TOPICS]
    request = OffsetCommitRequest(group_id=group, topics=topics)
    until(lambda: not codes_in(admin.request(request, 8)))


def begin_transaction(admin: RawClient) -> None:
    """A transaction of both topics that stays open."""
    init = InitProducerIdRequest(transactional_id=TRANSACTION, transaction_timeout_ms=900_000)
    until(lambda: not admin.request(init, 4).error_code)
    made = admin.request(init, 4)
    topics = [AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in TOPICS]
    add = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=TRANSACTION,
        v3_and_below_producer_id=made.producer_id,
        v3_and_below_producer_epoch=made.producer_epoch,
        v3_and_below_topics=topics,
    )
    until(lambda: not codes_in(admin.request(add, 3)))


def make_token(guarded: Guarded) -> bytes:
    """A delegation token of carol's."""
    wanted = CreateDelegationTokenRequest(owner_principal_type="User", owner_principal_name="carol", max_lifetime_ms=-1)
    with guarded.client("admin") as client:
        made = client.request(wanted, 3)
        assert made.error_code == 0
        until(lambda: client.request(DescribeDelegationTokenRequest(owners=None), 3).tokens)
    hmac: bytes = made.hmac
    return hmac


def bindings_of(row: Row, at: int) -> list[AclCreation]:
    """What the user of a step is allowed."""
    operations = {name.replace("_", ""): code for code, name in OPERATIONS.items()}
    types = {name: code for code, name in RESOURCE_TYPES.items()}
    found = []
    for text in filter(None, (part.strip() for part in row.steps[at][0].split(","))):
        is_denied = text.startswith("Deny ")
        operation, kind, *name = text.removeprefix("Deny ").split()
        found.append(
            AclCreation(
                resource_type=types[kind],
                resource_name=CLUSTER_NAME if types[kind] == ResourceType.CLUSTER else name[0],
                resource_pattern_type=PatternType.LITERAL,
                principal=f"User:{USERS[row.name, at]}",
                host="*",
                operation=operations[operation.upper()],
                permission_type=Permission.DENY if is_denied else Permission.ALLOW,
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
    ask = Ask(version, guarded.ids, BATCH, TRANSACTIONAL_BATCH, guarded.token)
    with guarded.client(USERS[row.name, at], listener) as client:
        response = client.request(request_of(row.key, row.fields(ask)), version)
    _, expected, *seen = row.steps[at]
    codes = codes_in(response)
    if expected is None:
        assert not DENIALS.intersection(codes), response
    else:
        assert codes == list(expected), response
    if row.see is not None:
        assert row.see(response) == seen[0], response


# What one request cannot show


class Rights:
    """Bindings of one user that change while it is connected."""

    def __init__(self, guarded: Guarded, admin: RawClient, user: str) -> None:
        self._admin, self._principal = admin, f"User:{user}"
        self.client = guarded.client(user)

    def allow(self, operation: int, resource_type: int, name: str, permission: int = Permission.ALLOW) -> None:
        creation = AclCreation(
            resource_type=resource_type,
            resource_name=name,
            resource_pattern_type=PatternType.LITERAL,
            principal=self._principal,
            host="*",
            operation=operation,
            permission_type=permission,
        )
        assert not codes_in(self._admin.request(CreateAclsRequest(creations=[creation]), 3))

    def deny(self, operation: int, resource_type: int, name: str) -> None:
        self.allow(operation, resource_type, name, Permission.DENY)

    def remove_denials(self) -> None:
        everything = DeleteAclsFilter(
            resource_type_filter=ANY,
            resource_name_filter=None,
            pattern_type_filter=ANY,
            principal_filter=self._principal,
            host_filter=None,
            operation=ANY,
            permission_type=Permission.DENY,
        )
        assert not codes_in(self._admin.request(DeleteAclsRequest(filters=[everything]), 3))


@pytest.fixture
def admin(guarded: Guarded) -> Iterator[RawClient]:
    with RawClient(ports_of(guarded.server.properties)["PLAINTEXT"]) as client:
        yield client


@pytest.mark.parametrize(
    ("row", "operation", "kinds", "code"),
    [
        ("produce", Operation.WRITE, [(ResourceType.TOPIC, "t"), (ResourceType.TOPIC, "u")], 29),
        (
            "offset commit",
            Operation.READ,
            [(ResourceType.TOPIC, "u"), (ResourceType.TOPIC, "t"), (ResourceType.GROUP, "g")],
            30,
        ),
    ],
)
@pytest.mark.parametrize("newest", [False, True])
def test_grants_of_the_fast_path_follow_the_metadata(
    guarded: Guarded, admin: RawClient, row: str, operation: int, kinds: list[tuple[int, str]], code: int, newest: bool
) -> None:
    """The first request is checked by the rule, those after it by the grants that it left; a change drops them."""
    rights = Rights(guarded, admin, "carol")
    (wanted,) = (each for each in ROWS if each.name == row)
    api = APIS[wanted.key]
    version = api.advertised()[1] if newest else api.oldest
    ask = Ask(version, guarded.ids, BATCH, TRANSACTIONAL_BATCH, b"")

    def codes() -> list[int]:
        return codes_in(rights.client.request(request_of(wanted.key, wanted.fields(ask)), version))

    rights.remove_denials()
    for kind, name in kinds:
        rights.allow(operation, kind, name)
    until(lambda: not codes())
    assert [codes() for _ in range(5)] == [[]] * 5
    rights.deny(operation, *kinds[0])
    until(lambda: codes() == [29])
    assert [codes() for _ in range(5)] == [[29]] * 5
    rights.remove_denials()
    until(lambda: not codes())
    rights.deny(operation, *kinds[-1])
    until(lambda: codes() == ([29] if code == 29 else [code, code]))
    rights.remove_denials()
    until(lambda: not codes())
    rights.client.close()


@pytest.mark.parametrize("version", [3, 13])
def test_produce_without_acks_ends_the_connection_and_writes_what_is_allowed(
    guarded: Guarded, admin: RawClient, version: int
) -> None:
    ask = Ask(version, guarded.ids, BATCH, TRANSACTIONAL_BATCH, b"")
    (row,) = (each for each in ROWS if each.name == "produce")
    user = USERS["produce", 1]  # may write t alone
    before = {name: end_offset(admin, name) for name in TOPICS}
    with guarded.client(user) as client:
        client.send(request_of(row.key, row.fields(ask) | {"acks": 0}), version)
        assert is_closed(client)
    until(lambda: end_offset(admin, "t") > before["t"])
    assert end_offset(admin, "u") == before["u"]


def end_offset(client: RawClient, topic: str) -> int:
    partition = ListOffsetsPartition(partition_index=0, timestamp=-1)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[partition])])
    offset: int = client.request(request, 6).topics[0].partitions[0].offset
    return offset


@pytest.mark.parametrize("version", [7, 18])
def test_denied_partition_is_in_every_response_of_a_session_until_it_is_allowed(
    guarded: Guarded, admin: RawClient, version: int
) -> None:
    rights = Rights(guarded, admin, "dave")
    rights.remove_denials()
    for name in TOPICS:
        rights.allow(Operation.READ, ResourceType.TOPIC, name)
    rights.deny(Operation.READ, ResourceType.TOPIC, "u")
    ask = Ask(version, guarded.ids, BATCH, TRANSACTIONAL_BATCH, b"")
    fetch = next(each for each in ROWS if each.name == "fetch").fields(ask)
    asked = {"session_id": 0, "session_epoch": 0}
    until(lambda: codes_in(rights.client.request(request_of(1, fetch), version)) == [29])
    opened = rights.client.request(request_of(1, fetch | asked), version)
    assert opened.session_id

    def later(epoch: int) -> Any:
        session = {"session_id": opened.session_id, "session_epoch": epoch, "topics": []}
        return rights.client.request(request_of(1, fetch | session), version)

    for epoch in (1, 2):
        answer = later(epoch)
        assert (answer.error_code, codes_in(answer)) == (0, [29])
        (denied,) = (each for topic in answer.responses for each in topic.partitions if each.error_code)
        assert (denied.high_watermark, denied.records or b"") == (-1, b"")
    rights.remove_denials()
    epoch = 3
    deadline_s = time.monotonic() + HANG_S
    while codes_in(later(epoch)):
        epoch += 1
        assert time.monotonic() < deadline_s
    rights.client.close()


def test_group_is_hidden_from_those_who_may_not_see_a_topic_of_a_member(guarded: Guarded, admin: RawClient) -> None:
    beat = ConsumerGroupHeartbeatRequest(
        group_id="members",
        member_id="AAAAAAAAAAAAAAAAAAAAAw",
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    until(lambda: not codes_in(joined := admin.request(beat, 1)) and joined.assignment is not None)
    rights = Rights(guarded, admin, "erin")
    rights.allow(Operation.DESCRIBE, ResourceType.GROUP, "members")
    rights.allow(Operation.DESCRIBE, ResourceType.TOPIC, "u")

    def described() -> Any:
        request = ConsumerGroupDescribeRequest(group_ids=["members"], include_authorized_operations=True)
        return rights.client.request(request, 1).groups[0]

    until(lambda: described().error_code != 30)
    hidden = described()
    assert (hidden.error_code, hidden.members, hidden.authorized_operations) == (29, [], UNSET)
    assert hidden.error_message
    rights.allow(Operation.READ, ResourceType.TOPIC, "t")
    until(lambda: not described().error_code)
    seen = described()
    assert ([each.member_id for each in seen.members], seen.authorized_operations) == ([beat.member_id], 1 << 8)
    rights.client.close()


def test_regular_expression_matches_what_its_member_may_see(guarded: Guarded, admin: RawClient) -> None:
    rights = Rights(guarded, admin, "frank")
    rights.allow(Operation.DESCRIBE, ResourceType.TOPIC, "u")
    rights.allow(Operation.READ, ResourceType.GROUP, "matching")  # last: whoever may join may see u by then
    first = {"subscribed_topic_regex": "t|u", "rebalance_timeout_ms": 60_000, "topic_partitions": []}
    epoch, found = 0, set()

    def assigned() -> bool:
        nonlocal epoch
        request = ConsumerGroupHeartbeatRequest(
            group_id="matching", member_id="AAAAAAAAAAAAAAAAAAAABA", member_epoch=epoch, **({} if epoch else first)
        )
        answer = rights.client.request(request, 1)
        assert answer.error_code in (0, 30)
        epoch = answer.member_epoch
        if answer.assignment is not None:
            found.update(each.topic_id for each in answer.assignment.topic_partitions)
        return bool(found)

    until(assigned)
    assert found == {guarded.ids["u"]}
    rights.client.close()
