"""Secured clusters of both kinds of nodes: each trusts the other, and each enforces what was written through the other.

Controllers ask for certificates, brokers and clients log in with SCRAM over TLS, and the authorizer is on.
"""

import ssl
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.logs.batches import make_batch
from tests.support.peers.leaders import await_in_sync, make_replicated
from tests.support.peers.raw_client import RawClient
from tests.support.peers.sasl_login import is_closed, scram_login
from tests.support.peers.topics import await_true
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.kafka_server import HANG_S
from tests.support.servers.mixed_cluster import MixedCluster, Part
from tests.support.servers.secured_nodes import SecuredNodes

from ottla import Admin, Producer
from ottla.client.admin.acl_types import AclBinding, AclFilter
from ottla.client.admin.scram import ScramDeletion, ScramMechanism, ScramUpsertion
from ottla.errors import OttlaError
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

pytestmark = pytest.mark.slow  # tests/compat/security has the same between Ottla's own nodes
SHA_512 = ScramMechanism.SCRAM_SHA_512
ACL_TOOL = "org.apache.kafka.tools.AclCommand"
DENIED = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
BOTH = "broker,controller"
CLUSTERS = {
    "ottla-controls": {1: Part("ottla", BOTH), 2: Part("apache", "broker")},
    "apache-controls": {1: Part("apache", BOTH), 2: Part("ottla", "broker")},
    "quorum-of-both": {1: Part("ottla", BOTH), 2: Part("apache", BOTH), 3: Part("ottla", BOTH)},
}


class World:
    """A cluster, and how its users reach a node of it."""

    def __init__(self, cluster: MixedCluster, secured: SecuredNodes, folder: Path) -> None:
        self.cluster, self.secured, self.folder = cluster, secured, folder
        self.nodes = {part.maker: node for node, part in reversed(list(cluster.parts.items()))}

    def at(self, maker: str) -> str:
        return f"127.0.0.1:{self.secured.ports[self.nodes[maker]]}"

    @contextmanager
    def admin(self, maker: str) -> Iterator[Any]:
        with Admin(self.at(maker), **self.secured.client()) as admin:
            yield admin

    def tool(self, name: str, maker: str, *arguments: object, secret: str = "boss") -> str:
        """One of Kafka's tools at a node of `maker`."""
        config = self.secured.command_config(self.folder / f"{secret}.properties")
        option = "--command-config"
        return self.cluster.tools.run(name, "--bootstrap-server", self.at(maker), option, config, *arguments).stdout

    def logged_in(self, maker: str, user: str, password: str, extensions: str = "") -> RawClient:
        """A connection of a user to a node of `maker`; its login may have failed."""
        client = RawClient(self.secured.ports[self.nodes[maker]], tls=self.secured.context)
        self.answer = scram_login(client, user, password, "SCRAM-SHA-512", extensions)
        return client

    def may_log_in(self, maker: str, user: str, password: str, extensions: str = "") -> bool:
        with self.logged_in(maker, user, password, extensions):
            return bool(self.answer.error_code == 0)

    def sends(self, user: str, topic: str, partition: int) -> int:
        """The error code of one record that a user sends to the leader of a partition."""
        try:
            with Producer(
                self.secured.bootstrap, **self.secured.client(user, f"{user}-secret"), enable_idempotence=False
            ) as producer:
                producer.send(topic, b"a record", partition=partition).result(HANG_S)
        except OttlaError as error:
            return int(getattr(error, "code", -1))
        return 0


@contextmanager
def world(name: str, apache_kafka: ApacheKafka, folder: Path) -> Iterator[World]:
    secured = SecuredNodes(folder / "secrets", list(CLUSTERS[name]))
    replicated = {f"{each}.replication.factor": 2 for each in ("offsets.topic", "transaction.state.log", "default")}
    with MixedCluster(apache_kafka, folder, CLUSTERS[name], replicated, secured=secured) as cluster:
        cluster.start(*(node for node in cluster.parts if node in cluster.controllers))
        if others := [node for node in cluster.parts if node not in cluster.controllers]:
            cluster.start(*others)
        yield World(cluster, secured, folder)


@pytest.mark.parametrize("name", CLUSTERS)
def test_nodes_of_both_kinds_trust_each_other_and_enforce_the_same(
    name: str, apache_kafka: ApacheKafka, tmp_path: Path
) -> None:
    with world(name, apache_kafka, tmp_path) as here:
        ottla, apache = here.nodes["ottla"], here.nodes["apache"]
        # Registered, and replicating both ways.
        with here.admin("ottla") as admin:
            await_true(lambda: len(admin.describe_cluster().nodes) == len(here.cluster.parts), "all brokers are registered")
            make_replicated(admin, "t", {0: [ottla, apache], 1: [apache, ottla]})
        # One user is written through each kind of node, and a third one by Kafka's own tool.
        for maker, user in (("ottla", "alice"), ("apache", "bob")):
            with here.admin(maker) as admin:
                assert not admin.alter_user_scram_credentials([ScramUpsertion(user, SHA_512, f"{user}-secret")]).errors
        users = ("--entity-type", "users", "--entity-name", "carol")
        here.tool("configs", "ottla", "--alter", *users, "--add-config", "SCRAM-SHA-512=[password=carol-secret]")
        for user in ("alice", "bob", "carol"):
            for maker in here.nodes:
                await_true(lambda m=maker, u=user: here.may_log_in(m, u, f"{u}-secret"), f"{user} logs in at {maker}")
                assert not here.may_log_in(maker, user, "wrong")
        # A rule written through each kind is enforced by both: each leads a partition.
        for user in ("alice", "bob"):
            assert [here.sends(user, "t", partition) for partition in (0, 1)] == [ErrorCode.TOPIC_AUTHORIZATION_FAILED] * 2
        with here.admin("ottla") as admin:
            assert not admin.create_acls([AclBinding("TOPIC", "t", "User:alice", "WRITE")]).errors
        here.tool(ACL_TOOL, "apache", "--add", "--allow-principal", "User:bob", "--operation", "Write", "--topic", "t")
        for user in ("alice", "bob"):
            for partition in (0, 1):
                await_true(lambda u=user, p=partition: here.sends(u, "t", p) == 0, f"{user} may write to partition {partition}")
        with here.admin("apache") as admin:
            assert not admin.create_acls([AclBinding("TOPIC", "t", "User:bob", "WRITE", "DENY")]).errors
            await_true(lambda: len(admin.describe_acls()) == 3, "the apache node knows the denial")
        for partition in (0, 1):
            await_true(lambda p=partition: here.sends("bob", "t", p) != 0, f"bob may not write to partition {partition}")
            assert here.sends("alice", "t", partition) == 0
        # Both replicas have the same bytes.
        for partition, nodes in ((0, (ottla, apache)), (1, (apache, ottla))):
            assert here.cluster.await_equal("t", partition, *nodes)
        check_forwarding(here)
        check_tokens(here)
        check_strangers(here)
        check_revocation(here)


def check_revocation(here: World) -> None:
    """What is taken away is away on both kinds of nodes; open connections go on without it."""
    batch = bytes(make_batch())

    def written(client: RawClient, partition: int) -> int:
        part = PartitionProduceData(index=partition, records=batch)
        request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[TopicProduceData(name="t", partition_data=[part])])
        return int(client.request(request, 9).responses[0].partition_responses[0].error_code)

    with ExitStack() as stack:
        sessions = {
            partition: stack.enter_context(here.logged_in(maker, "alice", "alice-secret"))
            for partition, maker in enumerate(("ottla", "apache"))
        }
        assert [written(client, partition) for partition, client in sessions.items()] == [0, 0]
        with here.admin("apache") as admin:
            assert not admin.alter_user_scram_credentials([ScramDeletion("alice", SHA_512)]).errors
        for maker in here.nodes:
            await_true(lambda m=maker: not here.may_log_in(m, "alice", "alice-secret"), f"alice is gone at {maker}")
        assert [written(client, partition) for partition, client in sessions.items()] == [0, 0], "as in Kafka"
        with here.admin("ottla") as admin:
            assert not admin.delete_acls([AclFilter(principal="User:alice")]).errors
        for partition, client in sessions.items():
            await_true(
                lambda c=client, p=partition: written(c, p) == ErrorCode.TOPIC_AUTHORIZATION_FAILED, "alice may not write"
            )
    with here.admin("apache") as admin:
        await_true(lambda: {each.principal for each in admin.describe_acls()} == {"User:bob"}, "the rules for bob are left")


def check_forwarding(here: World) -> None:
    """A request that goes through a broker to the controller is decided with the client's principal, whoever forwards."""
    wanted = CreateTopicsRequest(
        topics=[CreatableTopic(name="forwarded", num_partitions=1, replication_factor=2)], timeout_ms=30_000
    )
    for maker in here.nodes:
        with here.logged_in(maker, "carol", "carol-secret") as carol:
            assert [each.error_code for each in carol.request(wanted, 7).topics] == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    with here.admin("ottla") as admin:
        assert not admin.create_acls([AclBinding("TOPIC", "forwarded", "User:carol", "CREATE")]).errors

    def is_created() -> bool:
        with here.logged_in("apache", "carol", "carol-secret") as carol:
            codes = [each.error_code for each in carol.request(wanted, 7).topics]
        return codes in ([0], [ErrorCode.TOPIC_ALREADY_EXISTS])

    await_true(is_created, "carol creates her topic")
    with here.admin("apache") as admin:
        await_in_sync(admin, "forwarded")
        assert not admin.delete_acls([AclFilter(principal="User:carol")]).errors


def check_tokens(here: World) -> None:
    """A delegation token made at one kind of node logs in at the other."""
    for maker in here.nodes:
        with here.admin(maker) as admin:
            token = admin.create_delegation_token()
        password = b64encode(token.hmac).decode()
        for other in here.nodes:
            await_true(
                lambda o=other, t=token, p=password: here.may_log_in(o, t.id, p, "tokenauth=true"),
                f"a token of {maker} logs in at {other}",
            )


def check_strangers(here: World) -> None:
    """Nobody without a certificate reaches a controller, and nobody without a grant reads as a replica."""
    controllers = {here.cluster.parts[node].maker: here.cluster.controller_ports[node] for node in here.cluster.controllers}
    beat = BrokerHeartbeatRequest(broker_id=here.nodes["ottla"], broker_epoch=0, current_metadata_offset=0)
    for port in controllers.values():
        with pytest.raises((ssl.SSLError, ConnectionError)), RawClient(port, tls=here.secured.context) as stranger:
            stranger.request(beat, 1)
        with pytest.raises((ssl.SSLError, ConnectionError)), RawClient(port) as stranger:
            stranger.request(beat, 1)
    for maker in here.nodes:
        with here.logged_in(maker, "carol", "carol-secret") as carol:
            part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
            fetch = FetchRequest(
                replica_id=here.nodes["ottla"], max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, session_epoch=-1
            )
            fetch.topics = [FetchTopic(topic="t", partitions=[part])]
            answers = carol.request(fetch, 11).responses
            assert [each.error_code for topic in answers for each in topic.partitions] == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
        node = here.nodes[maker]
        with RawClient(here.cluster.broker_ports[node]) as anonymous:
            wanted = CreateTopicsRequest(
                topics=[CreatableTopic(name="strange", num_partitions=1, replication_factor=1)], timeout_ms=30_000
            )
            assert anonymous.request(wanted, 7).topics[0].error_code in DENIED
        with RawClient(here.secured.ports[node], tls=here.secured.context) as nobody:
            nobody.send(wanted, 7)
            assert is_closed(nobody), "a request before the login"
