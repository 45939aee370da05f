"""A cluster for tests of the controller's decisions: a state, brokers in it, and decisions applied as the host does.

    cluster = ControllerCluster()
    cluster.add_broker(1)
    cluster.create_topic("t", partitions=2, replication_factor=1)

Every record is encoded and decoded before it is applied, in the version of the cluster's metadata.version.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from ottla.ids import Uuid
from ottla.metadata.controller.brokers import broker_heartbeat, register_broker
from ottla.metadata.controller.decision import Decision
from ottla.metadata.controller.state import ControllerSettings, ControllerState
from ottla.metadata.controller.topics import create_topics
from ottla.metadata.features import KRAFT_VERSION, METADATA_VERSION_MAX, SUPPORTED_FEATURES, default_levels, record_version
from ottla.metadata.image.topics import PartitionState, Topic
from ottla.wire.base import Message
from ottla.wire.log_records import decode_metadata_record, encode_metadata_record
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest, Feature, Listener
from ottla.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ottla.wire.messages.metadata_records import FeatureLevelRecord

R = TypeVar("R")
CLUSTER_ID = "b3R0bGEtdGVzdHMtMDAwMQ"


class SeededRandomness:
    """Randomness from a seed."""

    def __init__(self, seed: int = 1) -> None:
        self._random = random.Random(seed)

    def new_uuid(self) -> Uuid:
        return Uuid(b"\x42" + self._random.randbytes(15))

    def below(self, limit: int) -> int:
        return self._random.randrange(limit)


def directory_of(broker_id: int, number: int = 0) -> Uuid:
    """The id of a broker's log directory."""
    return Uuid(b"directory" + number.to_bytes(3, "big") + broker_id.to_bytes(4, "big"))


class ControllerCluster:
    """A `ControllerState` and the log it wrote."""

    def __init__(
        self,
        metadata_version: int = METADATA_VERSION_MAX,
        features: Mapping[str, int] | None = None,
        seed: int = 1,
        **settings: Any,
    ) -> None:
        known = {"cluster_id": CLUSTER_ID, "node_id": 1, **settings}
        self.state = ControllerState(ControllerSettings(**known), SeededRandomness(seed))
        self.log: list[Message] = []
        self.now_ms = 0
        self._incarnations = 0
        levels = default_levels(metadata_version) | dict(features or {})
        self.append(
            [
                FeatureLevelRecord(name=name, feature_level=level)
                for name, level in levels.items()
                if name != KRAFT_VERSION and level
            ]
        )

    def append(self, records: Sequence[Message]) -> None:
        """Write records to the log and replay them, as they are read back."""
        read = []
        for record in records:
            data = encode_metadata_record(record, record_version(record, self.state.image.metadata_version))
            read.append(decode_metadata_record(data).message)
        self.state.replay(read, self.state.next_offset, epoch=1, timestamp_ms=self.now_ms)
        self.log += read

    def apply(self, decision: Decision[R]) -> R:
        self.append(decision.records)
        return decision.response

    def registration(self, broker_id: int, **fields: Any) -> BrokerRegistrationRequest:
        """A registration of a new incarnation."""
        self._incarnations += 1
        known = {
            "broker_id": broker_id,
            "cluster_id": CLUSTER_ID,
            "incarnation_id": Uuid(b"incarnation" + self._incarnations.to_bytes(5, "big")),
            "listeners": [Listener(name="PLAINTEXT", host=f"host{broker_id}", port=9092)],
            "features": [
                Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in SUPPORTED_FEATURES.items()
            ],
            "rack": None,
            "log_dirs": [directory_of(broker_id)],
        }
        return BrokerRegistrationRequest(**(known | fields))

    def register(self, broker_id: int, **fields: Any) -> int:
        """Register a broker, which stays fenced; returns its epoch."""
        return self.apply(register_broker(self.state, self.registration(broker_id, **fields), self.now_ms)).broker_epoch

    def heartbeat(self, broker_id: int, **fields: Any) -> BrokerHeartbeatResponse:
        """A heartbeat of a broker that has read the whole metadata log."""
        known = {
            "broker_id": broker_id,
            "broker_epoch": self.state.image.cluster.brokers[broker_id].epoch,
            "current_metadata_offset": self.state.next_offset - 1,
        }
        return self.apply(broker_heartbeat(self.state, BrokerHeartbeatRequest(**(known | fields)), self.now_ms))

    def add_broker(self, broker_id: int, **fields: Any) -> None:
        """Register a broker and unfence it."""
        self.register(broker_id, **fields)
        assert not self.heartbeat(broker_id).is_fenced

    def create_topic(
        self,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        assignments: Sequence[Sequence[int]] = (),
        configs: Mapping[str, str] | None = None,
    ) -> Topic:
        """Create a topic; it must succeed."""
        request = CreateTopicsRequest(
            topics=[
                CreatableTopic(
                    name=name,
                    num_partitions=partitions,
                    replication_factor=replication_factor,
                    assignments=[
                        CreatableReplicaAssignment(partition_index=index, broker_ids=list(replicas))
                        for index, replicas in enumerate(assignments)
                    ],
                    configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
                )
            ]
        )
        (result,) = self.apply(create_topics(self.state, request, self.now_ms)).topics
        assert result.error_code == 0, result
        return self.topic(name)

    def topic(self, name: str) -> Topic:
        return self.state.image.topics.by_name[name]

    def partition(self, name: str, number: int = 0) -> PartitionState:
        return self.topic(name).partitions[number]
