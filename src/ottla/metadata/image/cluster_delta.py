"""ClusterDelta: replays records about brokers and controllers onto an image. Pure; used by one owner at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from ottla.errors import BrokenInvariant
from ottla.metadata.image.cluster import BrokerRegistration, ClusterImage, ControllerRegistration, Endpoint
from ottla.metadata.image.copy_on_write import CopyOnWriteMap
from ottla.wire.messages.metadata_records import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)

_FENCING = {-1: False, 0: None, 1: True}
"""The field `fenced` of a change record → the new value; None for no change."""
_SHUTTING_DOWN = {0: None, 1: True}


class ClusterDelta:
    """The brokers and controllers of `base`, with the replayed records applied."""

    def __init__(self, base: ClusterImage) -> None:
        self._base = base
        self._brokers: CopyOnWriteMap[int, BrokerRegistration] = CopyOnWriteMap(base.brokers)
        self._controllers: CopyOnWriteMap[int, ControllerRegistration] = CopyOnWriteMap(base.controllers)
        self.changed_brokers: set[int] = set()

    def finish(self) -> ClusterImage:
        if self._brokers.now is self._base.brokers and self._controllers.now is self._base.controllers:
            return self._base
        return ClusterImage(self._brokers.now, self._controllers.now)

    def replay_broker(self, record: RegisterBrokerRecord) -> None:
        cordoned = record.cordoned_log_dirs
        self._put(
            BrokerRegistration(
                id=record.broker_id,
                epoch=record.broker_epoch,
                incarnation_id=record.incarnation_id,
                endpoints=_endpoints(record.end_points),
                features=_features(record.features),
                rack=record.rack,
                fenced=record.fenced,
                in_controlled_shutdown=record.in_controlled_shutdown,
                directories=tuple(sorted(record.log_dirs)),
                cordoned_directories=None if cordoned is None else tuple(cordoned),
                is_migrating_zk_broker=record.is_migrating_zk_broker,
            )
        )

    def replay_unregistration(self, record: UnregisterBrokerRecord) -> None:
        self._broker(record.broker_id, record.broker_epoch)
        del self._brokers.edit()[record.broker_id]
        self.changed_brokers.add(record.broker_id)

    def replay_fencing(self, record: FenceBrokerRecord | UnfenceBrokerRecord) -> None:
        self._put(self._broker(record.id, record.epoch)._replace(fenced=isinstance(record, FenceBrokerRecord)))

    def replay_broker_change(self, record: BrokerRegistrationChangeRecord) -> None:
        broker = self._broker(record.broker_id, record.broker_epoch)
        if record.fenced not in _FENCING or record.in_controlled_shutdown not in _SHUTTING_DOWN:
            raise BrokenInvariant(f"the metadata log changes broker {record.broker_id} in a way unknown here: {record!r}")
        fenced, shutting_down = _FENCING[record.fenced], _SHUTTING_DOWN[record.in_controlled_shutdown]
        cordoned = record.cordoned_log_dirs
        self._put(
            broker._replace(
                fenced=broker.fenced if fenced is None else fenced,
                in_controlled_shutdown=broker.in_controlled_shutdown if shutting_down is None else shutting_down,
                directories=tuple(sorted(record.log_dirs)) if record.log_dirs else broker.directories,
                cordoned_directories=broker.cordoned_directories if cordoned is None else tuple(cordoned),
            )
        )

    def replay_controller(self, record: RegisterControllerRecord) -> None:
        self._controllers.edit()[record.controller_id] = ControllerRegistration(
            id=record.controller_id,
            incarnation_id=record.incarnation_id,
            zk_migration_ready=record.zk_migration_ready,
            endpoints=_endpoints(record.end_points),
            features=_features(record.features),
        )

    def _put(self, broker: BrokerRegistration) -> None:
        self._brokers.edit()[broker.id] = broker
        self.changed_brokers.add(broker.id)

    def _broker(self, broker_id: int, epoch: int) -> BrokerRegistration:
        broker = self._brokers.now.get(broker_id)
        if broker is None or broker.epoch != epoch:
            known = "is not registered" if broker is None else f"is registered with epoch {broker.epoch}"
            raise BrokenInvariant(f"the metadata log changes broker {broker_id} of epoch {epoch}, which {known}")
        return broker


class _EndpointFields(Protocol):
    name: str
    host: str
    port: int
    security_protocol: int


class _FeatureFields(Protocol):
    name: str
    min_supported_version: int
    max_supported_version: int


def _endpoints(fields: Iterable[_EndpointFields]) -> dict[str, Endpoint]:
    return {each.name: Endpoint(each.name, each.host, each.port, each.security_protocol) for each in fields}


def _features(fields: Iterable[_FeatureFields]) -> dict[str, tuple[int, int]]:
    return {each.name: (each.min_supported_version, each.max_supported_version) for each in fields}
