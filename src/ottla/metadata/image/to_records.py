"""Converts an image to records for a snapshot. Replayed onto an empty image, they give an equal one.

Features come first, and metadata.version before all others, since it sets the versions of the other records. A topic's record
comes before those of its partitions. An image holds nothing that its metadata.version cannot represent.
"""

from __future__ import annotations

from collections.abc import Iterator

from ottla.errors import BrokenInvariant
from ottla.ids import Uuid
from ottla.metadata.features import CONTROLLER_REGISTRATION_FROM, DIRECTORIES_FROM, METADATA_VERSION
from ottla.metadata.image.cluster import BrokerRegistration, ControllerRegistration
from ottla.metadata.image.image import MetadataImage
from ottla.metadata.image.topics import PartitionState
from ottla.wire.base import Message
from ottla.wire.messages import metadata_records as records


def image_records(image: MetadataImage) -> Iterator[Message]:
    """The records of a snapshot of `image`; `features.record_version` gives the version of each."""
    if image.open_transaction is not None:
        raise BrokenInvariant("a snapshot cannot be taken within a metadata transaction: wait for its end")
    yield from _features(image)
    for broker in image.cluster.brokers.values():
        yield broker_record(broker)
    if image.metadata_version >= CONTROLLER_REGISTRATION_FROM:
        for controller in image.cluster.controllers.values():
            yield controller_record(controller)
    for topic in image.topics.by_id.values():
        yield records.TopicRecord(name=topic.name, topic_id=topic.id)
        for index, partition in topic.partitions.items():
            yield partition_record(topic.id, index, partition, image.metadata_version)
    for (resource_type, resource_name), settings in image.configs.items():
        for name, value in settings.items():
            yield records.ConfigRecord(resource_type=resource_type, resource_name=resource_name, name=name, value=value)
    if image.next_producer_id > 0:
        yield records.ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=image.next_producer_id)
    yield from image.security.records()


def _features(image: MetadataImage) -> Iterator[Message]:
    yield records.FeatureLevelRecord(name=METADATA_VERSION, feature_level=image.metadata_version)
    for name, level in image.features.items():
        if name != METADATA_VERSION:
            yield records.FeatureLevelRecord(name=name, feature_level=level)


def broker_record(broker: BrokerRegistration) -> records.RegisterBrokerRecord:
    """The record that registers a broker in its current state."""
    cordoned = broker.cordoned_directories
    return records.RegisterBrokerRecord(
        broker_id=broker.id,
        is_migrating_zk_broker=broker.is_migrating_zk_broker,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=[
            records.BrokerEndpoint(name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol)
            for each in broker.endpoints.values()
        ],
        features=[
            records.BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in broker.features.items()
        ],
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=list(broker.directories),
        cordoned_log_dirs=None if cordoned is None else list(cordoned),
    )


def controller_record(controller: ControllerRegistration) -> records.RegisterControllerRecord:
    """The record that registers a controller in its current state."""
    return records.RegisterControllerRecord(
        controller_id=controller.id,
        incarnation_id=controller.incarnation_id,
        zk_migration_ready=controller.zk_migration_ready,
        end_points=[
            records.ControllerEndpoint(name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol)
            for each in controller.endpoints.values()
        ],
        features=[
            records.ControllerFeature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in controller.features.items()
        ],
    )


def partition_record(topic_id: Uuid, index: int, partition: PartitionState, metadata_version: int) -> records.PartitionRecord:
    """The record that creates a partition in its current state, without what `metadata_version` cannot represent."""
    return records.PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=list(partition.replicas),
        isr=list(partition.isr),
        removing_replicas=list(partition.removing_replicas),
        adding_replicas=list(partition.adding_replicas),
        leader=partition.leader,
        leader_recovery_state=partition.leader_recovery_state,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        directories=list(partition.directories) if metadata_version >= DIRECTORIES_FROM else [],
        eligible_leader_replicas=list(partition.elr) or None,
        last_known_elr=list(partition.last_known_elr) or None,
    )
