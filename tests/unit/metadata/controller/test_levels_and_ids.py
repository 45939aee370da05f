"""The records of feature levels, producer ids and controllers. The refusals are in test_refusals.py."""

import pytest
from tests.support.nodes.controller_cluster import ControllerCluster

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.metadata.controller.controllers import register_controller
from ottla.metadata.controller.features import SAFE_DOWNGRADE, UNSAFE_DOWNGRADE, UPGRADE, update_features
from ottla.metadata.controller.producer_ids import allocate_producer_ids
from ottla.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from ottla.wire.messages.controller_registration import ControllerRegistrationRequest, Feature, Listener
from ottla.wire.messages.metadata_records import ConfigRecord, FeatureLevelRecord
from ottla.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

ELR = "eligible.leader.replicas.version"


def update(cluster: ControllerCluster, *updates: tuple[str, int, int], validate_only: bool = False) -> int:
    request = UpdateFeaturesRequest(
        feature_updates=[
            FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=kind) for feature, level, kind in updates
        ],
        validate_only=validate_only,
    )
    return cluster.apply(update_features(cluster.state, request, 0)).error_code


def test_update_features_writes_the_levels() -> None:
    cluster = ControllerCluster(26)
    assert update(cluster, ("metadata.version", 30, UPGRADE), ("transaction.version", 0, SAFE_DOWNGRADE)) == 0
    assert cluster.state.image.metadata_version == 30
    assert "transaction.version" not in cluster.state.image.features
    assert cluster.log[-2:] == [
        FeatureLevelRecord(name="metadata.version", feature_level=30),
        FeatureLevelRecord(name="transaction.version", feature_level=0),
    ]


def test_validate_only_writes_no_levels() -> None:
    cluster = ControllerCluster(26)
    assert update(cluster, ("metadata.version", 30, UPGRADE), validate_only=True) == 0
    assert cluster.state.image.metadata_version == 26


def test_metadata_version_is_lowered_only_if_no_records_are_lost() -> None:
    cluster = ControllerCluster(29)
    assert update(cluster, ("metadata.version", 22, SAFE_DOWNGRADE)) == ErrorCode.INVALID_UPDATE_VERSION
    assert update(cluster, ("metadata.version", 22, UNSAFE_DOWNGRADE)) == ErrorCode.INVALID_UPDATE_VERSION
    assert update(cluster, ("metadata.version", 24, SAFE_DOWNGRADE)) == 0
    assert cluster.state.image.metadata_version == 24


def test_kraft_version_is_raised_by_the_quorum_once_all_voters_are_known() -> None:
    cluster = ControllerCluster(30)
    state = cluster.state
    request = UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey(feature="kraft.version", max_version_level=1)])
    state.kraft_version, state.kraft_upgrade_refusal = 0, "voter 2 has not told the leader its directory"
    decision = update_features(state, request, 0)
    assert (decision.response.error_code, decision.raises_kraft_version) == (ErrorCode.INVALID_UPDATE_VERSION, False)
    assert "voter 2 has not told" in str(decision.response.error_message)
    state.kraft_upgrade_refusal = None
    decision = update_features(state, request, 0)
    assert (decision.response.error_code, decision.records, decision.raises_kraft_version) == (0, [], True)
    request.validate_only = True
    assert not update_features(state, request, 0).raises_kraft_version
    state.kraft_version = 1
    assert not update_features(state, request, 0).raises_kraft_version, "it has that level"
    assert update(cluster, ("kraft.version", 0, SAFE_DOWNGRADE)) == ErrorCode.INVALID_UPDATE_VERSION


def test_a_level_is_refused_until_its_dependency_is_met() -> None:
    cluster = ControllerCluster(22)
    assert update(cluster, (ELR, 1, UPGRADE)) == ErrorCode.INVALID_UPDATE_VERSION
    assert update(cluster, (ELR, 1, UPGRADE), ("metadata.version", 23, UPGRADE)) == 0
    assert cluster.state.elr_enabled


def test_enabling_elr_leaves_one_min_isr_for_all_brokers() -> None:
    cluster = ControllerCluster(30, features={ELR: 0})
    cluster.append([ConfigRecord(resource_type=4, resource_name="7", name="min.insync.replicas", value="3")])
    assert update(cluster, (ELR, 1, UPGRADE)) == 0
    assert cluster.state.image.configs == {(4, ""): {"min.insync.replicas": "1"}}
    written = len(cluster.log)
    assert update(cluster, (ELR, 1, UPGRADE)) == 0
    assert cluster.log[written:] == [FeatureLevelRecord(name=ELR, feature_level=1)]


def test_every_node_must_support_a_level() -> None:
    cluster = ControllerCluster(29)
    features = [Feature(name="metadata.version", min_supported_version=7, max_supported_version=29)]
    register = ControllerRegistrationRequest(controller_id=2, features=features)
    cluster.apply(register_controller(cluster.state, register, 0))
    assert update(cluster, ("metadata.version", 30, UPGRADE)) == ErrorCode.INVALID_UPDATE_VERSION
    cluster.state.quorum_node_ids = (1, 3)
    assert update(cluster, ("transaction.version", 1, SAFE_DOWNGRADE)) == ErrorCode.INVALID_UPDATE_VERSION


def test_unserved_features_can_only_be_lowered_to_zero() -> None:
    cluster = ControllerCluster(30)
    cluster.append([FeatureLevelRecord(name="share.version", feature_level=1)])
    assert update(cluster, ("share.version", 1, UPGRADE)) == ErrorCode.INVALID_UPDATE_VERSION
    assert update(cluster, ("share.version", 0, SAFE_DOWNGRADE)) == 0
    assert "share.version" not in cluster.state.image.features


def test_blocks_of_producer_ids_follow_each_other() -> None:
    cluster = ControllerCluster()
    epoch = cluster.register(1)
    request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=epoch)
    blocks = [cluster.apply(allocate_producer_ids(cluster.state, request, 0)) for _ in range(3)]
    assert [(block.producer_id_start, block.producer_id_len) for block in blocks] == [(0, 1000), (1000, 1000), (2000, 1000)]
    with pytest.raises(KafkaError) as error:
        allocate_producer_ids(cluster.state, AllocateProducerIdsRequest(broker_id=1, broker_epoch=epoch + 1), 0)
    assert error.value.code == ErrorCode.STALE_BROKER_EPOCH


def test_controllers_register_from_a_metadata_version_on() -> None:
    listeners = [Listener(name="CONTROLLER", host="here", port=9093, security_protocol=0)]
    request = ControllerRegistrationRequest(controller_id=3, listeners=listeners)
    cluster = ControllerCluster(15)
    cluster.apply(register_controller(cluster.state, request, 0))
    assert cluster.state.image.cluster.controllers[3].endpoints["CONTROLLER"].host == "here"
    with pytest.raises(KafkaError) as error:
        register_controller(ControllerCluster(14).state, request, 0)
    assert error.value.code == ErrorCode.UNSUPPORTED_VERSION
