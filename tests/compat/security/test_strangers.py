"""A stranger's whole catalogue at a secured node: refused, nothing changed, one line in the log.

The node has the listeners of `secured_nodes.py`. A stranger comes without a login, with a login that has no grants, and with a
certificate of the right authority that belongs to no node.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.support.cases.access_rows import codes_in, request_of
from tests.support.logs.batches import make_batch
from tests.support.peers.raw_client import ConnectionClosed, RawClient
from tests.support.peers.sasl_login import authenticate, is_closed, scram_login, shake
from tests.support.peers.topics import await_true
from tests.support.servers.certificates import Authority, Issued
from tests.support.servers.kafka_server import KafkaServer
from tests.support.servers.ottla_server import TALKATIVE
from tests.support.servers.secured_nodes import BOSS_PASSWORD, LOOPBACK, SecuredNodes, start_secured
from tests.support.servers.tls_server import refuse_in_a_thread, server_context

from ottla import Admin, Consumer, Producer
from ottla.broker.channel.envelope import encode_principal
from ottla.broker.requests.apis import SERVED, checks_of
from ottla.client.admin.acl_types import AclBinding, AclFilter
from ottla.client.admin.scram import ScramMechanism, ScramUpsertion
from ottla.errors import AuthenticationError, GroupAuthorizationError, TopicAuthorizationError
from ottla.errors.codes import ErrorCode
from ottla.ids import METADATA_TOPIC_ID, Principal, Uuid
from ottla.link.scram import ScramClient
from ottla.metadata.acls import Operation
from ottla.wire.api_table import ApiKey as K
from ottla.wire.apis import APIS
from ottla.wire.codec import join_parts
from ottla.wire.headers import encode_request
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

WAIT_S = 60
MALLORY, SECRET = "mallory", "mallory-secret"
ELSEWHERE = Uuid(b"elsewhere-------")
Fields = Callable[["Target"], dict[str, Any]]


class Target(NamedTuple):
    """The node, and what the stranger knows of it: more than a stranger should."""

    server: KafkaServer
    secured: SecuredNodes
    boss: Admin
    topic_id: Uuid
    quorum_epoch: int
    stranger: Issued

    @property
    def controller(self) -> int:
        return self.server.controller_port

    @property
    def broker(self) -> int:
        return self.secured.ports[1]

    def facts(self) -> dict[str, Any]:
        """All that a stranger may want to change."""
        quorum = self.boss.describe_metadata_quorum()
        return {
            "brokers": sorted(self.boss.describe_cluster().nodes),
            "leader": (quorum.leader_id, quorum.leader_epoch),
            "voters": [each.id for each in quorum.voters],
            "topics": str(self.boss.describe_topics(["t"])["t"]),
            "ends": self.boss.list_offsets({("t", 0): "latest"})[("t", 0)].offset,
            "rules": sorted(map(str, self.boss.describe_acls())),
            "users": sorted(self.boss.describe_user_scram_credentials()),
        }

    def lines(self) -> list[str]:
        return self.server.log_text().splitlines()

    def logged_in(self) -> RawClient:
        client = RawClient(self.broker, tls=self.secured.context)
        assert scram_login(client, MALLORY, SECRET, "SCRAM-SHA-512").error_code == 0
        return client


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    secured = SecuredNodes(tmp_path_factory.mktemp("secrets"), [1])
    stranger = secured.authority.issue("stranger", LOOPBACK)
    with start_secured(secured, command=TALKATIVE) as server, Admin(secured.bootstrap, **secured.client()) as admin:
        assert not admin.create_topics({"t": 1}).errors
        added = [ScramUpsertion(MALLORY, ScramMechanism.SCRAM_SHA_512, SECRET)]
        assert not admin.alter_user_scram_credentials(added).errors
        epoch = admin.describe_metadata_quorum().leader_epoch
        yield Target(server, secured, admin, admin.describe_topics(["t"])["t"].id, epoch, stranger)


@pytest.fixture
def unchanged(target: Target) -> Iterator[None]:
    before = target.facts()
    yield
    assert target.facts() == before
    assert target.server.ended_with is None


# Requests between nodes


def of_the_quorum(**partition: Any) -> dict[str, Any]:
    return {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0, **partition}]}]}


def envelope(target: Target) -> dict[str, Any]:
    """Delete the topic in the name of the boss."""
    delete = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=30_000)
    return {
        "request_data": join_parts(encode_request(delete, 6, 1, "forged"))[4:],
        "request_principal": encode_principal(Principal("User", "boss")),
        "client_host_address": bytes([127, 0, 0, 1]),
    }


HARMFUL: dict[int, Fields] = {
    K.FETCH: lambda t: {
        "replica_state": {"replica_id": 9},
        "max_wait_ms": 0,
        "min_bytes": 0,
        "topics": [{"topic_id": METADATA_TOPIC_ID, "partitions": [{"partition": 0, "partition_max_bytes": 1 << 20}]}],
    },
    K.FETCH_SNAPSHOT: lambda t: {"topics": [{"name": "__cluster_metadata", "partitions": [{"partition": 0}]}]},
    K.VOTE: lambda t: of_the_quorum(replica_id=9, replica_epoch=t.quorum_epoch + 1, last_offset=1 << 40),
    K.BEGIN_QUORUM_EPOCH: lambda t: of_the_quorum(leader_id=9, leader_epoch=t.quorum_epoch + 1),
    K.END_QUORUM_EPOCH: lambda t: of_the_quorum(leader_id=1, leader_epoch=t.quorum_epoch),
    K.UPDATE_RAFT_VOTER: lambda t: {
        "current_leader_epoch": t.quorum_epoch,
        "voter_id": 1,
        "listeners": [{"name": "CONTROLLER", "host": "192.0.2.1", "port": 1}],
    },
    K.ADD_RAFT_VOTER: lambda t: {
        "timeout_ms": 10_000,
        "voter_id": 9,
        "voter_directory_id": ELSEWHERE,
        "listeners": [{"name": "CONTROLLER", "host": "192.0.2.1", "port": 1}],
    },
    K.REMOVE_RAFT_VOTER: lambda t: {"voter_id": 1},
    K.ALTER_PARTITION: lambda t: {
        "broker_id": 1,
        "topics": [{"topic_id": t.topic_id, "partitions": [{"new_isr_with_epochs": [{"broker_id": 9}]}]}],
    },
    K.BROKER_REGISTRATION: lambda t: {
        "broker_id": 9,
        "cluster_id": "",
        "incarnation_id": ELSEWHERE,
        "listeners": [{"name": "SECURED", "host": "192.0.2.1", "port": 1, "security_protocol": 3}],
        "log_dirs": [ELSEWHERE],
        "rack": None,
    },
    K.BROKER_HEARTBEAT: lambda t: {"broker_id": 1, "want_fence": True, "want_shut_down": True},
    K.UNREGISTER_BROKER: lambda t: {"broker_id": 1},
    K.ALLOCATE_PRODUCER_IDS: lambda t: {"broker_id": 1},
    K.CONTROLLER_REGISTRATION: lambda t: {
        "controller_id": 1,
        "incarnation_id": ELSEWHERE,
        "listeners": [{"name": "CONTROLLER", "host": "192.0.2.1", "port": 1}],
    },
    K.ASSIGN_REPLICAS_TO_DIRS: lambda t: {
        "broker_id": 1,
        "directories": [{"id": ELSEWHERE, "topics": [{"topic_id": t.topic_id, "partitions": [{"partition_index": 0}]}]}],
    },
    K.ENVELOPE: envelope,
    K.UPDATE_FEATURES: lambda t: {"feature_updates": [{"feature": "kraft.version", "max_version_level": 1, "upgrade_type": 1}]},
    K.WRITE_TXN_MARKERS: lambda t: {
        "markers": [{"producer_id": 1, "transaction_result": True, "topics": [{"name": "t", "partition_indexes": [0]}]}]
    },
    K.ADD_PARTITIONS_TO_TXN: lambda t: {
        "transactions": [
            {"transactional_id": "x", "producer_id": 1, "verify_only": True, "topics": [{"name": "t", "partitions": [0]}]}
        ]
    },
}
"""What would harm the node most, if it were done."""


def test_the_catalogue_has_every_request_between_nodes() -> None:
    """Also those of a later release."""
    between_nodes = {
        key
        for key in SERVED
        for is_controllers in (True, False)
        if any(Operation.CLUSTER_ACTION in (check.operation, check.or_cluster) for check in checks_of(key, is_controllers))
    }
    assert between_nodes - HARMFUL.keys() == {K.OFFSET_FOR_LEADER_EPOCH}, "which clients may ask, with Describe"


def ask(client: RawClient, key: int, fields: dict[str, Any]) -> Any:
    """The answer; None if the connection was ended instead."""
    version = APIS[key].advertised()[1]
    try:
        return client.request(request_of(key, fields), version)
    except ConnectionClosed:
        return None


@pytest.mark.parametrize("key", HARMFUL, ids=lambda key: APIS[key].name)
def test_a_certificate_that_belongs_to_no_node_may_do_nothing_at_a_controller(
    target: Target, unchanged: None, key: int
) -> None:
    name = APIS[key].name
    before = target.lines()
    with RawClient(target.controller, tls=target.secured.context_of(target.stranger)) as client:
        answer = ask(client, key, HARMFUL[key](target))
    new = target.lines()[len(before) :]
    if SERVED[key].on_controller is None:
        assert answer is None, "a controller does not have this API"
        assert len(new) == 1, new
        return
    assert codes_in(answer) == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED], answer
    assert not getattr(answer, "responses", []), "no records with it"
    audited = [line for line in new if "User:stranger is Denied" in line and f"request = {name} " in line]
    assert len(audited) == 1, new
    assert len(new) <= 2, new  # the other one says what failed for the client


@pytest.mark.parametrize("key", HARMFUL, ids=lambda key: APIS[key].name)
def test_a_user_without_grants_may_do_nothing_at_a_broker(target: Target, unchanged: None, key: int) -> None:
    fields = HARMFUL[key](target)
    if key == K.FETCH:
        fields["topics"] = [{"topic_id": target.topic_id, "partitions": [{"partition": 0, "partition_max_bytes": 1 << 20}]}]
        fields["replica_state"] = {"replica_id": 1, "replica_epoch": -1}
    with target.logged_in() as client:
        before = target.lines()
        answer = ask(client, key, fields)
    new = target.lines()[len(before) :]
    if SERVED[key].on_broker is None:
        assert answer is None, "a broker does not have this API"
        assert len(new) == 1, new
        return
    assert set(codes_in(answer)) <= {ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    assert codes_in(answer), answer
    assert sum("User:mallory is Denied" in line for line in new) == 1, new
    assert len(new) <= 2, new


def test_a_controller_does_not_have_the_apis_of_clients(target: Target, unchanged: None) -> None:
    """Nor does a node's certificate change that."""
    part = PartitionProduceData(index=0, records=bytes(make_batch()))
    request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=[part])])
    with RawClient(target.controller, tls=target.secured.node_context) as client, pytest.raises(ConnectionClosed):
        client.request(request, 9)


# Handshakes


def contexts_of_strangers(target: Target, folder: Path) -> dict[str, ssl.SSLContext | None]:
    secured = target.secured
    others = Authority(folder / "others", "test authority")  # the same name, another key
    weak = secured.context_of(secured.certificates[1])
    weak.minimum_version = ssl.TLSVersion.TLSv1
    weak.maximum_version = ssl.TLSVersion.TLSv1_1
    weak.set_ciphers("ALL:@SECLEVEL=0")
    return {
        "plain text": None,
        "no certificate": secured.context,
        "another authority": secured.context_of(others.issue("node-1", LOOPBACK)),
        "an expired certificate": secured.context_of(secured.authority.issue("node-1", LOOPBACK, is_expired=True)),
        "TLS 1.1": weak,
    }


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion")
@pytest.mark.parametrize("how", ["plain text", "no certificate", "another authority", "an expired certificate", "TLS 1.1"])
def test_a_handshake_that_is_refused(target: Target, unchanged: None, tmp_path: Path, how: str) -> None:
    context = contexts_of_strangers(target, tmp_path)[how]
    before = target.lines()
    with pytest.raises((ssl.SSLError, ConnectionError)), RawClient(target.controller, tls=context) as client:
        client.request(request_of(K.BROKER_HEARTBEAT, HARMFUL[K.BROKER_HEARTBEAT](target)), 1)
    await_true(lambda: len(target.lines()) > len(before), "a line in the log")
    new = target.lines()[len(before) :]
    assert len(new) == 1, new
    assert "TLS" in new[0], new


def test_only_new_versions_are_spoken(target: Target) -> None:
    """Neither listener steps back, whatever the client can do."""
    for port in (target.broker, target.controller):
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = target.secured.context_of(target.secured.certificates[1])
            context.minimum_version = context.maximum_version = version
            with (
                socket.create_connection(("127.0.0.1", port)) as plain,
                context.wrap_socket(plain, server_hostname="localhost") as tls,
            ):
                assert tls.version() == {ssl.TLSVersion.TLSv1_2: "TLSv1.2", ssl.TLSVersion.TLSv1_3: "TLSv1.3"}[version]


def test_our_clients_refuse_a_server_that_is_expired_or_another(target: Target, tmp_path: Path) -> None:
    """Before they have sent a name or a password."""
    for issued, text in (
        (target.secured.authority.issue("localhost", LOOPBACK, is_expired=True), "expired"),
        (target.secured.authority.issue("other.example", ["DNS:other.example"]), "other.example"),
    ):
        with (
            refuse_in_a_thread(server_context(issued)) as port,
            pytest.raises(AuthenticationError, match=text),
            Admin(f"127.0.0.1:{port}", **target.secured.client()) as admin,
        ):
            admin.list_topics()


# Logins


def test_replayed_messages_of_a_login_are_refused(target: Target, unchanged: None) -> None:
    with RawClient(target.broker, tls=target.secured.context) as client:
        assert shake(client, "SCRAM-SHA-512").error_code == 0
        scram = ScramClient("SCRAM-SHA-512", "boss", BOSS_PASSWORD, "anonce", "")
        first = scram.first()
        final = scram.final(authenticate(client, first).auth_bytes)
        assert authenticate(client, final).error_code == 0
    before = target.lines()
    with RawClient(target.broker, tls=target.secured.context) as client:
        assert shake(client, "SCRAM-SHA-512").error_code == 0
        assert authenticate(client, first).error_code == 0
        answer = authenticate(client, final)
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert is_closed(client)
    assert len(target.lines()) == len(before) + 1
    with RawClient(target.broker, tls=target.secured.context) as client:  # the second message alone
        assert shake(client, "SCRAM-SHA-512").error_code == 0
        assert authenticate(client, final).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "scram-sha-512", "", "EXTERNAL", "ANONYMOUS"])
def test_a_weaker_mechanism_is_not_spoken(target: Target, unchanged: None, mechanism: str) -> None:
    with RawClient(target.broker, tls=target.secured.context) as client:
        before = target.lines()
        answer = shake(client, mechanism)
        assert (answer.error_code, answer.mechanisms) == (ErrorCode.UNSUPPORTED_SASL_MECHANISM, ["SCRAM-SHA-512"])
        assert is_closed(client)
        assert len(target.lines()) == len(before) + 1


@pytest.mark.parametrize("binding", [b"y,,", b"p=tls-unique,,", b"p=tls-server-end-point,,"])
def test_channel_bindings_are_not_spoken(target: Target, binding: bytes) -> None:
    with RawClient(target.broker, tls=target.secured.context) as client:
        assert shake(client, "SCRAM-SHA-512").error_code == 0
        assert authenticate(client, binding + b"n=boss,r=anonce").error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_a_login_in_the_name_of_another(target: Target, unchanged: None) -> None:
    """An authorization id that is not the user's."""
    with RawClient(target.broker, tls=target.secured.context) as client:
        assert shake(client, "SCRAM-SHA-512").error_code == 0
        answer = authenticate(client, b"n,a=boss,n=mallory,r=anonce")
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


# Grants that are taken away


def poll_until_refused(consumer: Any) -> None:
    for _ in range(WAIT_S):
        assert not consumer.poll(1)


def test_grants_are_revoked_in_running_sessions(target: Target) -> None:
    """A producer on the fast path, a consumer in its fetch session, and a member of a group: their next request is denied."""
    mallory = target.secured.client(MALLORY, SECRET)
    rules = [
        AclBinding("TOPIC", "t", "User:mallory", "WRITE"),
        AclBinding("TOPIC", "t", "User:mallory", "READ"),
        AclBinding("GROUP", "g", "User:mallory", "READ"),
    ]
    admin = target.boss
    assert not admin.create_acls(rules).errors
    with (
        Producer(target.secured.bootstrap, **mallory, enable_idempotence=False) as producer,
        Consumer(target.secured.bootstrap, **mallory, group_id="g", auto_offset_reset="earliest") as consumer,
    ):
        consumer.subscribe(["t"])
        for number in range(20):
            producer.send("t", b"%d" % number).result(WAIT_S)
        found = 0
        while found < 20:
            found += len(consumer.poll(WAIT_S))
        consumer.commit()
        end = admin.list_offsets({("t", 0): "latest"})[("t", 0)].offset
        # While the consumer's fetch waits at the broker.
        assert not admin.delete_acls([AclFilter(principal="User:mallory", resource_type="TOPIC")]).errors
        with pytest.raises(TopicAuthorizationError):
            producer.send("t", b"no").result(WAIT_S)
        with pytest.raises(TopicAuthorizationError):
            poll_until_refused(consumer)
        assert admin.list_offsets({("t", 0): "latest"})[("t", 0)].offset == end
        assert not admin.delete_acls([AclFilter(principal="User:mallory")]).errors
        with pytest.raises((GroupAuthorizationError, TopicAuthorizationError)):
            consumer.commit()
    assert not admin.describe_acls()


def test_the_log_has_no_secrets(target: Target) -> None:
    text = target.server.log_text()
    assert SECRET not in text
    assert BOSS_PASSWORD not in text
    assert "PRIVATE KEY" not in text


def test_a_thousand_strangers_leave_a_few_lines(tmp_path: Path) -> None:
    secured = SecuredNodes(tmp_path, [1])
    with start_secured(secured) as server:
        before = server.log_text()
        for _ in range(1000):
            with RawClient(server.controller_port) as client:
                client.send_bytes(b"GET / HTTP/1.1\r\n\r\n")
                assert is_closed(client)
        new = server.log_text()[len(before) :].splitlines()
        assert 1 <= len(new) <= 40
        assert "TLS" in new[0]
        assert re.search(r"127\.0\.0\.1:\d+ on CONTROLLER", new[0]), new[0]
