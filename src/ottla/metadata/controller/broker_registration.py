"""Decides on BrokerRegistration: checks identity, directories and features, and writes the registration. Pure."""

from __future__ import annotations

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid, uuid_text
from ottla.metadata.controller.decision import Decision
from ottla.metadata.controller.leadership import leadership_changes, partitions_where
from ottla.metadata.controller.state import ControllerState
from ottla.metadata.features import DIRECTORIES_FROM, KRAFT_VERSION, METADATA_VERSION, UNSERVED_FEATURES
from ottla.metadata.image.cluster import BrokerRegistration
from ottla.wire.base import Message
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from ottla.wire.messages.metadata_records import BrokerEndpoint, BrokerFeature, RegisterBrokerRecord

_RESERVED_DIRECTORY_IDS = 100


def register_broker(
    state: ControllerState, request: BrokerRegistrationRequest, now_ms: int
) -> Decision[BrokerRegistrationResponse]:
    """Register a broker, fenced; or update the registration of the same incarnation."""
    existing = state.image.cluster.brokers.get(request.broker_id)
    _check_identity(state, request, existing, now_ms)
    _check_directories(state, request)
    _check_features(state, request)
    record = RegisterBrokerRecord(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        end_points=[
            BrokerEndpoint(name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol)
            for each in request.listeners
        ],
        features=[
            BrokerFeature(
                name=each.name,
                min_supported_version=each.min_supported_version,
                max_supported_version=each.max_supported_version,
            )
            for each in request.features
        ],
        rack=request.rack,
        log_dirs=list(request.log_dirs) if state.image.metadata_version >= DIRECTORIES_FROM else [],
    )
    records: list[Message] = []
    if existing is not None and existing.incarnation_id == request.incarnation_id:
        record.fenced, record.in_controlled_shutdown = existing.fenced, existing.in_controlled_shutdown
        record.broker_epoch = existing.epoch
    else:
        records += _clean_up_after(state, request, existing)
        record.broker_epoch = state.next_offset
        state.sessions.forget(request.broker_id)
    return Decision(BrokerRegistrationResponse(broker_epoch=record.broker_epoch), [*records, record])


def _check_identity(
    state: ControllerState, request: BrokerRegistrationRequest, existing: BrokerRegistration | None, now_ms: int
) -> None:
    if request.cluster_id != state.settings.cluster_id:
        raise KafkaError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"broker {request.broker_id} belongs to cluster {request.cluster_id}, and this is cluster "
            f"{state.settings.cluster_id}: check its log directories and its controller.quorum settings",
        )
    if request.is_migrating_zk_broker:
        raise KafkaError(
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            f"broker {request.broker_id} still uses ZooKeeper: migrate it with Kafka 3.9 first",
        )
    if (
        existing is not None
        and existing.incarnation_id != request.incarnation_id
        and state.sessions.is_live(existing.id, existing.epoch, now_ms)
    ):
        raise KafkaError(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            f"another broker with the id {existing.id} is running. If it is this one before a restart, its session ends within "
            f"{state.settings.session_timeout_ms} ms; otherwise give one of the two another node.id",
        )


def _check_directories(state: ControllerState, request: BrokerRegistrationRequest) -> None:
    if state.image.metadata_version < DIRECTORIES_FROM:
        return
    directories = request.log_dirs
    if not directories:
        raise _refused(request, "it names no log directory")
    if any(int.from_bytes(directory, "big") < _RESERVED_DIRECTORY_IDS for directory in directories):
        raise _refused(request, "one of its log directories has a reserved id")
    if len(set(directories)) != len(directories):
        raise _refused(request, "it names a log directory twice")
    owners: dict[Uuid, int] = {
        directory: broker.id
        for broker in state.image.cluster.brokers.values()
        if broker.id != request.broker_id
        for directory in broker.directories
    }
    for directory in directories:
        if directory in owners:
            raise _refused(
                request, f"its log directory {uuid_text(directory)} is that of broker {owners[directory]}: was it copied?"
            )


def _check_features(state: ControllerState, request: BrokerRegistrationRequest) -> None:
    """The broker must support every finalised level. It supports only level 0 of a feature that it does not name."""
    supported = {each.name: (each.min_supported_version, each.max_supported_version) for each in request.features}
    if METADATA_VERSION not in supported:
        raise _refused(request, f"it does not say which levels of {METADATA_VERSION} it supports")
    finalised = {**state.image.features, METADATA_VERSION: state.image.metadata_version, KRAFT_VERSION: state.kraft_version}
    for name in [*supported, *(name for name in finalised if name not in supported)]:
        level = finalised.get(name, 0)
        if name not in supported and level <= UNSERVED_FEATURES.get(name, -1):
            continue  # finalised by Apache Kafka; a broker that does not serve the feature loses nothing
        low, high = supported.get(name, (0, 0))
        if not low <= level <= high:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"broker {request.broker_id} supports {name} from {low} to {high}, and the cluster has finalised {level}: "
                "upgrade the broker, or downgrade the feature",
            )


def _clean_up_after(
    state: ControllerState, request: BrokerRegistrationRequest, existing: BrokerRegistration | None
) -> list[Message]:
    """Partition changes after the broker's previous run. Unless that shut down cleanly, its replicas may have lost records."""
    broker_id = request.broker_id
    is_clean = existing is not None and request.previous_broker_epoch == existing.epoch
    if state.elr_enabled and not is_clean:
        touched = partitions_where(state, lambda partition: broker_id in partition.isr or broker_id in partition.elr)
        return [*leadership_changes(state, touched, unclean=broker_id)]
    touched = partitions_where(state, lambda partition: broker_id in partition.isr)
    return [*leadership_changes(state, touched, leaving=broker_id)]


def _refused(request: BrokerRegistrationRequest, why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REGISTRATION, f"broker {request.broker_id} cannot register: {why}")
