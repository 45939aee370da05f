"""MetadataDelta replays records of the metadata log onto an image, and lists what they changed; ClusterDelta is its part for
brokers and controllers.

The base image is never modified; the new image shares everything that did not change. One owner at a time.
A record that contradicts an earlier one is a broken invariant: the log cannot be trusted.

Records inside a metadata transaction are held back until it ends, in `open_transaction` if it spans several images.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol

from ottla.errors import BrokenInvariant
from ottla.ids import Uuid
from ottla.metadata.image.cluster import BrokerRegistration, ClusterImage, ControllerRegistration, Endpoint
from ottla.metadata.image.copy_on_write import CopyOnWriteMap
from ottla.metadata.image.image import ConfigResource, MetadataImage, Provenance, ResourceType
from ottla.metadata.image.security import REPLAYS as SECURITY_REPLAYS
from ottla.metadata.image.security import SecurityDelta
from ottla.metadata.image.topics import Topic
from ottla.metadata.image.topics_delta import TopicsDelta
from ottla.wire.base import Message
from ottla.wire.messages import metadata_records as records
from ottla.wire.messages.metadata_records import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)


class MetadataDelta:
    """`base` with the replayed records applied, and the sets of what they changed."""

    def __init__(self, base: MetadataImage) -> None:
        self.base = base
        self.features_changed = False
        self.changed_configs: set[ConfigResource] = set()
        """Resources with a setting set or removed, including deleted topics that had settings."""
        self._features: CopyOnWriteMap[str, int] = CopyOnWriteMap(base.features)
        self._cluster = ClusterDelta(base.cluster)
        self._topics = TopicsDelta(base.topics)
        self._configs: CopyOnWriteMap[ConfigResource, Mapping[str, str]] = CopyOnWriteMap(base.configs)
        self._next_producer_id = base.next_producer_id
        self.security = SecurityDelta(base.security)
        self._open_transaction = None if base.open_transaction is None else list(base.open_transaction)

    @classmethod
    def between(cls, base: MetadataImage, image: MetadataImage) -> MetadataDelta:
        """What differs between two images, if the records between them are not known: only the sets of changes are of use."""
        delta = cls(base)
        delta.features_changed = base.features != image.features
        resources = base.configs.keys() | image.configs.keys()
        delta.changed_configs = {each for each in resources if base.configs.get(each) != image.configs.get(each)}
        delta._topics.compare(image.topics)
        delta.security.compare(image.security)
        brokers, now = base.cluster.brokers, image.cluster.brokers
        delta.changed_brokers.update(each for each in brokers.keys() | now.keys() if brokers.get(each) != now.get(each))
        return delta

    @property
    def changed_topics(self) -> set[Uuid]:
        """Topics that are new, or have a partition that is new or changed."""
        return self._topics.changed

    @property
    def deleted_topics(self) -> Mapping[Uuid, Topic]:
        """Deleted topics, as they were in `base`."""
        return self._topics.deleted

    @property
    def changed_brokers(self) -> set[int]:
        """Brokers that registered, changed or were unregistered."""
        return self._cluster.changed_brokers

    def replay(self, record: Message) -> None:
        """Apply one record."""
        if isinstance(record, records.BeginTransactionRecord):
            if self._open_transaction is not None:
                raise BrokenInvariant("the metadata log begins a transaction within a transaction")
            self._open_transaction = []
        elif isinstance(record, records.EndTransactionRecord | records.AbortTransactionRecord):
            held, self._open_transaction = self._open_transaction, None
            if held is None:
                raise BrokenInvariant("the metadata log ends a transaction that it has not begun")
            if isinstance(record, records.EndTransactionRecord):
                self.replay_all(held)
        elif self._open_transaction is not None:
            self._open_transaction.append(record)
        else:
            replay = _REPLAYS.get(type(record))
            if replay is None:
                raise BrokenInvariant(f"{type(record).__name__} is not a record that the metadata log may hold")
            replay(self, record)

    def replay_all(self, batch: Iterable[Message]) -> None:
        """Apply records, in order."""
        for record in batch:
            self.replay(record)

    def finish(self, provenance: Provenance) -> MetadataImage:
        """The new image; `provenance` is the position in the log that it covers."""
        held = self._open_transaction
        return MetadataImage(
            provenance=provenance,
            features=self._features.now,
            cluster=self._cluster.finish(),
            topics=self._topics.finish(),
            configs=self._configs.now,
            next_producer_id=self._next_producer_id,
            security=self.security.finish(),
            open_transaction=None if held is None else tuple(held),
        )

    def _replay_feature(self, record: records.FeatureLevelRecord) -> None:
        self.features_changed = True
        if record.feature_level == 0:
            self._features.edit().pop(record.name, None)
        else:
            self._features.edit()[record.name] = record.feature_level

    def _replay_topic_removal(self, record: records.RemoveTopicRecord) -> None:
        resource = (int(ResourceType.TOPIC), self._topics.replay_removal(record))
        if resource in self._configs.now:
            del self._configs.edit()[resource]
            self.changed_configs.add(resource)

    def _replay_config(self, record: records.ConfigRecord) -> None:
        resource = (record.resource_type, record.resource_name)
        settings = dict(self._configs.now.get(resource, {}))
        if record.value is None:
            settings.pop(record.name, None)
        else:
            settings[record.name] = record.value
        if settings:
            self._configs.edit()[resource] = settings
        else:
            self._configs.edit().pop(resource, None)
        self.changed_configs.add(resource)

    def _replay_producer_ids(self, record: records.ProducerIdsRecord) -> None:
        self._next_producer_id = record.next_producer_id


def _ignore(delta: MetadataDelta, record: Message) -> None:
    """A record that changes nothing: NoOp, or the state of a migration from ZooKeeper."""


def _on_security(replay: Callable[[SecurityDelta, Any], None]) -> Callable[[MetadataDelta, Any], None]:
    return lambda delta, record: replay(delta.security, record)


_REPLAYS: Final[dict[type[Message], Callable[[MetadataDelta, Any], None]]] = {
    records.RegisterBrokerRecord: lambda delta, record: delta._cluster.replay_broker(record),
    records.UnregisterBrokerRecord: lambda delta, record: delta._cluster.replay_unregistration(record),
    records.FenceBrokerRecord: lambda delta, record: delta._cluster.replay_fencing(record),
    records.UnfenceBrokerRecord: lambda delta, record: delta._cluster.replay_fencing(record),
    records.BrokerRegistrationChangeRecord: lambda delta, record: delta._cluster.replay_broker_change(record),
    records.RegisterControllerRecord: lambda delta, record: delta._cluster.replay_controller(record),
    records.TopicRecord: lambda delta, record: delta._topics.replay_topic(record),
    records.PartitionRecord: lambda delta, record: delta._topics.replay_partition(record),
    records.PartitionChangeRecord: lambda delta, record: delta._topics.replay_partition_change(record),
    records.ClearElrRecord: lambda delta, record: delta._topics.replay_clear_elr(record),
    records.RemoveTopicRecord: MetadataDelta._replay_topic_removal,
    records.ConfigRecord: MetadataDelta._replay_config,
    records.FeatureLevelRecord: MetadataDelta._replay_feature,
    records.ProducerIdsRecord: MetadataDelta._replay_producer_ids,
    records.NoOpRecord: _ignore,
    records.ZkMigrationStateRecord: _ignore,
    **{cls: _on_security(replay) for cls, replay in SECURITY_REPLAYS.items()},
}


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
