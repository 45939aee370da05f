"""Followers of the other kind leave the ISR and return; consumers read from the replica in their rack, of either kind."""

from pathlib import Path

import pytest
from tests.support.peers.leaders import await_in_sync, in_sync, make_replicated
from tests.support.peers.load import QUICK
from tests.support.peers.raw_client import RawClient
from tests.support.peers.topics import await_true
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.kafka_server import HANG_S
from tests.support.servers.mixed_cluster import MixedCluster, Part

from ottla import Admin, Consumer, Producer
from ottla.ids import TopicPartition, Uuid
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

CONTROLLER, OTTLA, APACHE = 1, 2, 3
RACKS = {OTTLA: "rack-ottla", APACHE: "rack-apache"}
SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
RECORDS = 100
PARTITIONS = {0: [OTTLA, APACHE], 1: [APACHE, OTTLA]}


def parts(controller: str) -> dict[int, Part]:
    brokers = {OTTLA: "ottla", APACHE: "apache"}
    return {
        CONTROLLER: Part(controller, "controller"),
        **{node: Part(maker, "broker", {"broker.rack": RACKS[node]}) for node, maker in brokers.items()},
    }


def send(cluster: MixedCluster, partition: int, count: int) -> None:
    with Producer(cluster.bootstrap, acks="all", **QUICK) as producer:
        for delivery in [producer.send("t", b"%d" % number, partition=partition) for number in range(count)]:
            delivery.result(HANG_S)


@pytest.mark.parametrize("controller", ["ottla", "apache"])
def test_paused_followers_leave_the_isr_and_return(controller: str, apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    # Long sessions: the leader, not the controller, must take the follower out.
    settings = {"replica.lag.time.max.ms": 3000, "broker.session.timeout.ms": 60_000}
    with MixedCluster(apache_kafka, tmp_path, parts(controller), settings) as cluster:
        cluster.start(CONTROLLER)
        cluster.start(OTTLA, APACHE)
        with Admin(cluster.bootstrap, **QUICK) as admin:
            make_replicated(admin, "t", PARTITIONS)
            for partition, (leader, follower) in PARTITIONS.items():
                with Admin(f"127.0.0.1:{cluster.broker_ports[leader]}", **QUICK) as left:
                    cluster.pause(follower)
                    send_to(cluster, leader, partition, 50)
                    await_alone(left, partition, leader)
                    cluster.resume(follower)
                    await_in_sync(left, "t")
                send(cluster, partition, 50)
                assert cluster.await_equal("t", partition, OTTLA, APACHE)


def await_alone(admin: Admin, partition: int, leader: int) -> None:
    await_true(lambda: in_sync(admin, "t")[partition] == {leader}, f"node {leader} to be alone in the ISR")


def send_to(cluster: MixedCluster, leader: int, partition: int, count: int) -> None:
    """Send with acks=all while the other broker hangs: it waits until that one is out of the ISR."""
    bootstrap = f"127.0.0.1:{cluster.broker_ports[leader]}"
    with Producer(bootstrap, acks="all", **QUICK) as producer:
        for delivery in [producer.send("t", b"%d" % number, partition=partition) for number in range(count)]:
            delivery.result(HANG_S)


def fetched(cluster: MixedCluster, node: int, topic_id: Uuid, partition: int, rack: str) -> PartitionData:
    """What a broker answers to a consumer of a rack that reads from the beginning."""
    asked = FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(
        rack_id=rack, max_wait_ms=0, max_bytes=1 << 20, topics=[FetchTopic(topic_id=topic_id, partitions=[asked])]
    )
    with RawClient(cluster.broker_ports[node]) as client:
        (topic,) = client.request(request, 16).responses
    found: PartitionData = topic.partitions[0]
    return found


def check_reads(cluster: MixedCluster, topic_id: Uuid, partition: int, leader: int, follower: int) -> None:
    """Consumers in the follower's rack are sent there, and get all records."""
    rack = RACKS[follower]
    await_true(
        lambda: fetched(cluster, leader, topic_id, partition, rack).preferred_read_replica == follower,
        f"node {leader} to send consumers to node {follower}",
    )
    assert fetched(cluster, leader, topic_id, partition, RACKS[leader]).preferred_read_replica == -1
    await_true(
        lambda: fetched(cluster, follower, topic_id, partition, rack).high_watermark == RECORDS,
        f"node {follower} to have the high watermark",
    )
    assert b"%d" % (RECORDS - 1) in bytes(fetched(cluster, follower, topic_id, partition, rack).records or b"")
    values: list[bytes | None] = []
    with Consumer(cluster.bootstrap, client_rack=rack, auto_offset_reset="earliest", **QUICK) as consumer:
        consumer.assign([TopicPartition("t", partition)])
        await_true(lambda: values.extend(each.value for each in consumer.poll(0.2)) or len(values) >= RECORDS, "all records")
    assert values == [b"%d" % number for number in range(RECORDS)]


def test_consumers_read_from_the_replica_of_their_rack(apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    with MixedCluster(apache_kafka, tmp_path, parts("ottla"), {"replica.selector.class": SELECTOR}) as cluster:
        cluster.start(CONTROLLER)
        cluster.start(OTTLA, APACHE)
        with Admin(cluster.bootstrap, **QUICK) as admin:
            make_replicated(admin, "t", PARTITIONS)
            topic_id = admin.describe_topics(["t"])["t"].id
            for partition, (leader, follower) in PARTITIONS.items():
                send(cluster, partition, RECORDS)
                check_reads(cluster, topic_id, partition, leader, follower)
