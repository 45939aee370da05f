"""What several handlers report about the cluster: leaders, offline replicas, endpoints, authorized operations.

There is no authorizer, so the bit fields of authorized operations allow everything.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid, topic_name_fault
from ottla.metadata.image.cluster import Endpoint
from ottla.metadata.image.image import MetadataImage
from ottla.metadata.image.topics import NO_LEADER, PartitionState

_READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE = (1 << bit for bit in (3, 4, 5, 6, 7, 8))
_CLUSTER_ACTION, _DESCRIBE_CONFIGS, _ALTER_CONFIGS, _IDEMPOTENT_WRITE = (1 << bit for bit in (9, 10, 11, 12))

TOPIC_OPERATIONS = _READ | _WRITE | _CREATE | _DELETE | _ALTER | _DESCRIBE | _DESCRIBE_CONFIGS | _ALTER_CONFIGS
GROUP_OPERATIONS = _READ | _DELETE | _DESCRIBE | _DESCRIBE_CONFIGS | _ALTER_CONFIGS
CLUSTER_OPERATIONS = _CREATE | _CLUSTER_ACTION | _DESCRIBE_CONFIGS | _ALTER_CONFIGS | _IDEMPOTENT_WRITE | _ALTER | _DESCRIBE


class PartitionView(NamedTuple):
    """One partition as Metadata and DescribeTopicPartitions report it."""

    error_code: int
    leader: int
    offline_replicas: list[int]


def alive_broker_id(image: MetadataImage, own_id: int) -> int:
    """The broker that is reported to clients as the controller: one that takes requests for it; -1 if there is none.

    The one that answers, `own_id`, if it is not fenced: a client reaches it. Another may be dead, and not fenced yet.
    """
    own = image.cluster.brokers.get(own_id)
    if own is not None and not own.fenced:
        return own_id
    return next((broker.id for broker in image.cluster.brokers.values() if not broker.fenced), -1)


def alive_endpoint(image: MetadataImage, broker_id: int, listener: str) -> Endpoint | None:
    """The broker's endpoint on `listener`, if the broker is not fenced and has that listener."""
    broker = image.cluster.brokers.get(broker_id)
    return None if broker is None or broker.fenced else broker.endpoints.get(listener)


def view_partition(image: MetadataImage, state: PartitionState, listener: str) -> PartitionView:
    """The partition as a client on `listener` sees it."""
    offline = [
        replica
        for replica, directory in zip(state.replicas, state.directories, strict=False)
        if not _is_online(image, replica, directory)
    ]
    if state.leader == NO_LEADER or (leader := image.cluster.brokers.get(state.leader)) is None or leader.fenced:
        return PartitionView(ErrorCode.LEADER_NOT_AVAILABLE, NO_LEADER, offline)
    if listener not in leader.endpoints:
        return PartitionView(ErrorCode.LISTENER_NOT_FOUND, NO_LEADER, offline)
    return PartitionView(ErrorCode.NONE, state.leader, offline)


def _is_online(image: MetadataImage, replica: int, directory: Uuid) -> bool:
    broker = image.cluster.brokers.get(replica)
    return broker is not None and not broker.fenced and broker.has_online_directory(directory)


def unknown_topic_code(name: str) -> int:
    """The error code for a topic that does not exist: its name may be invalid."""
    return ErrorCode.INVALID_TOPIC_EXCEPTION if topic_name_fault(name) is not None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
