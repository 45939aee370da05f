"""MetadataDelta: replays records of the metadata log onto an image, and lists what they changed.

The base image is never modified; the new image shares everything that did not change. One owner at a time.
A record that contradicts an earlier one is a broken invariant: the log cannot be trusted.

Records inside a metadata transaction are held back until it ends, in `open_transaction` if it spans several images.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from ottla.errors import BrokenInvariant
from ottla.ids import Uuid
from ottla.metadata.image.cluster_delta import ClusterDelta
from ottla.metadata.image.copy_on_write import CopyOnWriteMap
from ottla.metadata.image.image import ConfigResource, MetadataImage, Provenance, ResourceType
from ottla.metadata.image.security import REPLAYS as SECURITY_REPLAYS
from ottla.metadata.image.security import SecurityDelta
from ottla.metadata.image.topics import Topic
from ottla.metadata.image.topics_delta import TopicsDelta
from ottla.wire.base import Message
from ottla.wire.messages import metadata_records as records


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
