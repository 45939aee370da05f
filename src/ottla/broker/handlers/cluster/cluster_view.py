"""What several handlers report about the cluster: leaders, offline replicas, endpoints, authorized operations.

Authorized operations are bit fields, with bit n for Kafka's operation n: those that suit the kind of resource.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.broker.requests.context import RequestContext
from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid, topic_name_fault
from ottla.metadata.acls import CLUSTER_NAME, Operation, ResourceType
from ottla.metadata.image.cluster import Endpoint
from ottla.metadata.image.image import MetadataImage
from ottla.metadata.image.topics import NO_LEADER, PartitionState

_OPERATIONS: Final = {
    ResourceType.TOPIC: 0b1101_1111_1000,
    ResourceType.GROUP: 0b1101_0100_1000,
    ResourceType.CLUSTER: 0b1_1111_1010_0000,
}
"""Resource type → the operations that suit it."""


def authorized_operations(context: RequestContext, resource_type: int, name: str = CLUSTER_NAME) -> int:
    """What the client may do with a resource."""
    suitable = _OPERATIONS[resource_type]
    if context.grants is None:
        return suitable
    if resource_type == ResourceType.CLUSTER and not context.allows_on_cluster(Operation.DESCRIBE):
        return 0
    each = (bit for bit in range(suitable.bit_length()) if suitable >> bit & 1)
    return sum(1 << bit for bit in each if context.allows(bit, resource_type, name, is_silent=True))


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
