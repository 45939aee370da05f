"""What Vote, BeginQuorumEpoch and EndQuorumEpoch share: their requests and responses have the same outer shape.

In all three, version 1 added the leader's address to responses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.errors.codes import ErrorCode
from ottla.raft.requests.common import (
    TOPIC,
    endpoints_in,
    has_wrong_cluster,
    leader_address,
    learn_from_answer,
    only_partition,
)

if TYPE_CHECKING:
    from ottla.raft.replica import Inbound, Replica

_ENDPOINTS_SINCE = 1


class ResponseClasses(NamedTuple):
    """The classes that one API's response is made of."""

    response: Any
    topic: Any
    partition: Any
    endpoint: Any


def refuse(replica: Replica, request: Any) -> int | None:
    """Why a request is refused as a whole; None if it is about the metadata log of this cluster."""
    if has_wrong_cluster(replica, request.cluster_id):
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    return ErrorCode.INVALID_REQUEST if only_partition(request.topics) is None else None


def response_of(classes: ResponseClasses, replica: Replica, inbound: Inbound, error: int | None, **more: Any) -> Any:
    """The response about the one partition: an error code, the leader and the epoch that this replica knows."""
    partition = classes.partition(
        error_code=ErrorCode.NONE if error is None else error, leader_id=replica.leader_id, leader_epoch=replica.epoch, **more
    )
    endpoints = leader_address(replica, classes.endpoint, inbound.listener) if inbound.version >= _ENDPOINTS_SINCE else []
    return classes.response(topics=[classes.topic(topic_name=TOPIC, partitions=[partition])], node_endpoints=endpoints)


def learn_from_response(replica: Replica, response: Any, now_ms: int) -> tuple[Any, bool | None]:
    """The response's partition, and whether that is dealt with: True or False as in `answered`, None to look further."""
    told = only_partition(response.topics)
    if response.error_code != ErrorCode.NONE or told is None:
        return told, False
    endpoints = endpoints_in(replica, told.leader_id, response.node_endpoints)
    return told, learn_from_answer(replica, told.error_code, told.leader_id, told.leader_epoch, endpoints, now_ms)
