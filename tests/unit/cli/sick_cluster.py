"""A cluster in memory with three registered brokers, one of them fenced, and partitions that are not all in sync.

node = sick_node()             or sick_node(is_sick=False)
network = FakeNetwork({WHERE: node})
"""

import time
from typing import Any

from tests.support.nodes.fake_node import FakeNode, all_versions
from tests.unit.cli.conftest import ORDERS_ID, WHERE

from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid
from ottla.wire.base import Message
from ottla.wire.messages import add_raft_voter, api_versions, describe_cluster, describe_quorum, remove_raft_voter
from ottla.wire.messages import describe_log_dirs as dirs
from ottla.wire.messages import metadata as known
from ottla.wire.messages import unregister_broker as unregistered

CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"
DIRECTORIES = {node: Uuid(bytes([node]) * 16) for node in (1, 2, 3, 4)}
NOW_MS = int(time.time() * 1000)


def sick_node(is_sick: bool = True) -> FakeNode:
    """Broker 1. If the cluster is sick, broker 3 is fenced and voter 3 silent, and `orders` misses its replicas."""
    out = {3} if is_sick else set()

    def metadata(request: known.MetadataRequest, version: int) -> Message:
        partitions = [
            known.MetadataResponsePartition(
                partition_index=0, leader_id=1, replica_nodes=[1, 3], isr_nodes=[1] if out else [1, 3]
            ),
            known.MetadataResponsePartition(
                partition_index=1, leader_id=-1 if out else 3, replica_nodes=[3], isr_nodes=[] if out else [3]
            ),
        ]
        return known.MetadataResponse(
            brokers=[known.MetadataResponseBroker(node_id=1, host=WHERE[0], port=WHERE[1], rack="here")],
            controller_id=1,
            topics=[known.MetadataResponseTopic(name="orders", topic_id=ORDERS_ID, partitions=partitions)],
        )

    def cluster(request: Any, version: int) -> Message:
        brokers = [
            describe_cluster.DescribeClusterBroker(broker_id=1, host=WHERE[0], port=WHERE[1], rack="here"),
            describe_cluster.DescribeClusterBroker(broker_id=2, host="two", port=9092),
            describe_cluster.DescribeClusterBroker(broker_id=3, host="three", port=9092, is_fenced=3 in out),
        ]
        shown = [each for each in brokers if request.include_fenced_brokers or not each.is_fenced]
        return describe_cluster.DescribeClusterResponse(cluster_id=CLUSTER_ID, controller_id=1, brokers=shown)

    def quorum(request: Any, version: int) -> Message:
        def replica(node: int, end: int, ago_ms: int = 0) -> describe_quorum.ReplicaState:
            return describe_quorum.ReplicaState(
                replica_id=node,
                replica_directory_id=DIRECTORIES[node],
                log_end_offset=end,
                last_fetch_timestamp=NOW_MS - ago_ms,
                last_caught_up_timestamp=NOW_MS - ago_ms,
            )

        partition = describe_quorum.DescribeQuorumResponsePartitionData(
            leader_id=2,
            leader_epoch=7,
            high_watermark=1000,
            current_voters=[replica(1, 1000), replica(2, 1000), replica(3, 900 if out else 1000, 60_000 if out else 0)],
            observers=[replica(4, 990)],
        )
        nodes = [
            describe_quorum.Node(
                node_id=node, listeners=[describe_quorum.Listener(name="CONTROLLER", host=f"c{node}", port=9093)]
            )
            for node in (1, 2, 3)
        ]
        topic = describe_quorum.DescribeQuorumResponseTopicData(topic_name="__cluster_metadata", partitions=[partition])
        return describe_quorum.DescribeQuorumResponse(topics=[topic], nodes=nodes)

    def versions(request: Any, version: int) -> Message:
        level = api_versions.FinalizedFeatureKey(name="metadata.version", max_version_level=27, min_version_level=27)
        return api_versions.ApiVersionsResponse(api_keys=all_versions(), finalized_features=[level], finalized_features_epoch=5)

    def log_dirs(request: Any, version: int) -> Message:
        partition = dirs.DescribeLogDirsPartition(partition_index=0, partition_size=4096)
        topic = dirs.DescribeLogDirsTopic(name="orders", partitions=[partition])
        broken = dirs.DescribeLogDirsResult(log_dir="/broken", error_code=ErrorCode.KAFKA_STORAGE_ERROR)
        good = dirs.DescribeLogDirsResult(log_dir="/data", topics=[topic], total_bytes=10_000, usable_bytes=5_000)
        return dirs.DescribeLogDirsResponse(results=[good, broken])

    return FakeNode(
        {
            known.MetadataRequest: metadata,
            describe_cluster.DescribeClusterRequest: cluster,
            describe_quorum.DescribeQuorumRequest: quorum,
            api_versions.ApiVersionsRequest: versions,
            dirs.DescribeLogDirsRequest: log_dirs,
            add_raft_voter.AddRaftVoterRequest: lambda request, version: add_raft_voter.AddRaftVoterResponse(),
            remove_raft_voter.RemoveRaftVoterRequest: lambda request, version: remove_raft_voter.RemoveRaftVoterResponse(),
            unregistered.UnregisterBrokerRequest: lambda request, version: unregistered.UnregisterBrokerResponse(),
        }
    )
