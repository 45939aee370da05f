"""The group coordinator of this node: hosts the shards of __consumer_offsets and gives them topics and settings.

One event loop; plain calls.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ottla.broker.requests.memory import request_memory_limit
from ottla.broker.runtime.coordinators.runtime import CoordinatorRuntime
from ottla.coordinator.contract import Producer
from ottla.coordinator.groups.memory import MemberMemory
from ottla.coordinator.groups.settings import GroupSettings
from ottla.coordinator.groups.shard import GroupShard
from ottla.coordinator.groups.topics import DeletedTopic
from ottla.coordinator.id_limit import IdLimit
from ottla.env.repeated_lines import RepeatedLines
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import OFFSETS_TOPIC, Uuid
from ottla.metadata.features import GROUP_VERSION
from ottla.metadata.image.image import ResourceType
from ottla.records.compression import Codec
from ottla.wire.log_records import InternalLog

if TYPE_CHECKING:
    from ottla.broker.handlers.fast_path.kernel_commit_records import KnownGroup
    from ottla.broker.metadata_cache import MetadataCache
    from ottla.broker.partitions.partition import Partition
    from ottla.broker.partitions.partitions import Partitions
    from ottla.broker.runtime.coordinators.hosted_shard import HostedShard
    from ottla.broker.settings import BrokerSettings
    from ottla.env import World
    from ottla.metadata.image.delta import MetadataDelta
    from ottla.metadata.image.image import MetadataImage

SERVED_PROTOCOLS = ("classic", "consumer")
MINUTE_MS = 60_000


class ImageTopics:
    """The topics of one metadata image, in the form that groups use."""

    def __init__(self, image: MetadataImage) -> None:
        self._topics = image.topics
        self._brokers = image.cluster.brokers
        self.version = image.provenance.offset

    def names(self) -> Iterable[str]:
        return sorted(self._topics.by_name)

    def id_of(self, name: str) -> Uuid | None:
        topic = self._topics.by_name.get(name)
        return None if topic is None else topic.id

    def name_of(self, topic_id: Uuid) -> str | None:
        topic = self._topics.by_id.get(topic_id)
        return None if topic is None else topic.name

    def partition_count(self, name: str) -> int:
        topic = self._topics.by_name.get(name)
        return 0 if topic is None else len(topic.partitions)

    def racks(self, name: str, partition: int) -> Sequence[str]:
        replicas = self._topics.by_name[name].partitions[partition].replicas
        known = (self._brokers[replica].rack for replica in replicas if replica in self._brokers)
        return sorted(rack for rack in known if rack is not None)


class GroupRuntime(CoordinatorRuntime[GroupShard]):
    """The groups whose coordinator this node is."""

    def __init__(
        self,
        world: World,
        settings: BrokerSettings,
        partitions: Partitions,
        metadata: MetadataCache,
        complaints: RepeatedLines,
    ) -> None:
        super().__init__(
            OFFSETS_TOPIC,
            InternalLog.GROUPS,
            partitions,
            metadata,
            world.clock,
            settings.current.offsets_commit_timeout_ms,
            self._new_shard,
        )
        self._broker_settings = settings
        self.codec = Codec(settings.current.offsets_topic_compression_codec)
        self.read_bytes = settings.current.offsets_load_buffer_size
        self._new_uuid = world.randomness.new_uuid
        self.known: dict[bytes, KnownGroup] = {}
        """For the fast path: groups that have committed before, by the bytes of their ids. Emptied by every metadata change."""
        self._topics = ImageTopics(metadata.image)
        self._settings = group_settings(settings, metadata.image)
        config = settings.current
        limit_bytes = request_memory_limit(config.queued_max_request_bytes, config.socket_request_max_bytes) // 2
        self._memory = MemberMemory(limit_bytes, self._members_bytes)
        self._limit = IdLimit(
            "ottla.max.groups",
            config.ottla_max_groups,
            lambda: sum(len(hosted.shard.table.by_id) for hosted in self),
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            lambda text: complaints.log(logging.WARNING, "too many groups", "%s", text),
        )
        self.follow()

    def _new_shard(self, partition: Partition) -> GroupShard:
        shard = GroupShard(self._settings, self._topics, self._new_uuid)
        shard.table.memory = self._memory
        shard.table.limit = self._limit
        return shard

    def _members_bytes(self) -> int:
        return sum(group.members_bytes() for hosted in self for group in hosted.shard.table.by_id.values())

    def bring_up_to_date(self, shard: GroupShard) -> None:
        shard.follow(self._settings, self._topics, ())

    def metadata_changed(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """The metadata has changed; partitions and settings have been updated already."""
        self.known.clear()
        self._topics = ImageTopics(image)
        self._settings = group_settings(self._broker_settings, image)
        deleted = [DeletedTopic(topic.name, topic.id) for topic in delta.deleted_topics.values()]
        changed = [topic.name for topic in deleted]
        changed += [image.topics.by_id[topic_id].name for topic_id in delta.changed_topics if topic_id in image.topics.by_id]
        for hosted in list(self):
            try:
                hosted.submit(hosted.shard.follow(self._settings, self._topics, deleted, changed))
            except KafkaError:
                hosted.give_up()
        self.follow()

    def given_up(self, shard: HostedShard[Any]) -> None:
        self.known.clear()
        super().given_up(shard)

    def write_out(self, index: int) -> None:
        """Append the decided records of partition `index` now, because a marker is about to be appended to it."""
        hosted = self.active.get(index)
        if hosted is not None:
            hosted.write_out()

    def ended(self, index: int, producer: Producer, is_commit: bool) -> None:
        """The marker that ends `producer`'s transaction is in the log of partition `index`."""
        hosted = self.active.get(index)
        if hosted is not None:
            hosted.shard.replay_end(producer, is_commit)


def group_settings(settings: BrokerSettings, image: MetadataImage) -> GroupSettings:
    """The settings for groups, from the broker's settings and those of single groups."""
    config = settings.current
    taken = {name: getattr(config, name) for name in GroupSettings._fields if hasattr(config, name)}
    taken["offsets_retention_ms"] = config.offsets_retention_minutes * MINUTE_MS
    served = SERVED_PROTOCOLS if image.features.get(GROUP_VERSION, 0) else ("classic",)
    taken["rebalance_protocols"] = tuple(name for name in config.group_coordinator_rebalance_protocols if name in served)
    taken["of_groups"] = {name: stored for (kind, name), stored in image.configs.items() if kind == ResourceType.GROUP}
    return GroupSettings(**taken)
