"""DescribeCluster: the brokers of the cluster, or on a controller's listener its controllers.

v1: endpoint type, brokers or controllers. v2: fenced brokers, if the request asks for them.
"""

from __future__ import annotations

from ottla.broker.handlers.cluster.cluster_view import alive_broker_id, authorized_operations
from ottla.broker.requests.context import RequestContext
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.metadata.acls import ResourceType
from ottla.metadata.image.cluster import BrokerRegistration, ControllerRegistration
from ottla.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS, CONTROLLERS = 1, 2


def handle(context: RequestContext, request: DescribeClusterRequest) -> DescribeClusterResponse:
    expected = CONTROLLERS if context.connection.is_controller_listener else BROKERS
    if context.version == 0 and expected == CONTROLLERS:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "version 0 describes only brokers, and this listener serves controllers")
    if request.endpoint_type != expected:
        raise _wrong_endpoint(request.endpoint_type, expected)
    services = context.services
    image = services.metadata.image
    response = DescribeClusterResponse(endpoint_type=expected, cluster_id=services.cluster_id)
    nodes: list[BrokerRegistration] | list[ControllerRegistration]
    if expected == BROKERS:
        nodes = [node for node in image.cluster.brokers.values() if request.include_fenced_brokers or not node.fenced]
        response.controller_id = alive_broker_id(image, services.node_id)
    else:
        nodes = list(image.cluster.controllers.values())
        response.controller_id = services.quorum.facts().leader_id
    for node in nodes:
        endpoint = node.endpoints.get(context.connection.listener)
        if endpoint is not None:
            described = DescribeClusterBroker(broker_id=node.id, host=endpoint.host, port=endpoint.port)
            if isinstance(node, BrokerRegistration):
                described.rack, described.is_fenced = node.rack, node.fenced
            response.brokers.append(described)
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = authorized_operations(context, ResourceType.CLUSTER)
    return response


def _wrong_endpoint(asked_for: int, expected: int) -> KafkaError:
    names = {BROKERS: "brokers", CONTROLLERS: "controllers"}
    if asked_for not in names:
        return KafkaError(
            ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"there is no endpoint type {asked_for}: 1 is for brokers, 2 for controllers"
        )
    return KafkaError(
        ErrorCode.MISMATCHED_ENDPOINT_TYPE,
        f"this listener serves {names[expected]}, and the request asks for {names[asked_for]}: use the other kind's address",
    )


def refuse(context: RequestContext, request: DescribeClusterRequest, error: KafkaError) -> DescribeClusterResponse:
    return DescribeClusterResponse(error_code=error.code, error_message=str(error))
