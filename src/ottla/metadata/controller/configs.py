"""Decides on changes to settings of topics, brokers, groups and client metrics. Pure.

Each resource of a request succeeds or fails on its own. A broker checks settings that concern its own machine, such as
listeners, before it forwards them (`broker/handlers`): the controller cannot know another machine's ports.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Final

from ottla.config.broker_keys import BROKER_KEYS
from ottla.config.client_metrics_keys import validate_client_metrics_settings
from ottla.config.group_keys import GROUP_KEYS, validate_group_settings
from ottla.config.keys import ConfigTable
from ottla.config.topic import validate_topic_settings
from ottla.config.topic_keys import TOPIC_KEYS
from ottla.config.values import ConfigType, InvalidConfig, Value, format_value
from ottla.errors import KafkaError, drop_frames
from ottla.errors.codes import ErrorCode
from ottla.ids import topic_name_fault
from ottla.metadata.controller.decision import Decision
from ottla.metadata.controller.leadership import partitions_where, without_leader
from ottla.metadata.controller.new_partitions import RECORDS_PER_REQUEST_MAX
from ottla.metadata.controller.state import ControllerState, replayed
from ottla.metadata.controller.topic_settings import effective_min_isr, effective_setting
from ottla.metadata.image.image import ConfigResource, ResourceType
from ottla.metadata.image.topics import PartitionState
from ottla.wire.base import Message
from ottla.wire.messages.alter_configs import AlterConfigsRequest
from ottla.wire.messages.incremental_alter_configs import AlterableConfig, IncrementalAlterConfigsRequest
from ottla.wire.messages.metadata_records import ClearElrRecord, ConfigRecord, PartitionChangeRecord

Outcome = Mapping[ConfigResource, KafkaError | None]
"""Resource → the error that refused it; None if it was changed."""

SET: Final = 0
DELETE: Final = 1
APPEND: Final = 2
SUBTRACT: Final = 3

_MIN_ISR = "min.insync.replicas"
_VALUE_BYTES_MAX = 2**15 - 1
_LIST_TABLES: dict[int, ConfigTable] = {
    ResourceType.TOPIC: TOPIC_KEYS,
    ResourceType.BROKER: BROKER_KEYS,
    ResourceType.GROUP: GROUP_KEYS,
}
"""Resource type → the settings whose lists can be appended to and subtracted from."""


def incremental_alter_configs(
    state: ControllerState, request: IncrementalAlterConfigsRequest, now_ms: int
) -> Decision[Outcome]:
    """Set, remove, append to and subtract from single settings."""
    changes: dict[ConfigResource, dict[str, str | None] | KafkaError] = {}
    for resource in request.resources:
        key = (resource.resource_type, resource.resource_name)
        try:
            changes[key] = incremental_change(key, state.image.configs.get(key, {}), resource.configs)
        except KafkaError as error:
            changes[key] = drop_frames(error)
    return _decide(state, changes, request.validate_only)


def alter_configs(state: ControllerState, request: AlterConfigsRequest, now_ms: int) -> Decision[Outcome]:
    """Replace all settings of each resource: what the request does not name is removed."""
    changes: dict[ConfigResource, dict[str, str | None] | KafkaError] = {}
    for resource in request.resources:
        key = (resource.resource_type, resource.resource_name)
        change: dict[str, str | None] = {config.name: config.value for config in resource.configs}
        for name in state.image.configs.get(key, {}):
            change.setdefault(name, None)
        changes[key] = change
    return _decide(state, changes, request.validate_only)


def incremental_change(
    resource: ConfigResource, current: Mapping[str, str], operations: Sequence[AlterableConfig]
) -> dict[str, str | None]:
    """The new values of the settings that `operations` name; None: removed. INVALID_CONFIG for a list operation on no list."""
    change: dict[str, str | None] = {}
    for each in operations:
        if each.config_operation == SET:
            change[each.name] = each.value
        elif each.config_operation == DELETE:
            change[each.name] = None
        elif each.config_operation in (APPEND, SUBTRACT):
            change[each.name] = _changed_list(resource, current, each)
        else:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{each.name}: there is no operation {each.config_operation}")
    return change


def _changed_list(resource: ConfigResource, current: Mapping[str, str], operation: AlterableConfig) -> str:
    table = _LIST_TABLES.get(resource[0])
    key = None if table is None else table.get(operation.name)
    if key is None or key.type is not ConfigType.LIST:
        word = "appended to" if operation.config_operation == APPEND else "subtracted from"
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"{operation.name} cannot be {word}: it is no list")
    text = current.get(operation.name, format_value(key.default) or "")
    parts = [part for part in text.split(",") if part]
    for part in (operation.value or "").split(","):
        if operation.config_operation == APPEND:
            if part not in parts:
                parts.append(part)
        elif part in parts:
            parts.remove(part)
    return ",".join(parts)


def _decide(
    state: ControllerState, changes: Mapping[ConfigResource, dict[str, str | None] | KafkaError], validate_only: bool
) -> Decision[Outcome]:
    if len(changes) > RECORDS_PER_REQUEST_MAX:  # checked first: checking each resource blocks the event loop
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"the request is about {len(changes)} resources, and {RECORDS_PER_REQUEST_MAX} is the most: split it",
        )
    outcome: dict[ConfigResource, KafkaError | None] = {}
    records: list[Message] = []
    for resource, change in changes.items():
        if isinstance(change, KafkaError):
            outcome[resource] = change
            continue
        try:
            records += _change_resource(state, resource, change)
        except KafkaError as error:
            outcome[resource] = drop_frames(error)
        except InvalidConfig as invalid:
            outcome[resource] = KafkaError(ErrorCode.INVALID_CONFIG, str(invalid))
        else:
            outcome[resource] = None
    cleared = _cleared_elrs(records) if state.elr_enabled else []
    if (count := len(records) + len(cleared)) > RECORDS_PER_REQUEST_MAX:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"the request would write {count} records at once, and {RECORDS_PER_REQUEST_MAX} is the most: split it",
        )
    if validate_only:
        return Decision(outcome)
    if cleared:  # what is kept does not count above: no split of the request would make it less
        records += [*cleared, *_kept_elrs(state, records, {record.topic_name for record in cleared})]
    return Decision(outcome, records)


def _change_resource(state: ControllerState, resource: ConfigResource, change: Mapping[str, str | None]) -> list[Message]:
    """The records of the change; `KafkaError` or `InvalidConfig` if it is refused."""
    type_, name = resource
    current = state.image.configs.get(resource, {})
    records: list[Message] = []
    after = dict(current)
    for setting, value in change.items():
        # An unchanged broker setting is written too: the record makes the broker read the files again that it names.
        if value != current.get(setting) or type_ == ResourceType.BROKER:
            _check_value(state, resource, setting, value)
            records.append(ConfigRecord(resource_type=type_, resource_name=name, name=setting, value=value))
        if value is None:
            after.pop(setting, None)
        else:
            after[setting] = value
    _check_settings(state, resource, after)
    _check_existence(state, resource)
    return records


def _check_value(state: ControllerState, resource: ConfigResource, setting: str, value: str | None) -> None:
    if value is not None and len(value) > _VALUE_BYTES_MAX:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, f"{setting} would be {len(value)} characters long, and {_VALUE_BYTES_MAX} is the most"
        )
    if setting == _MIN_ISR and resource[0] == ResourceType.BROKER and state.elr_enabled:
        # Which replicas are eligible must not depend on the node that computes it: with ELR the cluster has one value.
        if resource[1]:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG, f"{_MIN_ISR} cannot be set for one broker while ELR is on: set it for all brokers"
            )
        if value is None:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"{_MIN_ISR} cannot be removed for all brokers while ELR is on: set it")


def _check_settings(state: ControllerState, resource: ConfigResource, settings: Mapping[str, str]) -> None:
    type_, name = resource
    if type_ == ResourceType.TOPIC:
        _check_topic(state, name, settings)
    elif type_ == ResourceType.BROKER:
        if name and not (name.isascii() and name.isdigit()):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{name!r} is no broker id: it must be a whole number from 0 on")
    elif type_ == ResourceType.GROUP:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "settings can be changed only of one group at a time: name it")
        validate_group_settings(settings, lambda setting: _broker_value(state, setting))
    elif type_ == ResourceType.CLIENT_METRICS:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "a client metrics subscription must have a name")
        validate_client_metrics_settings(settings)
    else:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"there is no resource type {type_} with settings that could be changed")


def _check_topic(state: ControllerState, name: str, settings: Mapping[str, str]) -> None:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "settings can be changed only of one topic at a time: name it")
    if (fault := topic_name_fault(name)) is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
    defaults = state.settings.topic_defaults
    try:
        lags = ("min.compaction.lag.ms", "max.compaction.lag.ms")
        defaults = defaults.with_settings({lag: effective_setting(state, lag, {}).value or "0" for lag in lags})
    except InvalidConfig:
        pass  # an invalid stored value, written by another release; brokers ignore it too
    validate_topic_settings(settings, defaults)


def _check_existence(state: ControllerState, resource: ConfigResource) -> None:
    type_, name = resource
    if type_ == ResourceType.TOPIC and name not in state.image.topics.by_name:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
    if type_ == ResourceType.BROKER and name:
        cluster, node_id = state.image.cluster, int(name)
        if node_id not in cluster.brokers and node_id not in cluster.controllers:
            raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"there is no broker or controller {name} in the cluster")


def _broker_value(state: ControllerState, name: str) -> Value:
    """The effective value of a broker setting on this node, from dynamic settings, its file or the default."""
    key, configs = BROKER_KEYS[name], state.image.configs
    for layer in (
        configs.get((int(ResourceType.BROKER), str(state.settings.node_id)), {}),
        configs.get((int(ResourceType.BROKER), ""), {}),
        state.settings.static,
    ):
        if name in layer:
            try:
                return key.parse(layer[name])
            except InvalidConfig:
                continue  # an invalid stored value, written by another release; brokers ignore it too
    return key.default


def _cleared_elrs(records: Sequence[Message]) -> list[ClearElrRecord]:
    """Records that clear the eligible leader replicas of the topics whose min.insync.replicas changes."""
    cleared: list[ClearElrRecord] = []
    for record in records:
        if isinstance(record, ConfigRecord) and record.name == _MIN_ISR:
            of_topic = record.resource_type == ResourceType.TOPIC
            cleared.append(ClearElrRecord(topic_name=record.resource_name) if of_topic else ClearElrRecord())
    return cleared


def _kept_elrs(state: ControllerState, changes: Sequence[Message], topic_names: Set[str]) -> list[Message]:
    """Records that give partitions without a leader their eligible leader replicas back, after these were cleared.

    Nothing is committed without a leader, so they still hold all committed records; and without them nobody could ever lead.
    `topic_names` are the topics whose replicas are cleared; "" means all.
    """
    image = replayed(state.image, changes, state.next_offset, 0, 0)
    after = ControllerState(state.settings, state.randomness, image)
    kept: list[Message] = []
    topic, min_isr = None, 1
    for which in partitions_where(state, lambda each: without_leader(each) and bool(each.elr or each.last_known_elr)):
        if "" not in topic_names and which.topic.name not in topic_names:
            continue
        if which.topic is not topic:
            topic, min_isr = which.topic, effective_min_isr(after, which.topic)
        kept.append(
            PartitionChangeRecord(
                topic_id=topic.id,
                partition_id=which.number,
                eligible_leader_replicas=_still_eligible(which.state, min_isr),
                last_known_elr=list(which.state.last_known_elr),
            )
        )
    return kept


def _still_eligible(partition: PartitionState, min_isr: int) -> list[int]:
    """The eligible leader replicas that may stay eligible under a new min.insync.replicas.

    If one replica in sync is enough to commit, only one may: it will commit alone when it leads, and others that are still
    eligible then would lack records. The last known leader is preferred.
    """
    if min_isr > 1:
        return list(partition.elr)
    return [replica for replica in (*partition.last_known_elr, *partition.replicas) if replica in partition.elr][:1]
