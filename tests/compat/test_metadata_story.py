"""The same steps of a single node make Apache's controller and ours write the same records.

The node is formatted and started, creates a topic, is stopped cleanly, started, killed, started and stopped. The records about
the broker and the topic's first partition are compared.
"""

from pathlib import Path

import pytest
from tests.support.cases.controller_refusals import CASES, topic
from tests.support.logs.metadata_files import log_of
from tests.support.nodes.controller_cluster import ControllerCluster
from tests.support.peers.raw_client import RawClient
from tests.support.servers.apache_kafka import ApacheKafka

from ottla.metadata.controller.brokers import fence_silent_brokers
from ottla.metadata.features import METADATA_VERSION_MAX
from ottla.wire.base import Message
from ottla.wire.messages.create_topics import CreateTopicsRequest
from ottla.wire.messages.metadata_records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
)

Story = list[tuple[object, ...]]


def summary_of(log: list[Message]) -> Story:
    """The log's records about the broker and partition 0, without ids and offsets."""
    story: Story = []
    for record in log:
        match record:
            case RegisterBrokerRecord():
                story.append(("registers", record.fenced, record.in_controlled_shutdown))
            case BrokerRegistrationChangeRecord() if (
                record.cordoned_log_dirs is None
            ):  # Apache's brokers also register cordoned directories
                story.append(("broker", record.fenced, record.in_controlled_shutdown))
            case PartitionRecord(partition_id=0):
                story.append(("made", record.replicas, record.isr, record.leader, record.leader_epoch, record.partition_epoch))
            case PartitionChangeRecord(partition_id=0):
                changed = (record.isr, record.leader, record.leader_recovery_state)
                story.append(("changed", *changed, record.eligible_leader_replicas, record.last_known_elr))
    return story


def apaches_story(kafka: ApacheKafka, data: Path, elr: int) -> Story:
    server = kafka.start_server(data_dir=data)
    with RawClient(server.port) as client:
        if not elr:
            down = next(case for case in CASES if case.name == "features: elr down and up")
            assert client.request(down.make({}), down.version).error_code == 0
        client.request(CreateTopicsRequest(topics=[topic("t", 2, 1)], timeout_ms=20_000), 7)
    server.stop()
    kafka.start_server(data_dir=data).kill()
    kafka.start_server(data_dir=data).stop()
    return summary_of([record.message for _, record in log_of(data / "__cluster_metadata-0")])


def our_story(elr: int) -> Story:
    cluster = ControllerCluster(METADATA_VERSION_MAX, features={"eligible.leader.replicas.version": elr})
    cluster.add_broker(1)
    cluster.create_topic("t", 2, 1)

    def stop() -> None:
        while not cluster.heartbeat(1, want_shut_down=True).should_shut_down:
            pass

    def start(previous_broker_epoch: int) -> None:
        cluster.now_ms += 10_000
        cluster.add_broker(1, previous_broker_epoch=previous_broker_epoch)

    first = cluster.state.image.cluster.brokers[1].epoch
    stop()
    start(first)
    cluster.now_ms += 10_000  # killed: Apache's new controller waits for the old session to expire; ours need not
    assert cluster.apply(fence_silent_brokers(cluster.state, cluster.now_ms)).fenced == (1,)
    start(-1)
    stop()
    return summary_of(cluster.log)


@pytest.mark.slow
@pytest.mark.parametrize("elr", [1, 0])
def test_single_node_writes_the_same_records(apache_kafka: ApacheKafka, tmp_path: Path, elr: int) -> None:
    assert apaches_story(apache_kafka, tmp_path / "data", elr) == our_story(elr)
