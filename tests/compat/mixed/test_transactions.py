"""Transactions of other libraries over leaders and coordinators of both kinds, both transaction versions and all codecs."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.peers.committed import read_committed
from tests.support.peers.leaders import lead, make_replicated
from tests.support.peers.load import QUICK
from tests.support.peers.transactions import Open, Producers, committed_offset, set_transaction_version
from tests.support.peers.transactions_java import JavaProducers
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.mixed_cluster import MixedCluster, Part

from ottla import Admin

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

OTTLA, APACHE = 1, 2
NODES = {OTTLA: Part("ottla", "broker,controller"), APACHE: Part("apache", "broker")}
PARTITIONS = {0: [OTTLA, APACHE], 1: [APACHE, OTTLA]}
INTERNAL = ("__consumer_offsets", "__transaction_state")
REPLICATED = {"offsets.topic.replication.factor": 2, "transaction.state.log.replication.factor": 2}
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@contextmanager
def java_producers(kafka: ApacheKafka) -> Iterator[Open]:
    java = JavaProducers(kafka)
    try:
        yield java.open
    finally:
        java.stop()


@pytest.mark.parametrize("version", [1, 2], ids=["TV1", "TV2"])
def test_transactions_over_both_kinds(version: int, apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    with (
        MixedCluster(apache_kafka, tmp_path, NODES, REPLICATED) as cluster,
        java_producers(apache_kafka) as java,
        Producers(lambda: java) as producers,
        Admin(cluster.bootstrap, **QUICK) as admin,
    ):
        cluster.start(OTTLA, APACHE)
        bootstrap = cluster.bootstrap
        set_transaction_version(cluster.running[OTTLA].bootstrap, version)
        make_replicated(admin, "t", PARTITIONS)
        expected: list[str] = []
        opened = [
            (f"{library} {codec}", producers.open(library, bootstrap, f"{library}-{codec}", more={"compression.type": codec}))
            for library in ("confluent", "java")
            for codec in CODECS
        ]
        for _, producer in opened:
            producer.init()
        for coordinator in (OTTLA, APACHE):
            for name, producer in opened:
                if name.endswith("gzip"):  # once for each library, in the middle of the others
                    for topic in INTERNAL:
                        lead(admin, topic, 0, coordinator)
                for end in ("aborted", "committed"):
                    value = f"{coordinator} {name} {end} " * 10
                    producer.begin()
                    for partition in PARTITIONS:
                        producer.send("t", partition, value)
                    producer.send_offset("group", "t", 0, coordinator * 100 + len(expected))
                    if end == "aborted":
                        producer.abort()
                    else:
                        producer.commit()
                        expected.append(value)
        assert read_committed(bootstrap, "t", 2) == {0: expected, 1: expected}
        assert committed_offset(bootstrap, "group", "t", 0) == APACHE * 100 + len(expected) - 1
        for topic, partition in (("t", 0), ("t", 1), *((topic, 0) for topic in INTERNAL)):
            assert cluster.await_equal(topic, partition, OTTLA, APACHE)
