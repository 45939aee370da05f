"""Decides on the registration of brokers, heartbeats, fencing, controlled shutdown and unregistration. Pure.

A registration is checked for identity, directories and features. A broker registers fenced. It is unfenced once it has read
the metadata log up to its registration, and may then lead partitions without a leader. A broker without a heartbeat for a
session is fenced. A broker that wants to shut down first hands over the partitions that it leads. Each decision also changes
the leaders and in-sync replicas of the affected partitions, in one write.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid, uuid_text
from ottla.metadata.controller.decision import Decision
from ottla.metadata.controller.leadership import (
    leadership_changes,
    leads_any,
    partitions_in_sync_on,
    partitions_where,
    without_leader,
)
from ottla.metadata.controller.sessions import NOT_SHUTTING_DOWN
from ottla.metadata.controller.state import ControllerState
from ottla.metadata.features import (
    CORDONED_DIRECTORIES_FROM,
    DIRECTORIES_FROM,
    KRAFT_VERSION,
    METADATA_VERSION,
    UNSERVED_FEATURES,
)
from ottla.metadata.image.cluster import BrokerRegistration
from ottla.wire.base import Message
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from ottla.wire.messages.metadata_records import (
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from ottla.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse

__all__ = ["FencingCheck", "broker_heartbeat", "fence_silent_brokers", "register_broker", "unregister_broker"]

_FENCE, _UNFENCE = 1, -1
_NEVER = 2**63 - 1


class FencingCheck(NamedTuple):
    """The brokers fenced by this decision, and when to check again."""

    fenced: tuple[int, ...]
    next_check_ms: int | None
    """None: no broker has a session that could expire."""


def check_broker_epoch(state: ControllerState, broker_id: int, broker_epoch: int) -> BrokerRegistration:
    """The broker, if `broker_epoch` is that of its newest registration; STALE_BROKER_EPOCH if not."""
    broker = state.image.cluster.brokers.get(broker_id)
    if broker is None:
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH, f"broker {broker_id} is not registered: it must register first")
    if broker.epoch != broker_epoch:
        raise KafkaError(
            ErrorCode.STALE_BROKER_EPOCH,
            f"broker {broker_id} is registered with epoch {broker.epoch}, not {broker_epoch}: it must register again",
        )
    return broker


def broker_heartbeat(state: ControllerState, request: BrokerHeartbeatRequest, now_ms: int) -> Decision[BrokerHeartbeatResponse]:
    """A broker's heartbeat: unfence it, fence it, advance its shutdown, or only extend its session."""
    broker = check_broker_epoch(state, request.broker_id, request.broker_epoch)
    session = state.sessions.touch(broker.id, broker.epoch, now_ms)
    session.metadata_offset = request.current_metadata_offset
    session.offline_directories = frozenset(request.offline_log_dirs)
    is_caught_up = request.current_metadata_offset >= state.registration_offset(broker.id)
    lost = _newly_lost(state, broker, request)
    response = BrokerHeartbeatResponse(is_caught_up=is_caught_up, is_fenced=broker.fenced)
    records: list[Message] = []
    if session.shutdown_offset != NOT_SHUTTING_DOWN:
        if not leads_any(state, broker.id) and session.shutdown_offset <= _lowest_active_offset(state):
            _shut_down_now(state, broker, response, records)
    elif broker.fenced:
        if request.want_shut_down:
            response.should_shut_down = True
            state.sessions.forget(broker.id)
        elif not request.want_fence and is_caught_up and not broker.in_controlled_shutdown and not lost:
            # A broker in controlled shutdown must register again: unfenced now, it would be elected but not be active.
            # One that reports a failed directory is unfenced by its next heartbeat: in this decision the image still has the
            # directory online, and the broker would be elected for partitions in it.
            records += _unfence(state, broker)
            response.is_fenced = False
    elif request.want_fence:
        if request.want_shut_down:
            _shut_down_now(state, broker, response, records)
        else:
            records += fence(state, broker)
            response.is_fenced = True
    elif request.want_shut_down:
        if leads_any(state, broker.id):
            records += _begin_shutdown(state, broker)
            session.shutdown_offset = state.next_offset + len(records) - 1
        else:
            _shut_down_now(state, broker, response, records)
    records += _directory_changes(state, broker, request, lost)
    return Decision(response, records)


def fence(state: ControllerState, broker: BrokerRegistration) -> list[Message]:
    """Fence a broker: it leaves every ISR, and other replicas lead its partitions."""
    changes = leadership_changes(state, partitions_in_sync_on(state, broker.id), leaving=broker.id)
    return [*changes, BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=_FENCE)]


def fence_silent_brokers(state: ControllerState, now_ms: int) -> Decision[FencingCheck]:
    """Fence one broker whose session has expired, and return when to check again: at once if there may be more.

    One at a time, so that the next decision sees the first broker fenced.
    """
    next_check_ms: int | None = None
    for broker in state.image.cluster.brokers.values():
        if broker.fenced:
            continue
        deadline_ms = state.sessions.deadline_ms(broker.id, broker.epoch, now_ms - 1)
        if deadline_ms < now_ms:
            return Decision(FencingCheck((broker.id,), now_ms), fence(state, broker))
        next_check_ms = deadline_ms + 1 if next_check_ms is None else min(next_check_ms, deadline_ms + 1)
    return Decision(FencingCheck((), next_check_ms))


def unregister_broker(
    state: ControllerState, request: UnregisterBrokerRequest, now_ms: int
) -> Decision[UnregisterBrokerResponse]:
    """Unregister a broker. Its replicas stay in their partitions' replica lists, but leave the ISR and lead nothing."""
    broker = state.image.cluster.brokers.get(request.broker_id)
    if broker is None:
        raise KafkaError(
            ErrorCode.BROKER_ID_NOT_REGISTERED, f"broker {request.broker_id} is not registered, so there is nothing to forget"
        )
    touched = partitions_where(state, lambda partition: broker.id in partition.isr or broker.id in partition.elr)
    changes = leadership_changes(state, touched, leaving=broker.id)
    record = UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch)
    return Decision(UnregisterBrokerResponse(error_message=None), [*changes, record])


def _unfence(state: ControllerState, broker: BrokerRegistration) -> list[Message]:
    record = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=_UNFENCE)
    return [record, *leadership_changes(state, partitions_where(state, without_leader), joining=broker.id)]


def _begin_shutdown(state: ControllerState, broker: BrokerRegistration) -> list[Message]:
    records: list[Message] = []
    if not broker.in_controlled_shutdown:
        records.append(BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, in_controlled_shutdown=1))
    return [*records, *leadership_changes(state, partitions_in_sync_on(state, broker.id), leaving=broker.id)]


def _shut_down_now(
    state: ControllerState, broker: BrokerRegistration, response: BrokerHeartbeatResponse, records: list[Message]
) -> None:
    records += fence(state, broker)
    state.sessions.forget(broker.id)  # so that its next run can register without waiting for the session to expire
    response.is_fenced = response.should_shut_down = True


def _lowest_active_offset(state: ControllerState) -> int:
    """The metadata offset that every remaining broker has read. A broker may stop once they all know its new leaders."""
    offsets = []
    for broker in state.image.cluster.brokers.values():
        session = state.sessions.get(broker.id)
        if not broker.fenced and (session is None or session.shutdown_offset == NOT_SHUTTING_DOWN):
            offsets.append(-1 if session is None else session.metadata_offset)
    return min(offsets, default=_NEVER)


def _newly_lost(state: ControllerState, broker: BrokerRegistration, request: BrokerHeartbeatRequest) -> list[Uuid]:
    """The directories that went offline since the last report."""
    if state.image.metadata_version < DIRECTORIES_FROM:
        return []
    return [directory for directory in broker.directories if directory in request.offline_log_dirs]


def _directory_changes(
    state: ControllerState, broker: BrokerRegistration, request: BrokerHeartbeatRequest, lost: Sequence[Uuid]
) -> list[Message]:
    """Records for directories that went offline since the last report (`lost`), and for changed cordoned ones."""
    records: list[Message] = []
    if lost:
        touched = partitions_where(state, lambda partition: any(directory in lost for directory in partition.directories))
        records += leadership_changes(state, touched, leaving=broker.id)
        left = [directory for directory in broker.directories if directory not in lost]
        if left:  # a broker that has lost its last directory stops, and is fenced when its session expires
            records.append(BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, log_dirs=left))
    cordoned = request.cordoned_log_dirs
    if cordoned is None or state.image.metadata_version < CORDONED_DIRECTORIES_FROM:
        return records
    if broker.cordoned_directories is None or set(cordoned) != set(broker.cordoned_directories):
        records.append(
            BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, cordoned_log_dirs=list(cordoned))
        )
    return records


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
