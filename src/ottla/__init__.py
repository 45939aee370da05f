"""Ottla: Kafka in Python, in Apache Kafka 4.3's protocol and disk formats.

    from ottla import Producer, Consumer, Admin

The names are loaded when they are first used: importing one room must not load the others. `ottla.aio` has the asyncio clients,
`ottla.errors` what they raise. The types of arguments and results, for annotations, are here.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.client.admin.acl_types import AclBinding, AclFilter, AclOperation, AclPermission, AclResourceType, PatternType
    from ottla.client.admin.cluster_state import (
        ClusterDescription,
        FeatureMetadata,
        FeatureRange,
        FeatureUpdate,
        NodeDescription,
        UpgradeType,
    )
    from ottla.client.admin.configs import (
        ConfigChange,
        ConfigEntry,
        ConfigOperation,
        ConfigResource,
        ConfigResourceType,
        ConfigSource,
        ConfigSynonym,
        ConfigType,
    )
    from ottla.client.admin.group_descriptions import (
        ClassicGroupDescription,
        ClassicMemberDescription,
        ConsumerGroupDescription,
        MemberDescription,
    )
    from ottla.client.admin.groups import GroupListing, MemberToRemove
    from ottla.client.admin.log_dirs import LogDirDescription, Replica, ReplicaInfo, ReplicaLogDir
    from ottla.client.admin.offsets import FoundOffset, IsolationLevel, OffsetSpec
    from ottla.client.admin.producers import ProducerState
    from ottla.client.admin.quorum import QuorumInfo, QuorumReplica, VoterEndpoint
    from ottla.client.admin.quotas import QuotaEntity
    from ottla.client.admin.reassignments import ElectionType, PartitionReassignment
    from ottla.client.admin.results import Results
    from ottla.client.admin.scram import ScramCredential, ScramDeletion, ScramMechanism, ScramUpsertion
    from ottla.client.admin.sync import Admin
    from ottla.client.admin.tokens import DelegationToken
    from ottla.client.admin.topic_descriptions import PartitionDescription, TopicDescription, TopicListing
    from ottla.client.admin.topics import CreatedTopic, NewPartitions, NewTopic
    from ottla.client.admin.transactions import FencedProducer, TransactionDescription, TransactionListing
    from ottla.client.consumer.listener import RebalanceListener
    from ottla.client.consumer.record import ConsumerRecord
    from ottla.client.consumer.sync import Consumer
    from ottla.client.interceptors import ProducerRecord
    from ottla.client.producer.deliveries import Deliveries
    from ottla.client.producer.sync import Producer
    from ottla.client.prometheus import PrometheusCollector
    from ottla.client.tracing import Tracing
    from ottla.client_core.consumer.offset_lister import OffsetAndTimestamp
    from ottla.client_core.json_values import JsonOf, json_of
    from ottla.client_core.metadata import PartitionInfo
    from ottla.client_core.offsets import ConsumerGroupMetadata, OffsetAndMetadata
    from ottla.client_core.producer.batch import RecordMetadata
    from ottla.client_core.producer.prepared_transactions import Finish, PreparedTransaction, TransactionIdentity
    from ottla.ids import TopicPartition, Uuid
    from ottla.records.columns import Columns
    from ottla.records.kernels import Delivery
    from ottla.worker.core import DeadLetters, Retry
    from ottla.worker.sync import Worker

__version__ = "0.1.0"

__all__ = [
    "AclBinding",
    "AclFilter",
    "AclOperation",
    "AclPermission",
    "AclResourceType",
    "Admin",
    "ClassicGroupDescription",
    "ClassicMemberDescription",
    "ClusterDescription",
    "Columns",
    "ConfigChange",
    "ConfigEntry",
    "ConfigOperation",
    "ConfigResource",
    "ConfigResourceType",
    "ConfigSource",
    "ConfigSynonym",
    "ConfigType",
    "Consumer",
    "ConsumerGroupDescription",
    "ConsumerGroupMetadata",
    "ConsumerRecord",
    "CreatedTopic",
    "DeadLetters",
    "DelegationToken",
    "Deliveries",
    "Delivery",
    "ElectionType",
    "FeatureMetadata",
    "FeatureRange",
    "FeatureUpdate",
    "FencedProducer",
    "Finish",
    "FoundOffset",
    "GroupListing",
    "IsolationLevel",
    "JsonOf",
    "LogDirDescription",
    "MemberDescription",
    "MemberToRemove",
    "NewPartitions",
    "NewTopic",
    "NodeDescription",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "OffsetSpec",
    "PartitionDescription",
    "PartitionInfo",
    "PartitionReassignment",
    "PatternType",
    "PreparedTransaction",
    "Producer",
    "ProducerRecord",
    "ProducerState",
    "PrometheusCollector",
    "QuorumInfo",
    "QuorumReplica",
    "QuotaEntity",
    "RebalanceListener",
    "RecordMetadata",
    "Replica",
    "ReplicaInfo",
    "ReplicaLogDir",
    "Results",
    "Retry",
    "ScramCredential",
    "ScramDeletion",
    "ScramMechanism",
    "ScramUpsertion",
    "TopicDescription",
    "TopicListing",
    "TopicPartition",
    "Tracing",
    "TransactionDescription",
    "TransactionIdentity",
    "TransactionListing",
    "UpgradeType",
    "Uuid",
    "VoterEndpoint",
    "Worker",
    "__version__",
    "json_of",
]

_NAMES = {
    "ottla.client.admin.acl_types": (
        "AclBinding",
        "AclFilter",
        "AclOperation",
        "AclPermission",
        "AclResourceType",
        "PatternType",
    ),
    "ottla.client.admin.cluster_state": (
        "ClusterDescription",
        "FeatureMetadata",
        "FeatureRange",
        "FeatureUpdate",
        "NodeDescription",
        "UpgradeType",
    ),
    "ottla.client.admin.configs": (
        "ConfigChange",
        "ConfigEntry",
        "ConfigOperation",
        "ConfigResource",
        "ConfigResourceType",
        "ConfigSource",
        "ConfigSynonym",
        "ConfigType",
    ),
    "ottla.client.admin.group_descriptions": (
        "ClassicGroupDescription",
        "ClassicMemberDescription",
        "ConsumerGroupDescription",
        "MemberDescription",
    ),
    "ottla.client.admin.groups": (
        "GroupListing",
        "MemberToRemove",
    ),
    "ottla.client.admin.log_dirs": (
        "LogDirDescription",
        "Replica",
        "ReplicaInfo",
        "ReplicaLogDir",
    ),
    "ottla.client.admin.offsets": (
        "FoundOffset",
        "IsolationLevel",
        "OffsetSpec",
    ),
    "ottla.client.admin.producers": ("ProducerState",),
    "ottla.client.admin.quorum": (
        "QuorumInfo",
        "QuorumReplica",
        "VoterEndpoint",
    ),
    "ottla.client.admin.quotas": ("QuotaEntity",),
    "ottla.client.admin.reassignments": (
        "ElectionType",
        "PartitionReassignment",
    ),
    "ottla.client.admin.results": ("Results",),
    "ottla.client.admin.scram": (
        "ScramCredential",
        "ScramDeletion",
        "ScramMechanism",
        "ScramUpsertion",
    ),
    "ottla.client.admin.sync": ("Admin",),
    "ottla.client.admin.tokens": ("DelegationToken",),
    "ottla.client.admin.topic_descriptions": (
        "PartitionDescription",
        "TopicDescription",
        "TopicListing",
    ),
    "ottla.client.admin.topics": (
        "CreatedTopic",
        "NewPartitions",
        "NewTopic",
    ),
    "ottla.client.admin.transactions": (
        "FencedProducer",
        "TransactionDescription",
        "TransactionListing",
    ),
    "ottla.client.consumer.listener": ("RebalanceListener",),
    "ottla.client.consumer.record": ("ConsumerRecord",),
    "ottla.client.consumer.sync": ("Consumer",),
    "ottla.client.interceptors": ("ProducerRecord",),
    "ottla.client.producer.deliveries": ("Deliveries",),
    "ottla.client.producer.sync": ("Producer",),
    "ottla.client.prometheus": ("PrometheusCollector",),
    "ottla.client.tracing": ("Tracing",),
    "ottla.client_core.consumer.offset_lister": ("OffsetAndTimestamp",),
    "ottla.client_core.json_values": ("JsonOf", "json_of"),
    "ottla.client_core.metadata": ("PartitionInfo",),
    "ottla.client_core.offsets": (
        "ConsumerGroupMetadata",
        "OffsetAndMetadata",
    ),
    "ottla.client_core.producer.batch": ("RecordMetadata",),
    "ottla.client_core.producer.prepared_transactions": (
        "Finish",
        "PreparedTransaction",
        "TransactionIdentity",
    ),
    "ottla.ids": ("TopicPartition", "Uuid"),
    "ottla.records.columns": ("Columns",),
    "ottla.records.kernels": ("Delivery",),
    "ottla.worker.core": ("DeadLetters", "Retry"),
    "ottla.worker.sync": ("Worker",),
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        from ottla.client.other_clients import missing_name

        raise missing_name(__name__, name)
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
