"""Decides on changes to feature levels. Pure.

A request is all or nothing. Every broker and every controller must support a new level; metadata.version can be lowered only if
all stored records stay readable. kraft.version belongs to the quorum, which writes it as a control record: it can be raised
from 0 to 1 once every voter has told the leader its directory, and never be lowered.
"""

from __future__ import annotations

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.metadata.controller.decision import Asker, Decision, UpgradeDecision
from ottla.metadata.controller.state import ControllerState
from ottla.metadata.features import (
    CONTROLLER_REGISTRATION_FROM,
    DEPENDENCIES,
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    METADATA_VERSIONS,
    UNSERVED_FEATURES,
    loses_records,
    metadata_version_name,
)
from ottla.metadata.image.image import ResourceType
from ottla.wire.base import Message
from ottla.wire.messages.metadata_records import ConfigRecord, FeatureLevelRecord, NoOpRecord
from ottla.wire.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
_NEWEST = Asker(2)
_RESULTS_UP_TO = 1
_MIN_ISR = "min.insync.replicas"


def update_features(
    state: ControllerState, request: UpdateFeaturesRequest, now_ms: int, asker: Asker = _NEWEST
) -> Decision[UpdateFeaturesResponse]:
    """Set the levels of a request; or change none, and return the reason."""
    updates = {update.feature: update for update in request.feature_updates}
    proposed = {**state.image.features, METADATA_VERSION: state.image.metadata_version}
    proposed |= {name: update.max_version_level for name, update in updates.items()}
    try:
        records = [each for update in updates.values() for each in _update(state, update, proposed)]
    except KafkaError as error:
        return Decision(UpdateFeaturesResponse(error_code=error.code, error_message=f"no level was changed: {error}"))
    response = UpdateFeaturesResponse(error_message=None)
    if asker.version <= _RESULTS_UP_TO:
        response.results = [UpdatableFeatureResult(feature=name, error_message=None) for name in updates]
    if request.validate_only:
        return Decision(response)
    if (elr := updates.get(ELIGIBLE_LEADER_REPLICAS_VERSION)) is not None and elr.max_version_level > 0:
        records = [*_one_min_isr_for_all(state), *records]
    kraft = updates.get(KRAFT_VERSION)
    raises_kraft_version = kraft is not None and kraft.max_version_level > state.kraft_version
    return (UpgradeDecision if raises_kraft_version else Decision)(response, records)


def _update(state: ControllerState, update: FeatureUpdateKey, proposed: dict[str, int]) -> list[Message]:
    name, level, upgrade_type = update.feature, update.max_version_level, update.upgrade_type
    if upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        raise _refused(name, level, f"the upgrade type {upgrade_type} is unknown")
    current = state.kraft_version if name == KRAFT_VERSION else _finalised(state, name)
    if level < 0:
        raise _refused(name, level, "no level is below 0")
    _check_support(state, name, level)
    if level < current and upgrade_type == UPGRADE:
        raise _refused(name, level, f"it is at {current}: ask for a downgrade, safe or unsafe, to go back")
    if level > current and upgrade_type != UPGRADE:
        raise _refused(name, level, f"it is at {current}: that would be no downgrade")
    if name == KRAFT_VERSION:
        return _kraft_version(state, level)
    if name == METADATA_VERSION:
        _check_metadata_version(current, level, upgrade_type)
    else:
        _check_dependencies(name, level, proposed)
    return [FeatureLevelRecord(name=name, feature_level=level)]


def _finalised(state: ControllerState, name: str) -> int:
    """The currently finalised level."""
    return state.image.metadata_version if name == METADATA_VERSION else state.image.features.get(name, 0)


def _check_support(state: ControllerState, name: str, level: int) -> None:
    """Every node must support the level. A node supports only level 0 of a feature that it does not name."""
    supported = state.settings.supported_features
    if name not in supported and name not in UNSERVED_FEATURES:
        raise _refused(name, level, f"this release knows no such feature, only {', '.join(sorted(supported))}")
    nodes = [("this controller", supported)]
    nodes += [(f"broker {broker.id}", broker.features) for broker in state.image.cluster.brokers.values()]
    controllers = state.image.cluster.controllers
    if state.image.metadata_version >= CONTROLLER_REGISTRATION_FROM:
        others = [each for each in controllers.values() if each.id != state.settings.node_id]
        nodes += [(f"controller {controller.id}", controller.features) for controller in others]
    for who, features in nodes:
        low, high = features.get(name, (0, 0))
        if not low <= level <= high:
            raise _refused(name, level, f"{who} supports levels from {low} to {high}")
    for node_id in state.quorum_node_ids:
        if node_id != state.settings.node_id and node_id not in controllers:
            raise _refused(name, level, f"controller {node_id} has not registered which levels it supports; start it first")


def _check_metadata_version(current: int, level: int, upgrade_type: int) -> None:
    if level not in METADATA_VERSIONS:
        raise _refused(METADATA_VERSION, level, "there is no such level")
    if level < current and loses_records(current, level):
        force = "; there is no way to force it" if upgrade_type == UNSAFE_DOWNGRADE else ""
        raise _refused(
            METADATA_VERSION,
            level,
            f"what {metadata_version_name(current)} has stored could not be read under {metadata_version_name(level)}{force}",
        )


def _check_dependencies(name: str, level: int, proposed: dict[str, int]) -> None:
    for other, needed in DEPENDENCIES.get((name, level), {}).items():
        if proposed.get(other, 0) < needed:
            raise _refused(name, level, f"it needs {other} at {needed} or above: raise that first, or in the same request")


def _kraft_version(state: ControllerState, level: int) -> list[Message]:
    if level == state.kraft_version:
        return [NoOpRecord()]
    if level < state.kraft_version:
        raise _refused(KRAFT_VERSION, level, f"it is at {state.kraft_version}, and voters in the log cannot be taken back")
    if state.kraft_upgrade_refusal is not None:
        raise _refused(KRAFT_VERSION, level, state.kraft_upgrade_refusal)
    return []


def _one_min_isr_for_all(state: ControllerState) -> list[Message]:
    """Eligible leader replicas need one min.insync.replicas in the cluster: set the default, remove those of single brokers."""
    broker = int(ResourceType.BROKER)
    records: list[Message] = []
    if _MIN_ISR not in state.image.configs.get((broker, ""), {}):
        value = str(state.settings.topic_defaults.min_insync_replicas)
        records.append(ConfigRecord(resource_type=broker, resource_name="", name=_MIN_ISR, value=value))
    for (resource_type, name), settings in state.image.configs.items():
        if resource_type == broker and name and _MIN_ISR in settings:
            records.append(ConfigRecord(resource_type=broker, resource_name=name, name=_MIN_ISR, value=None))
    return records


def _refused(name: str, level: int, why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_UPDATE_VERSION, f"{name} cannot be set to {level}: {why}")
