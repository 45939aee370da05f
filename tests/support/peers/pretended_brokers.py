"""Brokers that exist only on the controller: a test registers them and sends their heartbeats and AlterPartition requests.

    with PretendedBrokers(server) as brokers:
        brokers.add(81)
        brokers.add(82)
        brokers.create("t", [[81, 82]])
        brokers.alter("t", 81, [81])

So the controller of a single server (Apache Kafka or Ottla) decides about replicated partitions, without a broker to replicate
them. A thread sends the heartbeats that keep the sessions of running brokers.
"""

import os
import threading
from types import TracebackType
from typing import Any, NamedTuple

from tests.support.peers.raw_client import RawClient
from tests.support.peers.topics import await_true
from tests.support.servers.kafka_server import KafkaServer

from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid
from ottla.wire.base import Message
from ottla.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    BrokerState,
)
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest, Feature, Listener
from ottla.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ottla.wire.messages.describe_cluster import DescribeClusterRequest
from ottla.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from ottla.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

FEATURES = {
    "metadata.version": (7, 30),
    "group.version": (0, 1),
    "transaction.version": (0, 2),
    "eligible.leader.replicas.version": (0, 1),
    "kraft.version": (0, 1),
    "share.version": (0, 1),
    "streams.version": (0, 1),
}
_EVERYTHING_READ = 2**40
_HEARTBEAT_S = 0.5
_TOPIC, _SET = 2, 0


class Seen(NamedTuple):
    """A partition as a client of the server sees it."""

    leader: int
    leader_epoch: int
    isr: list[int]
    elr: list[int]
    last_known: list[int]


class PretendedBrokers:
    """The brokers that a test has registered, by id, with their epochs."""

    def __init__(self, server: KafkaServer) -> None:
        self._client = RawClient.to(server.bootstrap)
        self._controller = RawClient.to(server.controller_bootstrap)
        self._hearts = RawClient.to(server.controller_bootstrap)
        self._cluster_id = self._client.request(DescribeClusterRequest(), 1).cluster_id
        self._topics: dict[str, Uuid] = {}
        self._directories: dict[int, Uuid] = {}
        self.epochs: dict[int, int] = {}
        self._running: set[int] = set()
        """Those that get heartbeats."""
        self._beating = threading.Lock()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._thread.start()

    def ask(self, request: Message, version: int) -> Any:
        """The controller's response."""
        return self._controller.request(request, version)

    # -- brokers

    def register(self, broker_id: int, previous_epoch: int = -1) -> None:
        """Register a new incarnation, which stays fenced. Waits for the end of the last one's session."""
        request = BrokerRegistrationRequest(
            broker_id=broker_id,
            cluster_id=self._cluster_id,
            incarnation_id=Uuid(os.urandom(16)),
            listeners=[Listener(name="PLAINTEXT", host="localhost", port=broker_id)],
            features=[
                Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in FEATURES.items()
            ],
            log_dirs=[self._directories.setdefault(broker_id, Uuid(os.urandom(16)))],
            previous_broker_epoch=previous_epoch,
        )

        def is_registered() -> bool:
            response = self.ask(request, 4)
            if response.error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION:
                return False
            assert response.error_code == 0
            self.epochs[broker_id] = response.broker_epoch
            return True

        await_true(is_registered, f"broker {broker_id} to be registered")

    def heartbeat(self, broker_id: int, **fields: Any) -> Any:
        return self.ask(self._heartbeat(broker_id, **fields), 1)

    def unfence(self, broker_id: int) -> None:
        """Unfence the broker; it runs from now on."""
        assert not self.heartbeat(broker_id).is_fenced
        with self._beating:
            self._running.add(broker_id)

    def add(self, broker_id: int) -> None:
        """Register a broker and unfence it."""
        self.register(broker_id)
        self.unfence(broker_id)

    def fence(self, broker_id: int) -> None:
        """The broker does not run any more, but it may be unfenced."""
        self.silence(broker_id)
        assert self.heartbeat(broker_id, want_fence=True).is_fenced

    def stop(self, broker_id: int) -> None:
        """The broker is fenced, and has to register again."""
        self.silence(broker_id)
        assert self.heartbeat(broker_id, want_fence=True, want_shut_down=True).should_shut_down

    def silence(self, broker_id: int) -> None:
        """Send no more heartbeats by itself."""
        with self._beating:
            self._running.discard(broker_id)

    def _heartbeat(self, broker_id: int, **fields: Any) -> BrokerHeartbeatRequest:
        known = {"broker_id": broker_id, "broker_epoch": self.epochs[broker_id], "current_metadata_offset": _EVERYTHING_READ}
        return BrokerHeartbeatRequest(**(known | fields))

    def _beat(self) -> None:
        while not self._is_over.wait(_HEARTBEAT_S):
            with self._beating:
                for broker_id in self._running:
                    self._hearts.request(self._heartbeat(broker_id), 1)

    # -- topics

    def create(self, name: str, assignments: list[list[int]], **configs: str) -> None:
        """Create a topic; names of settings have `_` for `.`."""
        topic = CreatableTopic(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[CreatableReplicaAssignment(partition_index=at, broker_ids=ids) for at, ids in enumerate(assignments)],
            configs=[CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()],
        )
        (made,) = self._client.request(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 7).topics
        assert made.error_code == 0, made.error_message
        self._topics[name] = made.topic_id

    def configure(self, name: str, **configs: str) -> None:
        """Set settings of a topic; names have `_` for `.`."""
        changes = [
            AlterableConfig(name=key.replace("_", "."), config_operation=_SET, value=value) for key, value in configs.items()
        ]
        resource = AlterConfigsResource(resource_type=_TOPIC, resource_name=name, configs=changes)
        (result,) = self._client.request(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
        assert result.error_code == 0, result.error_message

    def await_seen(self, name: str, expected: Seen) -> None:
        """Wait until the server's clients see this of partition 0."""
        found: list[Seen] = []

        def is_seen() -> bool:
            request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name=name)])
            (topic,) = self._client.request(request, 0).topics
            found[:] = [
                Seen(
                    each.leader_id,
                    each.leader_epoch,
                    list(each.isr_nodes),
                    sorted(each.eligible_leader_replicas or ()),
                    list(each.last_known_elr or ()),
                )
                for each in topic.partitions
            ]
            return found[:1] == [expected]

        try:
            await_true(is_seen, f"{name} to be {expected}", timeout_s=30)
        except BaseException as failure:
            raise AssertionError(f"expected {expected}, found {found}") from failure

    def alter(self, name: str | Uuid, broker_id: int, isr: list[int], version: int = 3, **fields: Any) -> Any:
        """The result for one partition of an AlterPartition request; the response, if it is refused as a whole."""
        epochs = self.epochs | fields.pop("epochs", {})
        broker_epoch = fields.pop("broker_epoch", self.epochs.get(broker_id, -1))
        wanted = (
            {"new_isr": isr}
            if version < 3
            else {"new_isr_with_epochs": [BrokerState(broker_id=each, broker_epoch=epochs.get(each, -1)) for each in isr]}
        )
        proposal = AlterPartitionRequestPartitionData(**(wanted | fields))
        topic_id = self._topics[name] if isinstance(name, str) else name
        topic = AlterPartitionRequestTopicData(topic_id=topic_id, partitions=[proposal])
        response = self.ask(AlterPartitionRequest(broker_id=broker_id, broker_epoch=broker_epoch, topics=[topic]), version)
        return response if response.error_code else response.topics[0].partitions[0]

    def elect(self, name: str, election_type: int) -> int:
        """The error code of an election for partition 0."""
        wanted = [TopicPartitions(topic=name, partitions=[0])]
        request = ElectLeadersRequest(election_type=election_type, topic_partitions=wanted, timeout_ms=30_000)
        code: int = self._client.request(request, 2).replica_election_results[0].partition_result[0].error_code
        return code

    def reassign(self, name: str, replicas: list[int] | None) -> int:
        """The error code of a reassignment of partition 0; None cancels one."""
        wanted = ReassignableTopic(name=name, partitions=[ReassignablePartition(partition_index=0, replicas=replicas)])
        request = AlterPartitionReassignmentsRequest(topics=[wanted], timeout_ms=30_000)
        code: int = self._client.request(request, 0).responses[0].partitions[0].error_code
        return code

    def __enter__(self) -> "PretendedBrokers":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._is_over.set()
        self._thread.join()
        for client in (self._client, self._controller, self._hearts):
            client.close()
