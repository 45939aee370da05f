"""An Apache Kafka broker in a quorum of Ottla controllers: it registers, serves, leaves; 20 killed leaders lose nothing."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.peers.raw_client import RawClient
from tests.support.peers.topics import await_true, make_topic
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.mixed_cluster import MixedCluster, Part

from ottla import Consumer, Producer
from ottla.errors import DecodeError
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.describe_cluster import DescribeClusterRequest
from ottla.wire.messages.metadata import MetadataRequest

pytestmark = pytest.mark.slow

CONTROLLERS = (1, 2, 3)
BROKER = 4
NODES = {**{node: Part("ottla", "controller") for node in CONTROLLERS}, BROKER: Part("apache", "broker")}
KILLS = 20
TOPICS_PER_S_MAX = 10


@contextmanager
def cluster_of(kafka: ApacheKafka, folder: Path) -> Iterator[MixedCluster]:
    with MixedCluster(kafka, folder, NODES) as cluster:
        cluster.start(*CONTROLLERS)
        cluster.start(BROKER)
        yield cluster


def fenced(cluster: MixedCluster) -> dict[int, bool]:
    """The brokers that the active controller knows, and whether they are fenced."""
    request = DescribeClusterRequest(endpoint_type=2, include_fenced_brokers=False)
    with RawClient(cluster.controller_ports[cluster.leader()]) as client:
        assert client.request(request, 2).error_code == 0
    with RawClient(cluster.broker_ports[BROKER]) as client:
        found = client.request(DescribeClusterRequest(include_fenced_brokers=True), 2).brokers
    return {each.broker_id: each.is_fenced for each in found}


def test_apache_broker_registers_serves_and_leaves(apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    with cluster_of(apache_kafka, tmp_path) as cluster:
        server = cluster.running[BROKER].bootstrap
        assert fenced(cluster) == {BROKER: False}
        make_topic(server, "orders", 3)
        with Producer(server) as producer:
            for number in range(300):
                producer.send("orders", str(number).encode(), partition=number % 3)
        values: list[bytes | None] = []
        with Consumer(server, group_id="readers", auto_offset_reset="earliest") as consumer:
            consumer.subscribe(["orders"])
            await_true(lambda: values.extend(each.value for each in consumer.poll(1)) or len(values) >= 300, "all records")
        assert sorted(map(int, filter(None, values))) == list(range(300))
        status = cluster.quorum_status(cluster.leader())
        assert status["LeaderId"] == str(cluster.leader())
        assert str(BROKER) in status["CurrentObservers"], "the broker follows the metadata log"
        cluster.stop(BROKER)
        leader = cluster.leader()
        assert f"broker {BROKER} is fenced" not in cluster.running[leader].log_text(), (
            "it left with the controller's permission"
        )
        cluster.start(BROKER)
        make_topic(cluster.running[BROKER].bootstrap, "again")


class TopicLoad:
    """Creates topics through the broker until it is stopped; keeps the names that were acknowledged."""

    def __init__(self, port: int) -> None:
        self.acknowledged: list[str] = []
        self.problems: list[str] = []
        self._port = port
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="topics")

    def _run(self) -> None:
        number = 0
        while not self._is_over.wait(1 / TOPICS_PER_S_MAX):
            number += 1
            topic = CreatableTopic(name=f"topic-{number}", num_partitions=1, replication_factor=1)
            try:
                with RawClient(self._port, timeout_s=40) as client:
                    (made,) = client.request(CreateTopicsRequest(topics=[topic], timeout_ms=20_000), 7).topics
            except (OSError, DecodeError) as failed:
                self.problems.append(f"{topic.name}: {failed}")
                continue
            if made.error_code == 0:
                self.acknowledged.append(topic.name)
            else:
                self.problems.append(f"{topic.name}: error {made.error_code}, {made.error_message}")

    def __enter__(self) -> "TopicLoad":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._is_over.set()
        self._thread.join()


def topics_of(port: int) -> set[str]:
    with RawClient(port) as client:
        return {each.name for each in client.request(MetadataRequest(topics=None), 12).topics}


def metadata_records(cluster: MixedCluster, below: int) -> dict[int, list[tuple[object, ...]]]:
    """Node → the records of its metadata log below an offset, as kafka-dump-log shows them."""
    logs = {node: sorted(cluster.metadata_log(node).glob("*.log")) for node in CONTROLLERS}
    found: dict[int, list[tuple[object, ...]]] = {}
    for node, segments in logs.items():
        dump = cluster.kafka.dump_log_segments(segments, "--cluster-metadata-decoder")
        assert not dump.complaints, dump.complaints
        found[node] = [
            (record.offset, batch.leader_epoch, batch.crc, record.payload)
            for file in dump.files
            for batch in file.batches
            for record in batch.records
            if record.offset < below
        ]
    return found


def test_twenty_killed_controllers_lose_no_acknowledged_topic(apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    with cluster_of(apache_kafka, tmp_path) as cluster:
        epochs = [cluster.quorum().leader_epoch]
        with TopicLoad(cluster.broker_ports[BROKER]) as load:
            for turn in range(KILLS):
                cluster.caught_up()
                before = cluster.quorum()
                cluster.kill(before.leader_id)
                after = cluster.quorum(after_epoch=before.leader_epoch)
                epochs.append(after.leader_epoch)
                cluster.start(before.leader_id)
                if turn % 5 == 4:
                    status = cluster.quorum_status(after.leader_id)
                    assert (int(status["LeaderId"]), int(status["LeaderEpoch"])) == (after.leader_id, after.leader_epoch)
        print(f"{len(load.acknowledged)} topics acknowledged, {len(load.problems)} not: {load.problems[:3]}; epochs {epochs}")
        assert epochs == sorted(set(epochs)), "epochs only rise"
        assert len(load.acknowledged) > KILLS
        wanted = set(load.acknowledged)
        await_true(lambda: wanted <= topics_of(cluster.broker_ports[BROKER]), "the broker has every acknowledged topic")
        mark = cluster.caught_up()
        cluster.stop(BROKER)
        cluster.stop(*CONTROLLERS)
        records = metadata_records(cluster, mark)
        assert len(records[1]) == mark
        assert records[1] == records[2] == records[3]
        for node in CONTROLLERS:  # Apache's controllers continue on the same directories
            cluster.parts[node] = Part("apache", "controller")
        cluster.start(*CONTROLLERS)
        assert cluster.quorum().leader_epoch > epochs[-1]
        cluster.start(BROKER)
        await_true(lambda: wanted <= topics_of(cluster.broker_ports[BROKER]), "Apache's quorum has every topic")
        cluster.caught_up()
