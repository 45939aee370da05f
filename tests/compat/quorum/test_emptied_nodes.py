"""A controller and a broker with emptied directories come back: they fetch the leader's snapshot (FetchSnapshot)."""

from pathlib import Path

import pytest
from tests.support.peers.raw_client import RawClient
from tests.support.peers.topics import await_true, describe_topic
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.mixed_cluster import MixedCluster, Part

from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest

pytestmark = pytest.mark.slow

SNAPSHOTS = {"metadata.log.max.record.bytes.between.snapshots": 1500, "metadata.max.retention.bytes": 3000}


def first_offset(cluster: MixedCluster, node: int) -> int:
    """The oldest snapshot of a node: its log begins there."""
    return min((int(path.name[:20]) for path in cluster.metadata_log(node).glob("*.checkpoint")), default=0)


def create(bootstrap: str, name: str) -> None:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    with RawClient.to(bootstrap) as client:
        (made,) = client.request(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 7).topics
    assert made.error_code == 0, made.error_message


def test_emptied_controller_and_broker_fetch_a_snapshot(apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    nodes = {
        **{node: Part("ottla", "controller") for node in (1, 2, 3)},
        4: Part("ottla", "broker"),
        5: Part("ottla", "broker"),
    }
    with MixedCluster(apache_kafka, tmp_path, nodes, SNAPSHOTS) as cluster:
        cluster.start(1, 2, 3)
        cluster.start(4, 5)
        server, made = cluster.running[5].bootstrap, 0

        def has_deleted() -> bool:
            nonlocal made
            made += 1
            create(server, f"topic-{made}")
            return all(first_offset(cluster, node) > 10 for node in (1, 2, 3))

        await_true(has_deleted, "every controller has deleted the log before a snapshot")
        emptied = next(node for node in (1, 2, 3) if node != cluster.leader())
        for node in (emptied, 4):
            cluster.kill(node)
            cluster.empty(node)
            cluster.start(node)
            await_true(
                lambda node=node: "was fetched from the leader" in cluster.running[node].log_text(),
                f"node {node} has a snapshot",
            )
            assert first_offset(cluster, node) > 10
        await_true(lambda: cluster.follows(emptied), "the controller has the log")
        create(server, "afterwards")
        again = cluster.running[4].bootstrap
        await_true(lambda: describe_topic(again, "afterwards").error_code == 0, "the broker follows the metadata log")
        assert describe_topic(again, "topic-1").error_code == 0
