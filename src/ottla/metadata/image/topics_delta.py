"""TopicsDelta: replays records about topics and partitions onto an image. Pure; used by one owner at a time."""

from __future__ import annotations

from ottla.errors import BrokenInvariant
from ottla.ids import DIRECTORY_MIGRATING, Uuid, uuid_text
from ottla.metadata.image.copy_on_write import CopyOnWriteMap
from ottla.metadata.image.topics import PartitionState, Topic, TopicsImage
from ottla.wire.messages.metadata_records import (
    ClearElrRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)

_NO_LEADER_CHANGE = -2
_NO_RECOVERY_CHANGE = -1


class TopicsDelta:
    """The topics of `base`, with the replayed records applied. Each changed topic's partitions are copied once per delta."""

    def __init__(self, base: TopicsImage) -> None:
        self._base = base
        self._by_name: CopyOnWriteMap[str, Topic] = CopyOnWriteMap(base.by_name)
        self._by_id: CopyOnWriteMap[Uuid, Topic] = CopyOnWriteMap(base.by_id)
        self._partitions: dict[Uuid, dict[int, PartitionState]] = {}
        """The partitions of the topics in `changed`."""
        self.changed: set[Uuid] = set()
        self.deleted: dict[Uuid, Topic] = {}

    def finish(self) -> TopicsImage:
        if not self.changed and not self.deleted and self._by_id.now is self._base.by_id:
            return self._base
        by_name, by_id = self._by_name.edit(), self._by_id.edit()
        for topic_id, partitions in self._partitions.items():
            # Snapshots may list partitions in any order; readers of an image rely on 0, 1, 2 …
            topic = by_id[topic_id]._replace(partitions=dict(sorted(partitions.items())))
            by_id[topic_id] = by_name[topic.name] = topic
        self._partitions = {}
        return TopicsImage(by_name, by_id)

    def compare(self, topics: TopicsImage) -> None:
        """Note what differs from `topics`, without replaying anything."""
        before = self._base.by_id
        self.changed.update(topic_id for topic_id, topic in topics.by_id.items() if before.get(topic_id) != topic)
        self.deleted.update((topic_id, topic) for topic_id, topic in before.items() if topic_id not in topics.by_id)

    def name_of(self, topic_id: Uuid) -> str:
        return self._topic(topic_id).name

    def replay_topic(self, record: TopicRecord) -> None:
        if record.name in self._by_name.now or record.topic_id in self._by_id.now:
            raise BrokenInvariant(
                f"the metadata log makes topic {record.name} ({uuid_text(record.topic_id)}) while there is one of that name "
                "or id: the log was not written by one controller at a time"
            )
        topic = Topic(record.name, record.topic_id, {})
        self._by_name.edit()[topic.name] = topic
        self._by_id.edit()[topic.id] = topic
        self._change(topic.id)

    def replay_removal(self, record: RemoveTopicRecord) -> str:
        """Returns the name of the deleted topic."""
        topic = self._topic(record.topic_id)
        del self._by_name.edit()[topic.name]
        del self._by_id.edit()[topic.id]
        self._partitions.pop(topic.id, None)
        self.changed.discard(topic.id)
        if (before := self._base.by_id.get(topic.id)) is not None:
            self.deleted[topic.id] = before
        return topic.name

    def replay_partition(self, record: PartitionRecord) -> None:
        replicas = tuple(record.replicas)
        self._change(record.topic_id)[record.partition_id] = PartitionState(
            replicas=replicas,
            directories=_directories(tuple(record.directories or ()), replicas, record),
            isr=tuple(record.isr),
            leader=record.leader,
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
            removing_replicas=tuple(record.removing_replicas),
            adding_replicas=tuple(record.adding_replicas),
            leader_recovery_state=record.leader_recovery_state,
            elr=tuple(record.eligible_leader_replicas or ()),
            last_known_elr=tuple(record.last_known_elr or ()),
        )

    def replay_partition_change(self, record: PartitionChangeRecord) -> None:
        partitions = self._change(record.topic_id)
        state = partitions.get(record.partition_id)
        if state is None:
            raise BrokenInvariant(
                f"the metadata log changes partition {record.partition_id} of topic {self.name_of(record.topic_id)}, which "
                f"has {len(partitions)} partitions"
            )
        partitions[record.partition_id] = merge(state, record)

    def replay_clear_elr(self, record: ClearElrRecord) -> None:
        """Clear the eligible leader replicas of one topic, or of all if the record names none."""
        if record.topic_name:
            if (named := self._by_name.now.get(record.topic_name)) is None:
                raise BrokenInvariant(
                    f"the metadata log clears the eligible leaders of topic {record.topic_name}: there is none"
                )
            topics = [named]
        else:
            topics = list(self._by_id.now.values())
        for topic in topics:
            partitions = self._partitions.get(topic.id, topic.partitions)
            for index, state in list(partitions.items()):
                if state.elr or state.last_known_elr:
                    self._change(topic.id)[index] = state._replace(
                        elr=(), last_known_elr=(), partition_epoch=state.partition_epoch + 1
                    )

    def _topic(self, topic_id: Uuid) -> Topic:
        topic = self._by_id.now.get(topic_id)
        if topic is None:
            raise BrokenInvariant(f"the metadata log refers to topic id {uuid_text(topic_id)}, which no topic has")
        return topic

    def _change(self, topic_id: Uuid) -> dict[int, PartitionState]:
        """The modifiable partitions of a topic, which counts as changed from now on."""
        partitions = self._partitions.get(topic_id)
        if partitions is None:
            partitions = self._partitions[topic_id] = dict(self._topic(topic_id).partitions)
            self.changed.add(topic_id)
        return partitions


def merge(state: PartitionState, record: PartitionChangeRecord) -> PartitionState:
    """`state` with `record` applied. Fields that the record leaves out stay; a leader in it starts a new leader epoch."""
    replicas = state.replicas if record.replicas is None else tuple(record.replicas)
    directories = state.directories if record.directories is None else tuple(record.directories)
    has_leader = record.leader != _NO_LEADER_CHANGE
    return PartitionState(
        replicas=replicas,
        directories=_directories(directories, replicas, record),
        isr=state.isr if record.isr is None else tuple(record.isr),
        leader=record.leader if has_leader else state.leader,
        leader_epoch=state.leader_epoch + 1 if has_leader else state.leader_epoch,
        partition_epoch=state.partition_epoch + 1,
        removing_replicas=state.removing_replicas if record.removing_replicas is None else tuple(record.removing_replicas),
        adding_replicas=state.adding_replicas if record.adding_replicas is None else tuple(record.adding_replicas),
        leader_recovery_state=(
            state.leader_recovery_state if record.leader_recovery_state == _NO_RECOVERY_CHANGE else record.leader_recovery_state
        ),
        elr=state.elr if record.eligible_leader_replicas is None else tuple(record.eligible_leader_replicas),
        last_known_elr=state.last_known_elr if record.last_known_elr is None else tuple(record.last_known_elr),
    )


def _directories(
    directories: tuple[Uuid, ...], replicas: tuple[int, ...], record: PartitionRecord | PartitionChangeRecord
) -> tuple[Uuid, ...]:
    """One directory per replica. Records of older versions have none: then all are `DIRECTORY_MIGRATING`."""
    if all(directory == DIRECTORY_MIGRATING for directory in directories):
        return (DIRECTORY_MIGRATING,) * len(replicas)
    if len(directories) != len(replicas):
        raise BrokenInvariant(f"a metadata record has {len(replicas)} replicas and {len(directories)} directories: {record!r}")
    return directories
