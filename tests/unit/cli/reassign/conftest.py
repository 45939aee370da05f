"""A cluster in memory with four brokers and the topic `orders`, whose reassignments a test sets, for `ottla reassign`."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from tests.support.nodes.fake_node import FakeNetwork, FakeNode
from tests.support.servers.ottla_cli import Said, run_cli
from tests.unit.cli.conftest import ORDERS_ID, WHERE

from ottla.errors.codes import ErrorCode
from ottla.wire.base import Message
from ottla.wire.messages import alter_partition_reassignments as altered
from ottla.wire.messages import alter_replica_log_dirs as moved
from ottla.wire.messages import describe_cluster, metadata
from ottla.wire.messages import describe_log_dirs as dirs
from ottla.wire.messages import describe_topic_partitions as topics
from ottla.wire.messages import incremental_alter_configs as configs
from ottla.wire.messages import list_partition_reassignments as listed

RunOttla = Callable[..., Said]
BROKERS = (1, 2, 3, 4)


class FakeCluster:
    """The state of the cluster, and what was asked of it."""

    def __init__(self) -> None:
        self.partitions: dict[int, list[int]] = {0: [1, 2, 3], 1: [2, 3, 1]}
        self.ongoing: dict[int, tuple[list[int], list[int], list[int]]] = {}
        """Partition → replicas, adding, removing."""
        self.refused: dict[int, int] = {}
        """Partition → the error of its reassignment."""
        self.sizes: dict[int, int] = {}
        """Broker → the size of each of its replicas."""
        self.futures: dict[int, str] = {}
        """Broker → the directory that its replicas are being moved to."""
        self.not_there: set[int] = set()
        """Brokers that do not have their replicas yet."""
        self.down: set[int] = set()
        self.racks: dict[int, str | None] = dict.fromkeys(BROKERS)
        self.node = FakeNode(
            {
                metadata.MetadataRequest: self._metadata,
                describe_cluster.DescribeClusterRequest: self._cluster,
                topics.DescribeTopicPartitionsRequest: self._topics,
                listed.ListPartitionReassignmentsRequest: self._list,
                altered.AlterPartitionReassignmentsRequest: self._alter,
                configs.IncrementalAlterConfigsRequest: self._configure,
                dirs.DescribeLogDirsRequest: self._log_dirs,
                moved.AlterReplicaLogDirsRequest: self._move,
            }
        )

    def settings(self) -> list[tuple[str, dict[str, str | None]]]:
        """The changes of settings, in order: of which resource, and which."""
        return [
            (resource.resource_name, {each.name: each.value for each in resource.configs})
            for request in self.node.asked_for(configs.IncrementalAlterConfigsRequest)
            for resource in request.resources
        ]

    def wanted(self) -> list[dict[int, list[int] | None]]:
        return [
            {each.partition_index: each.replicas for topic in request.topics for each in topic.partitions}
            for request in self.node.asked_for(altered.AlterPartitionReassignmentsRequest)
        ]

    def _metadata(self, request: metadata.MetadataRequest, version: int) -> Message:
        names = ["orders"] if request.topics is None else [each.name for each in request.topics]
        found = [
            metadata.MetadataResponseTopic(
                name=name,
                topic_id=ORDERS_ID,
                partitions=[
                    metadata.MetadataResponsePartition(
                        partition_index=index, leader_id=held[0], replica_nodes=held, isr_nodes=held
                    )
                    for index, held in self.partitions.items()
                ],
            )
            if name == "orders"
            else metadata.MetadataResponseTopic(name=name, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            for name in names
        ]
        brokers = [
            metadata.MetadataResponseBroker(node_id=each, host=WHERE[0], port=WHERE[1] + each - 1)
            for each in BROKERS
            if each not in self.down
        ]
        return metadata.MetadataResponse(brokers=brokers, controller_id=1, topics=found)

    def _cluster(self, request: Any, version: int) -> Message:
        brokers = [
            describe_cluster.DescribeClusterBroker(
                broker_id=each, host=WHERE[0], port=WHERE[1] + each - 1, rack=self.racks[each]
            )
            for each in BROKERS
            if each not in self.down
        ]
        return describe_cluster.DescribeClusterResponse(cluster_id="c", controller_id=1, brokers=brokers)

    def _topics(self, request: topics.DescribeTopicPartitionsRequest, version: int) -> Message:
        return topics.DescribeTopicPartitionsResponse(
            topics=[
                topics.DescribeTopicPartitionsResponseTopic(
                    name=each.name,
                    topic_id=ORDERS_ID,
                    partitions=[
                        topics.DescribeTopicPartitionsResponsePartition(
                            partition_index=index, leader_id=held[0], replica_nodes=held, isr_nodes=held
                        )
                        for index, held in self.partitions.items()
                    ],
                )
                if each.name == "orders"
                else topics.DescribeTopicPartitionsResponseTopic(
                    name=each.name, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                )
                for each in request.topics
            ]
        )

    def _list(self, request: listed.ListPartitionReassignmentsRequest, version: int) -> Message:
        wanted: Iterable[int] = (
            self.ongoing if request.topics is None else [index for topic in request.topics for index in topic.partition_indexes]
        )
        found = [
            listed.OngoingPartitionReassignment(
                partition_index=index,
                replicas=self.ongoing[index][0],
                adding_replicas=self.ongoing[index][1],
                removing_replicas=self.ongoing[index][2],
            )
            for index in wanted
            if index in self.ongoing
        ]
        topic = [listed.OngoingTopicReassignment(name="orders", partitions=found)] if found else []
        return listed.ListPartitionReassignmentsResponse(topics=topic)

    def _alter(self, request: altered.AlterPartitionReassignmentsRequest, version: int) -> Message:
        results = [
            altered.ReassignablePartitionResponse(
                partition_index=each.partition_index, error_code=self.refused.get(each.partition_index, 0), error_message="no"
            )
            for topic in request.topics
            for each in topic.partitions
        ]
        response = altered.ReassignableTopicResponse(name="orders", partitions=results)
        return altered.AlterPartitionReassignmentsResponse(responses=[response])

    def _configure(self, request: configs.IncrementalAlterConfigsRequest, version: int) -> Message:
        return configs.IncrementalAlterConfigsResponse(
            responses=[
                configs.AlterConfigsResourceResponse(
                    resource_type=each.resource_type,
                    resource_name=each.resource_name,
                    error_code=0 if each.resource_type != 2 or each.resource_name == "orders" else 3,
                )
                for each in request.resources
            ]
        )

    def _log_dirs(self, request: dirs.DescribeLogDirsRequest, version: int) -> Message:
        """All brokers answer alike, since they are one node: with the size of the largest, or the one that is set."""
        partitions = [dirs.DescribeLogDirsPartition(partition_index=index, partition_size=100) for index in self.partitions]
        found = [
            dirs.DescribeLogDirsResult(log_dir="/one", topics=[dirs.DescribeLogDirsTopic(name="orders", partitions=partitions)])
        ]
        for path in self.futures.values():
            future = [
                dirs.DescribeLogDirsPartition(partition_index=index, partition_size=40, is_future_key=True)
                for index in self.partitions
            ]
            found.append(
                dirs.DescribeLogDirsResult(log_dir=path, topics=[dirs.DescribeLogDirsTopic(name="orders", partitions=future)])
            )
        return dirs.DescribeLogDirsResponse(results=found)

    def _move(self, request: moved.AlterReplicaLogDirsRequest, version: int) -> Message:
        results = [
            moved.AlterReplicaLogDirPartitionResult(
                partition_index=index, error_code=ErrorCode.REPLICA_NOT_AVAILABLE if self.not_there else 0
            )
            for each in request.dirs
            for topic in each.topics
            for index in topic.partitions
        ]
        self.not_there.clear()
        return moved.AlterReplicaLogDirsResponse(
            results=[moved.AlterReplicaLogDirTopicResult(topic_name="orders", partitions=results)]
        )


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


@pytest.fixture
def ottla(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> RunOttla:
    """Runs `ottla` against the cluster."""
    monkeypatch.delenv("OTTLA_BOOTSTRAP_SERVERS", raising=False)
    network = FakeNetwork({(WHERE[0], WHERE[1] + each - 1): cluster.node for each in BROKERS})
    monkeypatch.setattr("ottla.cli.common.connection.make_network", lambda: network)
    return run_cli
