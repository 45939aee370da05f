"""The cluster's nodes and features."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.nodes.fake_node import FakeNode, all_versions
from tests.support.servers.kafka_server import KafkaServer

from ottla.client.admin.acl_types import AclOperation
from ottla.client.admin.cluster_state import FeatureUpdate
from ottla.errors import BrokerIdNotRegisteredError, InvalidUpdateVersionError, UnsupportedVersionError
from ottla.ids import Uuid
from ottla.wire.apis import ApiKey
from ottla.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from ottla.wire.messages.update_features import UpdatableFeatureResult, UpdateFeaturesRequest, UpdateFeaturesResponse


def test_cluster_is_described(admin: Any, server: KafkaServer) -> None:
    described = admin.describe_cluster()
    (broker,) = described.nodes.values()
    assert (broker.id, broker.host, broker.port, broker.is_fenced) == (1, "127.0.0.1", server.port, False)
    assert described.controller == 1
    assert len(described.cluster_id) == 22
    assert described.authorized_operations is None
    whole = admin.describe_cluster(include_fenced_brokers=True, include_authorized_operations=True)
    assert whole.nodes == described.nodes
    assert {AclOperation.CREATE, AclOperation.ALTER} <= whole.authorized_operations


def test_controllers_are_described_and_take_changes(
    open_admin: Callable[..., Any], server: KafkaServer, name: str, admin: Any, eventually: Callable[..., None]
) -> None:
    direct = open_admin(bootstrap_controllers=server.controller_bootstrap)
    described = direct.describe_cluster()
    (controller,) = described.nodes.values()
    assert (controller.id, controller.port, described.controller) == (1, server.controller_port, 1)
    assert described.cluster_id == admin.describe_cluster().cluster_id
    direct.create_topics({name: 2}).raise_first()
    eventually(lambda: name in admin.list_topics(), True)
    assert direct.describe_metadata_quorum().leader_id == 1
    assert direct.describe_features().finalized["metadata.version"].highest > 0


def test_broker_that_is_not_registered_cannot_be_unregistered(admin: Any, needs: Callable[..., None]) -> None:
    needs(ApiKey.UNREGISTER_BROKER)
    with pytest.raises(BrokerIdNotRegisteredError, match="broker 77 was not unregistered"):
        admin.unregister_broker(77)


def test_features_are_described_and_updated(admin: Any) -> None:
    features = admin.describe_features()
    level = features.finalized["metadata.version"].highest
    assert features.supported["metadata.version"].highest >= level > 0
    assert features.finalized_epoch >= 0
    assert admin.describe_features(1).finalized == features.finalized
    admin.update_features({"metadata.version": level}, validate_only=True).raise_first()
    results = admin.update_features({"metadata.version": FeatureUpdate(999)})
    assert isinstance(results.errors["metadata.version"], InvalidUpdateVersionError)
    assert admin.describe_features().finalized == features.finalized


def test_older_controller_answers_for_each_feature(scripted: Any, node: FakeNode) -> None:
    node.served = all_versions(UpdateFeatures=(0, 1))
    node.handlers[UpdateFeaturesRequest] = lambda request, version: UpdateFeaturesResponse(
        results=[UpdatableFeatureResult(feature="a"), UpdatableFeatureResult(feature="b", error_code=95)]
    )
    results = scripted.update_features({"a": 1, "b": FeatureUpdate(0, "unsafe_downgrade")})
    assert results["a"] is None
    assert isinstance(results.errors["b"], InvalidUpdateVersionError)


def test_older_broker_is_asked_for_metadata(scripted: Any, node: FakeNode) -> None:
    node.served = all_versions(DescribeCluster=None)
    described = scripted.describe_cluster()
    assert (list(described.nodes), described.controller) == ([1], 1)
    with pytest.raises(UnsupportedVersionError):
        scripted.describe_cluster(include_fenced_brokers=True)


def test_client_instance_id_comes_from_brokers_with_client_metrics(admin: Any, served: frozenset[int]) -> None:
    if ApiKey.GET_TELEMETRY_SUBSCRIPTIONS in served:
        assert len(admin.client_instance_id()) == 16
    else:  # Apache Kafka serves it only with a plugin that receives client metrics
        with pytest.raises(UnsupportedVersionError, match="GetTelemetrySubscriptions"):
            admin.client_instance_id()


def test_client_instance_id_is_what_the_broker_answers(scripted: Any, node: FakeNode) -> None:
    answer = GetTelemetrySubscriptionsResponse(client_instance_id=Uuid(b"this-client's-id"))
    node.handlers[GetTelemetrySubscriptionsRequest] = lambda request, version: answer
    assert scripted.client_instance_id() == b"this-client's-id"


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda admin: admin.unregister_broker(-1), ValueError, "broker_id is -1"),
        (lambda admin: admin.describe_features("1"), TypeError, "broker_id must be a whole number"),
        (lambda admin: admin.update_features({"a": -1}), ValueError, r"updates\['a'\] is -1"),
        (lambda admin: admin.update_features({"a": FeatureUpdate(1, "up")}), ValueError, r"updates\['a'\] is 'up'"),
    ],
)
def test_bad_argument_is_named(scripted: Any, call: Callable[[Any], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call(scripted)
