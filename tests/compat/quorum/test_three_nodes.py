"""Three Ottla nodes, each broker and controller, are one cluster."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.peers.raw_client import RawClient
from tests.support.peers.topics import await_true
from tests.support.servers.ottla_cluster import NODES, OttlaCluster

from ottla import Consumer, Producer
from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.describe_cluster import DescribeClusterRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from ottla.wire.messages.unregister_broker import UnregisterBrokerRequest
from ottla.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

PARTITIONS = 6


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OttlaCluster]:
    """A cluster for tests that break nothing."""
    with OttlaCluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


def create(cluster: OttlaCluster, node: int, name: str, replicas: int = 1) -> tuple[int, str | None]:
    topic = CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=replicas)
    with RawClient.to(cluster.nodes[node].bootstrap) as client:
        found = client.request(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 7).topics[0]
        return found.error_code, found.error_message


def leaders(cluster: OttlaCluster, node: int, name: str) -> dict[int, int]:
    """Partition → leader, as `node` sees it."""
    with RawClient.to(cluster.nodes[node].bootstrap) as client:
        topics = client.request(MetadataRequest(topics=[MetadataRequestTopic(name=name)]), 12).topics
        return {each.partition_index: each.leader_id for each in topics[0].partitions}


def brokers(cluster: OttlaCluster, node: int) -> dict[int, bool]:
    """The registered brokers, and whether they are fenced, as `node` sees it."""
    with RawClient.to(cluster.nodes[node].bootstrap) as client:
        found = client.request(DescribeClusterRequest(include_fenced_brokers=True), 2).brokers
        return {each.broker_id: each.is_fenced for each in found}


def produce(bootstrap: str, topic: str, count: int = 60) -> None:
    with Producer(bootstrap) as producer:
        for number in range(count):
            producer.send(topic, str(number).encode(), partition=number % PARTITIONS)


def consume(bootstrap: str, topic: str, group: str, count: int = 60, **options: str) -> set[bytes]:
    values: list[bytes | None] = []
    deadline = time.monotonic() + 60
    with Consumer(bootstrap, group_id=group, auto_offset_reset="earliest", **options) as consumer:
        consumer.subscribe([topic])
        while len(values) < count and time.monotonic() < deadline:
            values += [record.value for record in consumer.poll(1)]
    assert len(values) == count
    return {value for value in values if value is not None}


def numbers(count: int = 60) -> set[bytes]:
    return {str(number).encode() for number in range(count)}


def test_cluster_serves_through_every_node_and_outlives_its_controller(tmp_path: Path) -> None:
    with OttlaCluster(tmp_path) as cluster:
        for node in NODES:
            await_true(lambda node=node: brokers(cluster, node) == dict.fromkeys(NODES, False), "all brokers are unfenced")
            assert create(cluster, node, f"by-{node}") == (0, None)
            await_true(lambda node=node: set(leaders(cluster, 1, f"by-{node}").values()) == set(NODES), "leaders on all nodes")
            produce(cluster.nodes[node].bootstrap, f"by-{node}")
            assert consume(cluster.nodes[node].bootstrap, f"by-{node}", f"group-{node}") == numbers()
        killed = cluster.active_controller()
        cluster.kill(killed)
        left = [node for node in NODES if node != killed]
        assert create(cluster, left[0], "after") == (0, None)
        assert cluster.active_controller(left) in left
        await_true(lambda: brokers(cluster, left[0])[killed], "the killed broker is fenced")
        assert set(leaders(cluster, left[0], "by-1").values()) == {*left, -1}
        cluster.start(killed)
        for node in NODES:
            await_true(lambda node=node: set(leaders(cluster, node, "by-1").values()) == set(NODES), "its leaders are back")
        assert consume(cluster.bootstrap, "by-1", "group-after") == numbers()


@pytest.mark.slow
def test_transactions_reach_partitions_and_coordinators_on_other_nodes(shared: OttlaCluster) -> None:
    assert create(shared, 1, "transactions") == (0, None)
    for number in range(4):  # their coordinators are on different nodes
        with Producer(shared.bootstrap, transactional_id=f"id-{number}") as producer:
            producer.init_transactions()
            for end, name in ((producer.abort_transaction, "aborted"), (producer.commit_transaction, "committed")):
                producer.begin_transaction()
                for index in range(PARTITIONS):
                    producer.send("transactions", f"{name}-{number}-{index}".encode(), partition=index)
                producer.flush()
                end()
    expected = {f"committed-{number}-{index}".encode() for number in range(4) for index in range(PARTITIONS)}
    for node in NODES:
        server = shared.nodes[node].bootstrap
        assert consume(server, "transactions", f"read-{node}", len(expected), isolation_level="read_committed") == expected


def test_replicas_are_placed_on_different_brokers(shared: OttlaCluster) -> None:
    assert create(shared, 1, "replicated", replicas=3) == (0, None)
    with RawClient.to(shared.nodes[1].bootstrap) as client:
        (topic,) = client.request(MetadataRequest(topics=[MetadataRequestTopic(name="replicated")]), 12).topics
    assert [sorted(each.replica_nodes) for each in topic.partitions] == [list(NODES)] * PARTITIONS
    assert {each.leader_id for each in topic.partitions} == set(NODES)
    code, message = create(shared, 1, "too-many", replicas=4)
    assert code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert "4 replicas need as many brokers, and the cluster has 3 that take new ones" in str(message)


def test_standby_controllers_register(shared: OttlaCluster) -> None:
    """A feature level is changed only if all controllers are known to support it."""
    update = FeatureUpdateKey(feature="group.version", max_version_level=1, upgrade_type=1)

    def is_accepted() -> bool:
        with RawClient.to(shared.nodes[1].bootstrap) as client:
            found = client.request(UpdateFeaturesRequest(feature_updates=[update], validate_only=True, timeout_ms=30_000), 1)
        return found.error_code == 0

    await_true(is_accepted, "all three controllers to be registered")


def test_every_broker_forwards_to_the_controller_and_its_quorum(shared: OttlaCluster) -> None:
    for node in NODES:
        with RawClient.to(shared.nodes[node].bootstrap) as client:
            unregistered = client.request(UnregisterBrokerRequest(broker_id=77), 0)
            assert unregistered.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
            removed = client.request(
                RemoveRaftVoterRequest(cluster_id=None, voter_id=77, voter_directory_id=Uuid(b"no such place (7)"[:16])), 0
            )
            assert removed.error_code == ErrorCode.UNSUPPORTED_VERSION, "the voters are static"


@pytest.mark.slow
def test_confluents_client_works_with_every_node(shared: OttlaCluster) -> None:
    confluent = pytest.importorskip("confluent_kafka")
    assert create(shared, 3, "confluent") == (0, None)
    producer = confluent.Producer({"bootstrap.servers": shared.bootstrap, "acks": "all"})
    for number in range(60):
        producer.produce("confluent", str(number).encode(), partition=number % PARTITIONS)
    assert producer.flush(60) == 0
    for node in NODES:
        settings = {"bootstrap.servers": shared.nodes[node].bootstrap, "group.id": f"c-{node}", "auto.offset.reset": "earliest"}
        consumer = confluent.Consumer(settings)
        consumer.subscribe(["confluent"])
        values: set[bytes] = set()
        deadline = time.monotonic() + 60
        while len(values) < 60 and time.monotonic() < deadline:
            values |= {message.value() for message in consumer.consume(100, 1) if not message.error()}
        consumer.close()
        assert values == numbers()


@pytest.mark.slow
def test_twenty_controllers_killed_lose_no_acknowledged_topic(tmp_path: Path) -> None:
    created: list[str] = []
    with OttlaCluster(tmp_path) as cluster:
        for round_number in range(20):
            killed = cluster.active_controller()
            cluster.kill(killed)
            through = next(node for node in NODES if node != killed)
            assert create(cluster, through, f"topic-{round_number}") == (0, None)
            created.append(f"topic-{round_number}")
            cluster.start(killed)
        for node in NODES:
            for name in created:
                await_true(lambda node=node, name=name: -1 not in leaders(cluster, node, name).values(), f"{name} is served")
