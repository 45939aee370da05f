"""The cluster: its nodes and features, brokers that are gone for good, and this client's id (DescribeCluster, …)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

from ottla import __version__
from ottla.client.admin.acl_types import AclOperation, operations_of
from ottla.client.admin.checks import mapping, member, number, text
from ottla.client.admin.requests import ask_controller_whole, raise_refused, refused, refused_or
from ottla.client.admin.results import Results, results_for
from ottla.client.cluster import Cluster
from ottla.errors import KafkaError, UnsupportedVersionError
from ottla.errors.codes import ErrorCode
from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ottla.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from ottla.wire.messages.unregister_broker import UnregisterBrokerRequest
from ottla.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse

BROKERS, CONTROLLERS = 1, 2
"""Endpoint types of DescribeCluster: which nodes to list."""


class NodeDescription(NamedTuple):
    """A broker, or a controller if the client was given bootstrap.controllers."""

    id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool = False


class ClusterDescription(NamedTuple):
    """The cluster as a node sees it."""

    cluster_id: str
    controller: int | None
    """The node to send changes to. Brokers of Kafka 4 name one of themselves, since they forward to the controller."""
    nodes: dict[int, NodeDescription]
    authorized_operations: frozenset[AclOperation] | None


class FeatureRange(NamedTuple):
    """The lowest and highest level of a feature."""

    lowest: int
    highest: int


class FeatureMetadata(NamedTuple):
    """The features of a cluster: levels in effect since an epoch, and levels that the node which answered supports."""

    finalized: dict[str, FeatureRange]
    finalized_epoch: int | None
    supported: dict[str, FeatureRange]


class UpgradeType(IntEnum):
    """In which direction a feature's level may move. An unsafe downgrade may lose metadata."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(NamedTuple):
    """A feature's level and the direction to it. Level 0 disables the feature."""

    level: int
    upgrade_type: UpgradeType | str = UpgradeType.UPGRADE


async def describe_cluster(
    cluster: Cluster, *, include_fenced_brokers: bool = False, include_authorized_operations: bool = False
) -> ClusterDescription:
    """The nodes of the cluster and its id: brokers by bootstrap.servers, controllers by bootstrap.controllers."""
    request = DescribeClusterRequest(
        include_cluster_authorized_operations=include_authorized_operations,
        endpoint_type=CONTROLLERS if cluster.is_of_controllers else BROKERS,
        include_fenced_brokers=include_fenced_brokers,
    )
    try:
        response: DescribeClusterResponse = await cluster.ask_any(request)
    except UnsupportedVersionError:  # brokers before 2.8
        if include_fenced_brokers or cluster.is_of_controllers:
            raise
        return await _from_metadata(cluster)
    raise_refused(response.error_code, "the cluster cannot be described", response.error_message)
    return ClusterDescription(
        response.cluster_id,
        response.controller_id if response.controller_id >= 0 else None,
        {
            each.broker_id: NodeDescription(each.broker_id, each.host, each.port, each.rack, each.is_fenced)
            for each in sorted(response.brokers, key=lambda each: each.broker_id)
        },
        operations_of(response.cluster_authorized_operations),
    )


async def _from_metadata(cluster: Cluster) -> ClusterDescription:
    response = await cluster.metadata([])
    return ClusterDescription(
        response.cluster_id or "",
        response.controller_id if response.controller_id >= 0 else None,
        {each.node_id: NodeDescription(each.node_id, each.host, each.port, each.rack) for each in response.brokers},
        None,
    )


async def unregister_broker(cluster: Cluster, broker_id: int) -> None:
    """Remove a broker that is gone for good from the cluster's metadata. Partitions keep it as a replica until reassigned.

    Stop the broker first: one that is alive loses its leaders. Ottla's registers again by itself, Apache Kafka's when it is
    restarted.
    """
    number(broker_id, "broker_id")
    await ask_controller_whole(
        cluster, UnregisterBrokerRequest(broker_id=broker_id), f"broker {broker_id} was not unregistered"
    )


async def describe_features(cluster: Cluster, broker_id: int | None = None) -> FeatureMetadata:
    """The features of the cluster, as a broker sees them (None: any)."""
    request = ApiVersionsRequest(client_software_name="ottla", client_software_version=__version__.replace("+", "-"))
    if broker_id is None:
        response: ApiVersionsResponse = await cluster.ask_any(request)
    else:
        response = await cluster.ask_broker(number(broker_id, "broker_id"), request)
    raise_refused(response.error_code, "the features cannot be described")
    return FeatureMetadata(
        {each.name: FeatureRange(each.min_version_level, each.max_version_level) for each in response.finalized_features},
        response.finalized_features_epoch if response.finalized_features_epoch >= 0 else None,
        {each.name: FeatureRange(each.min_version, each.max_version) for each in response.supported_features},
    )


async def update_features(
    cluster: Cluster, updates: Mapping[str, int | FeatureUpdate], *, validate_only: bool = False
) -> Results[str, None]:
    """Change the levels of features: `{"metadata.version": 25}`; downgrades as `FeatureUpdate(24, "safe_downgrade")`.

    Either all updates are made or none. If the controller refuses, every feature has its error.
    """
    mapping(updates, "updates")
    wanted = {text(name, "updates"): _update(name, update) for name, update in updates.items()}
    if not wanted:
        return Results({})
    request = UpdateFeaturesRequest(
        timeout_ms=cluster.settings.request_timeout_ms, feature_updates=list(wanted.values()), validate_only=validate_only
    )

    async def attempt() -> UpdateFeaturesResponse:
        answer: UpdateFeaturesResponse = await cluster.ask_controller(request)
        if answer.error_code == ErrorCode.NOT_CONTROLLER:
            await cluster.metadata([])
            raise refused(answer.error_code, "the features were not updated", answer.error_message)
        return answer

    response = await cluster.retrying(attempt)
    about = "the feature %s was not updated"
    found: dict[str, KafkaError | None] = {
        name: refused_or(response.error_code, about % name, response.error_message, None) for name in wanted
    }
    for each in response.results:  # before v2: a result for each
        if each.error_code:
            found[each.feature] = refused(each.error_code, about % each.feature, each.error_message)
    return results_for(wanted, found)


def _update(name: str, update: int | FeatureUpdate) -> FeatureUpdateKey:
    argument = f"updates[{name!r}]"
    full = update if isinstance(update, FeatureUpdate) else FeatureUpdate(update)
    return FeatureUpdateKey(
        feature=name,
        max_version_level=number(full.level, argument, 0, 2**15 - 1),
        upgrade_type=member(UpgradeType, full.upgrade_type, argument),
    )


async def client_instance_id(cluster: Cluster) -> Uuid:
    """The id that the cluster gives this client for client metrics (KIP-714)."""
    request = GetTelemetrySubscriptionsRequest(client_instance_id=ZERO_UUID)
    response: GetTelemetrySubscriptionsResponse = await cluster.ask_any(request)
    raise_refused(response.error_code, "the cluster gave this client no instance id")
    return response.client_instance_id
