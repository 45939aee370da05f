"""A compacted topic moves between brokers of both kinds: a replica is made of batches with gaps, and of empty ones."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest
from tests.support.peers.leaders import lead, leaders, make_replicated
from tests.support.peers.load import QUICK
from tests.support.peers.topics import await_true
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.kafka_server import HANG_S
from tests.support.servers.mixed_cluster import MixedCluster, Part

from ottla import Admin, Consumer, Producer
from ottla.ids import TopicPartition
from ottla.records.batch import iterate_batches

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

CONTROLLER, OTTLA, APACHE = 1, 2, 3
NODES = {CONTROLLER: Part("ottla", "controller"), OTTLA: Part("ottla", "broker"), APACHE: Part("apache", "broker")}
KEYS = 20
COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": 0.001,
    "segment.ms": 300,
    "delete.retention.ms": 600_000,
}


@contextmanager
def cluster_of(kafka: ApacheKafka, folder: Path) -> Iterator[MixedCluster]:
    with MixedCluster(kafka, folder, NODES, {"log.cleaner.backoff.ms": 200}) as cluster:
        cluster.start(CONTROLLER)
        cluster.start(OTTLA, APACHE)
        yield cluster


def empty_batches(data: bytes) -> int:
    return sum(batch.count == 0 for batch in iterate_batches(data))


def latest(cluster: MixedCluster) -> tuple[int, dict[bytes | None, bytes | None]]:
    """How many records a reader finds, and the last value of each key."""
    there, found, values = TopicPartition("t", 0), 0, {}
    with Consumer(cluster.bootstrap, auto_offset_reset="earliest", **QUICK) as consumer:
        consumer.assign([there])
        end = consumer.end_offsets([there])[there]
        while consumer.position(there) < end:
            for record in consumer.poll(0.2):
                found += 1
                values[record.key] = record.value
    return found, values


def test_compacted_topic_moves_both_ways(apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    with cluster_of(apache_kafka, tmp_path) as cluster, Admin(cluster.bootstrap, **QUICK) as admin:
        make_replicated(admin, "t", {0: [APACHE]}, COMPACTED)
        numbers = count()
        expected: dict[bytes | None, bytes | None] = {}

        def send(producer: Producer[bytes, bytes]) -> None:
            for key in (b"key %d" % index for index in range(KEYS)):
                value = b"value %d" % next(numbers)
                producer.send("t", value, key=key, partition=0).result(HANG_S)
                expected[key] = value

        # The first producer writes once before each move: its batches lose all records to the second one's.
        with (
            Producer(cluster.bootstrap, acks="all", **QUICK) as first,
            Producer(cluster.bootstrap, acks="all", **QUICK) as second,
        ):
            for here, there in ((APACHE, OTTLA), (OTTLA, APACHE), (APACHE, OTTLA)):
                send(first)

                def is_compacted(here: int = here) -> bool:
                    send(second)
                    return empty_batches(cluster.held(here, "t", 0)) > 0

                await_true(is_compacted, f"node {here} to keep an empty batch")
                sent = next(numbers)
                assert latest(cluster)[0] < sent
                admin.alter_partition_reassignments({TopicPartition("t", 0): [there, here]}).raise_first()
                await_true(lambda: admin.list_partition_reassignments([("t", 0)]) == {}, f"a replica on node {there}")
                lead(admin, "t", 0, there)
                send(first)
                send(second)
                assert latest(cluster)[1] == expected
                admin.alter_partition_reassignments({TopicPartition("t", 0): [there]}).raise_first()
                await_true(lambda: admin.list_partition_reassignments([("t", 0)]) == {}, f"the replica on {here} to go")
                await_true(lambda there=there: leaders(admin, "t") == {0: there}, f"node {there} to lead")
        assert latest(cluster)[1] == expected
        assert "could not be replicated" not in cluster.running[OTTLA].log_text()
