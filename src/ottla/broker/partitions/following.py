"""How this node's partitions follow the cluster's metadata: logs made, adopted, reconfigured, put aside, deleted.

Works on the table of `Partitions`; decides nothing that the metadata does not say. Deletions come first: a topic may have been
made anew under the same name. A partition whose log cannot be had is offline; the others go on. One that could not be made
because too many files are open waits, and is made as soon as there is room (`make_waiting`).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ottla.broker.partitions.partition import Partition
from ottla.errors import BrokenInvariant, LogDirectoryFailed, OttlaError, OutOfDescriptors
from ottla.errors.codes import ErrorCode
from ottla.errors.texts import counted
from ottla.ids import TopicPartition, Uuid
from ottla.log.directories.creation import NewPartition
from ottla.log.directories.meta_properties import is_reserved
from ottla.log.partition_log import PartitionLog
from ottla.metadata.image.image import ResourceType
from ottla.metadata.image.topics import PartitionState, Topic

if TYPE_CHECKING:
    from ottla.broker.partitions.partitions import Partitions
    from ottla.metadata.image.delta import MetadataDelta
    from ottla.metadata.image.image import MetadataImage

logger = logging.getLogger("ottla.partitions")


async def follow(here: Partitions, delta: MetadataDelta, image: MetadataImage) -> None:
    """See `Partitions.apply`."""
    is_start = not here.has_followed
    here.deleted.clear()
    here.directories.cordon(here.settings.current.cordoned_log_dirs)
    if is_start:
        await _put_strays_aside(here, image)
        here.has_followed = True
    for topic in delta.deleted_topics.values():
        names = [TopicPartition(topic.name, index) for index in sorted(topic.partitions)]
        here.deleted.update(dict.fromkeys(names))
        await _delete(here, names, topic.id)
    for topic_id in sorted(delta.changed_topics):
        if (changed := image.topics.by_id.get(topic_id)) is not None:
            await _follow_topic(here, changed, delta.base.topics.by_id.get(topic_id), is_start)
    _follow_configs(here, delta)
    _follow_verification(here)
    here.take_losses()


async def _put_strays_aside(here: Partitions, image: MetadataImage) -> None:
    """Logs that the cluster does not place on this node: of topics deleted, or moved away, while it was down."""
    for directory in list(here.directories.online()):
        for name in sorted(directory.partitions):
            topic = image.topics.by_name.get(name.topic)
            state = None if topic is None else topic.partitions.get(name.partition)
            known_id = directory.topic_ids.get(name)
            if topic is not None and state is not None and known_id in (None, topic.id) and here.node_id in state.replicas:
                continue
            try:
                await here.directories.set_stray(name)
            except LogDirectoryFailed as failed:
                here.lose_directory(failed)
                break


async def _follow_topic(here: Partitions, topic: Topic, before: Topic | None, is_start: bool) -> None:
    missing: list[NewPartition] = []
    moved_away: list[TopicPartition] = []
    for index in sorted(topic.partitions):
        state = topic.partitions[index]
        if here.node_id not in state.replicas:
            if before is not None and index in before.partitions and here.node_id in before.partitions[index].replicas:
                moved_away.append(TopicPartition(topic.name, index))
        elif (partition := here.find(topic.name, index)) is not None:
            partition.adopt(state)
        else:
            # At a node's start nothing counts as new: a log that is not found may lie on a disk that has failed.
            is_new = not is_start and (before is None or index not in before.partitions)
            config = here.settings.topic_config(topic.name)
            directory_id = _directory_of(state, here.node_id)
            missing.append(NewPartition(TopicPartition(topic.name, index), config, topic.id, is_new, directory_id))
    if moved_away:
        await _delete(here, moved_away, topic.id)
    if missing and (shortage := await _make(here, topic, missing)) is not None:
        logger.error("%s of %s not made yet: %s", counted(here.waiting_of(topic.id), "partition"), topic.name, shortage)


async def _make(here: Partitions, topic: Topic, missing: list[NewPartition]) -> OutOfDescriptors | None:
    """Find or make the logs of partitions; why some have to wait, if they do."""
    shortage = None
    for new, made in zip(missing, await here.directories.create_all(missing), strict=True):
        if isinstance(made, OutOfDescriptors):
            shortage = made
            here.waiting_for_room[new.partition] = new
            here.set_offline(new.partition, str(made))
        else:
            here.waiting_for_room.pop(new.partition, None)
            if (opened := await _open(here, new, made)) is not None:
                opened.adopt(topic.partitions[new.partition.partition])
    return shortage


async def make_waiting(here: Partitions, image: MetadataImage) -> None:
    """Try again to make what has waited for room."""
    by_topic: dict[Uuid, list[NewPartition]] = {}
    for new in here.waiting_for_room.values():
        by_topic.setdefault(new.topic_id, []).append(new._replace(config=here.settings.topic_config(new.partition.topic)))
    for topic_id, waiting in by_topic.items():
        topic = image.topics.by_id[topic_id]  # else they would not wait any more
        await _make(here, topic, waiting)
        if (made_count := len(waiting) - here.waiting_of(topic_id)) > 0:
            logger.info("there is room for files again: made %s of %s", counted(made_count, "partition"), topic.name)


def _directory_of(state: PartitionState, node_id: int) -> Uuid | None:
    """Where the cluster says that this node has the partition, if it does say."""
    directory_id = state.directories[state.replicas.index(node_id)] if state.directories else None
    return None if directory_id is None or is_reserved(directory_id) else directory_id


async def _open(here: Partitions, new: NewPartition, made: PartitionLog | BaseException) -> Partition | None:
    """The partition with its log, found or made; None if it is offline."""
    name, config = new.partition, new.config
    try:
        if isinstance(made, BaseException):
            raise made
        log = made
        if log.log_end_offset - log.recovery_point >= config.flush_messages:
            await log.flush()  # a killed process left them: they are made as safe as they must be before anybody sees them
    except BrokenInvariant:
        raise
    except OttlaError as failure:
        why = str(failure)
        if isinstance(failure, LogDirectoryFailed):
            here.lose_directory(failure)
            why = failure.brief
        if name not in here.offline:  # else it has been logged, alone or with its directory
            logger.error("%s cannot be served: %s", name, why)
        here.set_offline(name, why)
        return None
    log.config = config
    partition = Partition(here, here.node_id, new.topic_id, log)
    here.add(partition)
    return partition


async def _delete(here: Partitions, names: list[TopicPartition], topic_id: Uuid) -> None:
    """Take partitions away; whoever waits for one is told that it is gone."""
    doomed = []
    for name in names:
        here.offline.pop(name, None)
        here.waiting_for_room.pop(name, None)
        partition = here.find(*name)
        if partition is not None:
            if partition.topic_id != topic_id:
                continue
            here.remove(partition)
            partition.fail(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{name} was deleted")
        doomed.append(name)
    for failed in await here.directories.delete_all(doomed):
        logger.error("files of a deleted partition stay: %s", failed.brief)
        here.lose_directory(failed)


def _follow_configs(here: Partitions, delta: MetadataDelta) -> None:
    """Swap the settings of the logs whose topic, or whose broker's defaults, have changed."""
    topics: list[str]
    if any(kind == ResourceType.BROKER for kind, _ in delta.changed_configs):
        topics = list(here.by_name)
    else:
        topics = sorted(name for kind, name in delta.changed_configs if kind == ResourceType.TOPIC)
    for topic in topics:
        partitions = here.by_name.get(topic)
        if partitions:
            config = here.settings.topic_config(topic)
            for partition in partitions.values():
                partition.log.config = config
                partition.follow_config()


def _follow_verification(here: Partitions) -> None:
    """Have the logs ask for proof that a transaction is known to its coordinator, or not, as the settings say now."""
    verify = here.settings.current.log.transaction_partition_verification_enable
    if here.directories.options.verify_transactions != verify:
        here.directories.options = here.directories.options._replace(verify_transactions=verify)
        for partition in here:
            partition.log.options = partition.log.options._replace(verify_transactions=verify)
