"""One broker of Ottla and one of Apache Kafka replicate to each other: all codecs, transactions, elections; files are equal."""

from pathlib import Path

import pytest
from tests.support.peers.leaders import await_in_sync, await_leader, lead, make_replicated
from tests.support.peers.load import QUICK
from tests.support.peers.topics import await_true
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.kafka_server import HANG_S
from tests.support.servers.mixed_cluster import MixedCluster, Part

from ottla import Admin, Consumer, Producer
from ottla.ids import TopicPartition

OTTLA, APACHE = 1, 2
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
PARTITIONS = {0: [OTTLA, APACHE], 1: [APACHE, OTTLA]}
REPLICATED = {"offsets.topic.replication.factor": 2, "transaction.state.log.replication.factor": 2}


def send_all_codecs(bootstrap: str, turn: str) -> list[str]:
    """Send to both partitions with every codec, acknowledged by all replicas; returns the values."""
    sent = []
    for codec in CODECS:
        with Producer(bootstrap, compression_type=codec, acks="all", **QUICK) as producer:
            values = [f"{turn} {codec} {number} " * 20 for number in range(40)]
            for delivery in [producer.send("t", each.encode(), partition=n % 2) for n, each in enumerate(values)]:
                delivery.result(HANG_S)
            sent += values
    return sent


def send_transactions(bootstrap: str, turn: str) -> list[str]:
    """One transaction over both partitions is committed, one is aborted; returns the committed values."""
    with Producer(bootstrap, transactional_id="moving", **QUICK) as producer:
        producer.init_transactions()
        for end in ("aborted", "committed"):
            values = [f"{turn} {end} {number}" for number in range(10)]
            producer.begin_transaction()
            for number, value in enumerate(values):
                producer.send("t", value.encode(), partition=number % 2)
            if end == "aborted":
                producer.abort_transaction()
            else:
                producer.commit_transaction()
    return values


def read_committed(bootstrap: str) -> list[str]:
    partitions = [TopicPartition("t", index) for index in PARTITIONS]
    found: list[str] = []
    settings = {"auto_offset_reset": "earliest", "isolation_level": "read_committed", **QUICK}
    with Consumer(bootstrap, **settings) as consumer:
        consumer.assign(partitions)

        def at_end() -> bool:
            found.extend((record.value or b"").decode() for record in consumer.poll(0.2))
            ends = consumer.end_offsets(partitions)
            return all(consumer.position(each) >= ends[each] for each in partitions)

        await_true(at_end, "all records to be read")
    return found


def await_all_equal(cluster: MixedCluster) -> None:
    for topic, partition in (("t", 0), ("t", 1), ("__transaction_state", 0)):
        assert cluster.await_equal(topic, partition, OTTLA, APACHE), f"{topic}-{partition} is empty"


@pytest.mark.timeout(400)
def test_replicas_of_both_kinds_are_equal(apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    nodes = {OTTLA: Part("ottla", "broker,controller"), APACHE: Part("apache", "broker")}
    with MixedCluster(apache_kafka, tmp_path, nodes, REPLICATED) as cluster:
        cluster.start(OTTLA, APACHE)
        bootstrap = cluster.bootstrap
        with Admin(bootstrap, **QUICK) as admin:
            make_replicated(admin, "t", PARTITIONS, {"min.insync.replicas": 2})
            sent = send_all_codecs(bootstrap, "first") + send_transactions(bootstrap, "first")
            await_all_equal(cluster)
            for partition, (first, second) in PARTITIONS.items():
                lead(admin, "t", partition, second)
                await_leader(admin, "t", partition, second)
                assert first != second
            sent += send_all_codecs(bootstrap, "other leaders") + send_transactions(bootstrap, "other leaders")
            await_all_equal(cluster)
            cluster.kill(APACHE)
            for partition in PARTITIONS:
                await_leader(admin, "t", partition, OTTLA)
            cluster.start(APACHE)
            await_in_sync(admin, "t")
            await_in_sync(admin, "__transaction_state")
            sent += send_all_codecs(bootstrap, "killed")
            await_all_equal(cluster)
            assert sorted(read_committed(bootstrap)) == sorted(sent)
            assert "could not be replicated" not in cluster.running[OTTLA].log_text()
