"""Reports to the controller in which of its log directories this node keeps each partition.

With several directories the node chooses the one of a new partition and may move it later. When a directory fails, the
controller needs to know which partitions lose their leader: those of which it has another directory, or none yet, are reported
in the failed one. A node with one directory reports at its start if that is another one than before (a disk that was replaced):
the controller lets no replica lead whose directory is gone. Later it reports only what the metadata has in a directory that is
none of this node's: nothing but a forged request, or a bug, can put it there.

One event loop; a background task reports all partitions that need it, up to `AT_ONCE_MAX` in one write, until the controller
has taken them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ottla.errors import KafkaError, LogDirectoryFailed
from ottla.errors.codes import ErrorCode, error_name
from ottla.ids import DIRECTORY_LOST, TopicPartition, Uuid, uuid_text
from ottla.log.directories.meta_properties import is_reserved
from ottla.wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsRequestDirectoryData,
    AssignReplicasToDirsRequestPartitionData,
    AssignReplicasToDirsRequestTopicData,
)

if TYPE_CHECKING:
    from ottla.broker.channel import ControllerChannel
    from ottla.broker.metadata_cache import MetadataCache
    from ottla.broker.partitions.partitions import Partitions
    from ottla.log.directories.log_directory import LogDirectory
    from ottla.metadata.image.topics import PartitionState
    from ottla.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse

logger = logging.getLogger("ottla.partitions")

RETRY_S = 1.0
AT_ONCE_MAX = 1000
"""How many assignments go into one write."""


class Assignment(NamedTuple):
    """A partition and the directory it is in."""

    topic_id: Uuid
    number: int
    directory_id: Uuid


class ReplicaRefused(KafkaError):
    """The controller has not taken the directory of one replica; it may have taken others of the same request."""


class DirectoryAssignments:
    """The reports of one node, between `start` and `stop`. `broker_epoch` returns the epoch of its newest registration."""

    def __init__(
        self, partitions: Partitions, metadata: MetadataCache, channel: ControllerChannel, broker_epoch: Callable[[], int]
    ) -> None:
        self._partitions = partitions
        self._metadata = metadata
        self._channel = channel
        self._broker_epoch = broker_epoch
        self._telling: asyncio.Task[None] | None = None
        self._is_due = False
        self._is_stopped = True

    def start(self) -> None:
        self._is_stopped = False
        self._report()

    async def stop(self) -> None:
        self._is_stopped = True
        if self._telling is not None:
            self._telling.cancel()
            await asyncio.wait([self._telling])

    def look(self, changed: Iterable[Uuid] = ()) -> None:
        """Partitions may have been created, moved or lost: report those that the controller has in another directory.

        `changed` are the topics that have changed in the metadata.
        """
        if not self._is_stopped and (not self._is_only_one or self._has_misplaced(changed)):
            self._report()

    def _has_misplaced(self, changed: Iterable[Uuid]) -> bool:
        """Whether the metadata has a partition of these topics in a directory that is not this node's only one."""
        own = self._partitions.directories.directories[0].directory_id
        for topic_id in changed:
            for partition in self._partitions.by_id.get(topic_id, {}).values():
                state = self._state(partition.name)
                known = None if state is None else self._known(state)
                if known is not None and known != own and (known == DIRECTORY_LOST or not is_reserved(known)):
                    logger.warning(
                        "the metadata has %s in directory %s, and it is in %s: another node or a stranger has reported that. "
                        "This node corrects it",
                        partition.name, uuid_text(known), "none" if own is None else uuid_text(own),
                    )  # fmt: skip
                    return True
        return False

    @property
    def _is_only_one(self) -> bool:
        return len(self._partitions.directories.directories) == 1

    def _report(self) -> None:
        self._is_due = True
        if self._telling is None:
            self._telling = asyncio.get_running_loop().create_task(self._tell())

    async def announce(self, name: TopicPartition, directory: LogDirectory) -> bool:
        """Report that a partition is about to move to `directory`; True once that is committed to the metadata log."""
        partition = self._partitions.find(*name)
        if partition is None or directory.directory_id is None:
            return partition is not None
        try:
            await self._write([Assignment(partition.topic_id, partition.index, directory.directory_id)])
        except KafkaError as refused:
            logger.warning("%s is not moved: could not report its new directory to the controller: %s", name, refused)
            return False
        return True

    async def _tell(self) -> None:
        is_logged = False
        try:
            while self._is_due:
                self._is_due = False
                try:
                    unknown = self._unknown()
                    failure: ReplicaRefused | None = None
                    for start in range(0, len(unknown), AT_ONCE_MAX):
                        try:
                            await self._write(unknown[start : start + AT_ONCE_MAX])
                        except ReplicaRefused as refused:  # the others of the request were taken
                            failure = refused
                    if failure is not None:
                        raise failure
                except LogDirectoryFailed:
                    raise
                except Exception as refused:  # of the controller; or a bug, and what it does not know must not stay so
                    if not isinstance(refused, KafkaError):
                        logger.exception("reporting the directories of partitions failed unexpectedly. Please report this")
                    elif not is_logged:
                        text = "could not report to the controller in which directories partitions are, and try again: %s"
                        logger.warning(text, refused)
                    is_logged = self._is_due = True
                    await asyncio.sleep(RETRY_S)
        except LogDirectoryFailed as failed:  # of the metadata log, which is reported elsewhere
            logger.warning("could not report to the controller in which directories partitions are: %s", failed)
        finally:
            self._telling = None

    def _unknown(self) -> list[Assignment]:
        """Partitions in another directory than the metadata says. Those being moved are left out."""
        found = []
        directories = self._partitions.directories
        for partition in self._partitions:
            directory, state = directories.directory_of(partition.name), self._state(partition.name)
            if directory is None or directory.directory_id is None or state is None:
                continue
            future = directories.future_of(partition.name)
            if future is not None and future.is_online:
                continue
            known = self._known(state)
            if known is not None and self._is_only_one and known != DIRECTORY_LOST and is_reserved(known):
                continue  # there is no choice to report
            if known != directory.directory_id:
                found.append(Assignment(partition.topic_id, partition.index, directory.directory_id))
        return found + self._lost()

    def _lost(self) -> list[Assignment]:
        """Partitions whose directory has failed, where the metadata has them in one that has not, or in none yet.

        They were being moved, or are new. The report of the failed directory does not concern them: without this one the node
        would go on to lead partitions that it cannot serve.
        """
        directories, topics = self._partitions.directories, self._metadata.image.topics.by_name
        failed = {each.directory_id for each in directories.directories if not each.is_online}
        if not failed:
            return []
        found = []
        for name in self._partitions.offline:
            directory, state = directories.directory_of(name), self._state(name)
            if directory is None or directory.directory_id is None or directory.is_online or state is None:
                continue
            if self._known(state) not in (*failed, DIRECTORY_LOST):
                found.append(Assignment(topics[name.topic].id, name.partition, directory.directory_id))
        return found

    def _state(self, name: TopicPartition) -> PartitionState | None:
        """The partition in the metadata, if this node has a replica of it."""
        state = self._metadata.partition(*name)
        return None if state is None or self._partitions.node_id not in state.replicas else state

    def _known(self, state: PartitionState) -> Uuid | None:
        """The directory in which this node has the partition, as the metadata says; None if that keeps no directories."""
        return state.directories[state.replicas.index(self._partitions.node_id)] if state.directories else None

    async def _write(self, assignments: Sequence[Assignment]) -> None:
        node_id, epoch = self._partitions.node_id, self._broker_epoch()
        try:
            response: AssignReplicasToDirsResponse = await self._channel.call(_request(node_id, epoch, assignments))
        except KafkaError as refused:
            if refused.code == ErrorCode.UNSUPPORTED_VERSION:
                return  # the metadata.version keeps no directories
            raise
        for directory in response.directories:
            for topic in directory.topics:
                for partition in topic.partitions:
                    # A topic that was deleted meanwhile needs no directory.
                    if partition.error_code not in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_ID):
                        raise ReplicaRefused(
                            partition.error_code,
                            f"the directory of partition {partition.partition_index} of topic {uuid_text(topic.topic_id)} was "
                            f"refused: {error_name(partition.error_code)}",
                        )


def _request(node_id: int, broker_epoch: int, assignments: Sequence[Assignment]) -> AssignReplicasToDirsRequest:
    by_directory: dict[Uuid, dict[Uuid, list[int]]] = {}
    for each in assignments:
        by_directory.setdefault(each.directory_id, {}).setdefault(each.topic_id, []).append(each.number)
    return AssignReplicasToDirsRequest(
        broker_id=node_id,
        broker_epoch=broker_epoch,
        directories=[
            AssignReplicasToDirsRequestDirectoryData(
                id=directory_id,
                topics=[
                    AssignReplicasToDirsRequestTopicData(
                        topic_id=topic_id,
                        partitions=[AssignReplicasToDirsRequestPartitionData(partition_index=number) for number in numbers],
                    )
                    for topic_id, numbers in topics.items()
                ],
            )
            for directory_id, topics in by_directory.items()
        ],
    )
