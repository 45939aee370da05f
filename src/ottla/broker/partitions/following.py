"""Applies the cluster's metadata to this node's partitions: creates, adopts, reconfigures and deletes their logs.

Works on the table of `Partitions`; decides nothing that the metadata does not say. Deletions come first, because a topic may
have been created again under the same name. A partition whose log cannot be opened is offline; the others are not affected. A
partition that could not be created for lack of file descriptors waits until there are some (`make_waiting`). One event loop.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from ottla.broker.partitions.partition import Partition
from ottla.broker.requests.scheduler import BackgroundPauses
from ottla.errors import BrokenInvariant, CorruptFile, LogDirectoryFailed, OttlaError, OutOfDescriptors
from ottla.errors.codes import ErrorCode
from ottla.errors.texts import counted
from ottla.ids import TopicPartition, Uuid
from ottla.log.directories.creation import NewPartition
from ottla.log.directories.meta_properties import is_reserved
from ottla.log.partition_log import PartitionLog
from ottla.metadata.image.image import ResourceType
from ottla.metadata.image.topics import NO_LEADER, PartitionState, Topic

if TYPE_CHECKING:
    from ottla.broker.partitions.partitions import Partitions
    from ottla.metadata.image.delta import MetadataDelta
    from ottla.metadata.image.image import MetadataImage

logger = logging.getLogger("ottla.partitions")


async def follow(here: Partitions, delta: MetadataDelta, image: MetadataImage) -> None:
    """Bring the partitions from `delta.base` to `image`; the work behind `Partitions.apply`."""
    is_start = not here.has_followed
    _follow_registration(here, image)
    here.deleted.clear()
    here.directories.cordon(here.settings.current.cordoned_log_dirs)
    if is_start:
        await _put_strays_aside(here, image)
        here.has_followed = True
    pauses = BackgroundPauses()
    for topic in delta.deleted_topics.values():
        names = [TopicPartition(topic.name, index) for index in sorted(topic.partitions)]
        here.deleted.update(dict.fromkeys(names))
        await _delete(here, names, topic.id, pauses, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "was deleted")
    # Before the ISRs: a leader with a smaller ISR and the old min.insync.replicas could acknowledge what only it has.
    _follow_configs(here, delta)
    for topic_id in sorted(delta.changed_topics):
        if (changed := image.topics.by_id.get(topic_id)) is not None:
            await _follow_topic(here, changed, delta.base.topics.by_id.get(topic_id), is_start, pauses)
    _follow_verification(here)
    here.take_losses()


def _follow_registration(here: Partitions, image: MetadataImage) -> None:
    """Find out whether this process may lead: from its registration on.

    Until then the metadata names the process before it. A power loss may have taken records, so that the log ends before that
    process's leader epoch began: to lead in that epoch would give the epoch a second start. When a process registers, the
    controller raises the leader epoch of everything that the node led.
    """
    broker = image.cluster.brokers.get(here.node_id)
    if broker is not None and broker.incarnation_id == here.incarnation_id:
        here.may_lead = True


async def _put_strays_aside(here: Partitions, image: MetadataImage) -> None:
    """Rename logs that the metadata does not place on this node: their topics were deleted or moved while it was down."""
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


async def _follow_topic(here: Partitions, topic: Topic, before: Topic | None, is_start: bool, pauses: BackgroundPauses) -> None:
    missing: list[NewPartition] = []
    moved_away: list[TopicPartition] = []
    for index in sorted(topic.partitions):
        await pauses.here()
        state = topic.partitions[index]
        known = None if before is None else before.partitions.get(index)
        was_here = known is not None and here.node_id in known.replicas
        if here.node_id not in state.replicas:
            if was_here:
                moved_away.append(TopicPartition(topic.name, index))
        elif (partition := here.find(topic.name, index)) is not None:
            await _truncated(here, partition.name)
            await _settle_gap(here, partition, known, state)
            partition.adopt(state, here.may_lead)
            if partition.is_leading and before is not None:
                _name_loss(partition, known, state)
        else:
            # At a node's start no replica is new: a log that is not found may be on a disk that has failed.
            is_new = not is_start and not was_here
            config = here.settings.topic_config(topic.name)
            directory_id = _directory_of(state, here.node_id)
            missing.append(NewPartition(TopicPartition(topic.name, index), config, topic.id, is_new, directory_id))
    if moved_away:
        why = f"has moved away from node {here.node_id}: ask for new metadata and go there"
        await _delete(here, moved_away, topic.id, pauses, ErrorCode.NOT_LEADER_OR_FOLLOWER, why)
    if missing and (shortage := await _make(here, topic, missing, pauses)) is not None:
        count = counted(here.waiting_of(topic.id), "partition")
        logger.error("not created yet: %s of %s: %s", count, topic.name, shortage)


def _name_loss(partition: Partition, before: PartitionState | None, state: PartitionState) -> None:
    """Warn if this node was elected out of sync: the leader then has to recover.

    The last known leader has all that was acknowledged: it was alone in the ISR until it was killed.
    """
    if before is None or partition.node_id in before.last_known_elr or len(state.replicas) == 1:
        return
    if state.leader_recovery_state and not before.leader_recovery_state:
        logger.warning(
            "%s: elected as leader of epoch %d by an unclean election. This log ends at offset %d: what was acknowledged "
            "from there on is lost, and replicas that come back cut it off",
            partition.name,
            state.leader_epoch,
            partition.log.log_end_offset,
        )


async def _truncated(here: Partitions, name: TopicPartition) -> None:
    """Wait until a truncation of the log is over: a leader must not begin in the middle of one."""
    while (truncation := here.truncations.get(name)) is not None:
        await asyncio.wait([truncation])


async def _settle_gap(here: Partitions, partition: Partition, before: PartitionState | None, state: PartitionState) -> None:
    """Truncate a follower's log at a gap that recovery found, so that it fetches from there: the leader has what is committed.

    Without this the replica would join the ISR by its end offset, and lose committed records of the gap if it is elected.
    A leader keeps what it has. It forgets the gap when it is elected, not before: until this process is registered, the
    metadata may still name the one before it as leader.
    """
    log, gap_offset = partition.log, partition.log.gap_offset
    if gap_offset is None or state.leader == NO_LEADER:
        return
    if state.leader == here.node_id:
        if here.may_lead and before is not None and before.leader_epoch < state.leader_epoch:
            log.gap_offset = None
        return
    if gap_offset < log.log_start_offset:
        log.gap_offset = None  # it was deleted meanwhile, with what came before it
        return
    logger.warning(
        "%s: truncated from %d to %d, because a power loss may have taken the next offsets: they are fetched from node %d",
        partition.name,
        log.log_end_offset,
        gap_offset,
        state.leader,
    )
    try:
        await here.directories.truncate(partition.name, gap_offset)
    except LogDirectoryFailed as failed:
        here.lose_directory(failed)
    except CorruptFile as damage:
        logger.error("%s is not replicated until the node is restarted: %s", partition.name, damage)


async def _make(
    here: Partitions, topic: Topic, missing: list[NewPartition], pauses: BackgroundPauses
) -> OutOfDescriptors | None:
    """Find or create the logs of partitions; returns why some have to wait, if they do."""
    shortage = None
    for new, made in zip(missing, await here.directories.create_all(missing), strict=True):
        await pauses.here()
        if isinstance(made, OutOfDescriptors):
            shortage = made
            here.waiting_for_room[new.partition] = new
            here.set_offline(new.partition, str(made))
        else:
            here.waiting_for_room.pop(new.partition, None)
            if (opened := await _open(here, new, made)) is not None:
                state = topic.partitions[new.partition.partition]
                await _settle_gap(here, opened, None, state)
                opened.adopt(state, here.may_lead)
    return shortage


async def make_waiting(here: Partitions, image: MetadataImage) -> None:
    """Try again to create the partitions that wait for file descriptors."""
    by_topic: dict[Uuid, list[NewPartition]] = {}
    for new in here.waiting_for_room.values():
        by_topic.setdefault(new.topic_id, []).append(new._replace(config=here.settings.topic_config(new.partition.topic)))
    for topic_id, waiting in by_topic.items():
        topic = image.topics.by_id[topic_id]  # deleting the topic would have removed them from `waiting_for_room`
        await _make(here, topic, waiting, BackgroundPauses())
        if (made_count := len(waiting) - here.waiting_of(topic_id)) > 0:
            logger.info("files can be opened again: created %s of %s", counted(made_count, "partition"), topic.name)


def _directory_of(state: PartitionState, node_id: int) -> Uuid | None:
    """The directory in which this node has the partition, if the metadata names one."""
    directory_id = state.directories[state.replicas.index(node_id)] if state.directories else None
    return None if directory_id is None or is_reserved(directory_id) else directory_id


async def _open(here: Partitions, new: NewPartition, made: PartitionLog | BaseException) -> Partition | None:
    """The partition with its log, found or created; None if it is offline."""
    name, config = new.partition, new.config
    try:
        if isinstance(made, BaseException):
            raise made
        log = made
        if log.log_end_offset - log.recovery_point >= config.flush_messages:
            await log.flush()  # a killed process left unflushed records: flush.messages wants them durable before they are read
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


async def _delete(
    here: Partitions, names: list[TopicPartition], topic_id: Uuid, pauses: BackgroundPauses, code: int, why: str
) -> None:
    """Delete partitions; requests parked on them get `code`."""
    doomed = []
    for name in names:
        await pauses.here()
        here.offline.pop(name, None)
        here.waiting_for_room.pop(name, None)
        partition = here.find(*name)
        if partition is not None:
            await _truncated(here, name)
            if partition.topic_id != topic_id:
                continue
            here.remove(partition)
            partition.fail(code, f"{name} {why}")
        doomed.append(name)
    for failed in await here.directories.delete_all(doomed):
        logger.error("the files of a deleted partition remain: %s", failed.brief)
        here.lose_directory(failed)


def _follow_configs(here: Partitions, delta: MetadataDelta) -> None:
    """Replace the settings of the logs whose topic's settings, or whose broker's defaults, have changed."""
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
    """Apply transaction.partition.verification.enable to the logs: whether a transaction's first batch must be verified."""
    verify = here.settings.current.log.transaction_partition_verification_enable
    if here.directories.options.verify_transactions != verify:
        here.directories.options = here.directories.options._replace(verify_transactions=verify)
        for partition in here:
            partition.log.options = partition.log.options._replace(verify_transactions=verify)
