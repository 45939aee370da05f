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
from ottla.ids import TopicPartition
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

CONTROLLER, OTTLA, APACHE = 1, 2, 3
RACKS = {OTTLA: "rack-ottla", APACHE: "rack-apache"}
SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
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
                    await_true(lambda: in_sync(left, "t")[partition] == {leader}, f"node {follower} to leave")
                    cluster.resume(follower)
                    await_in_sync(left, "t")
                send(cluster, partition, 50)
                assert cluster.await_equal("t", partition, OTTLA, APACHE)


def send_to(cluster: MixedCluster, leader: int, partition: int, count: int) -> None:
    """Send with acks=all while the other broker hangs: it waits until that one is out of the ISR."""
    bootstrap = f"127.0.0.1:{cluster.broker_ports[leader]}"
    with Producer(bootstrap, acks="all", **QUICK) as producer:
        for delivery in [producer.send("t", b"%d" % number, partition=partition) for number in range(count)]:
            delivery.result(HANG_S)


def preferred(cluster: MixedCluster, admin: Admin, leader: int, partition: int, rack: str) -> int:
    """The replica that the leader sends a consumer of a rack to; -1 if none."""
    topic_id = admin.describe_topics(["t"])["t"].topic_id
    asked = FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(rack_id=rack, max_wait_ms=0, topics=[FetchTopic(topic_id=topic_id, partitions=[asked])])
    request.max_bytes = 1 << 20
    with RawClient(cluster.broker_ports[leader]) as client:
        (topic,) = client.request(request, 16).responses
    return int(topic.partitions[0].preferred_read_replica)


def test_consumers_read_from_the_replica_of_their_rack(apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    with MixedCluster(apache_kafka, tmp_path, parts("ottla"), {"replica.selector.class": SELECTOR}) as cluster:
        cluster.start(CONTROLLER)
        cluster.start(OTTLA, APACHE)
        with Admin(cluster.bootstrap, **QUICK) as admin:
            make_replicated(admin, "t", PARTITIONS)
            for partition, (leader, follower) in PARTITIONS.items():
                send(cluster, partition, 100)
                await_true(
                    lambda: preferred(cluster, admin, leader, partition, RACKS[follower]) == follower,
                    f"node {leader} to send consumers to node {follower}",
                )
                assert preferred(cluster, admin, leader, partition, RACKS[leader]) == -1
                settings = {"client_rack": RACKS[follower], "auto_offset_reset": "earliest", **QUICK}
                with Consumer(cluster.bootstrap, **settings) as consumer:
                    consumer.assign([TopicPartition("t", partition)])
                    values: list[bytes | None] = []
                    await_true(
                        lambda: values.extend(each.value for each in consumer.poll(0.2)) or len(values) >= 100, "all records"
                    )
                assert values == [b"%d" % number for number in range(100)]
