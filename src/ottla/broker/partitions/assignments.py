"""Reports to the controller in which of its log directories this node keeps each partition.

A node with one directory reports nothing: the controller knows. With several, the node chooses the directory of a new
partition and may move it later. When a directory fails, the controller needs to know which partitions lose their leader.

One event loop; a background task reports all partitions that need it, up to `AT_ONCE_MAX` in one write, until the controller
has taken them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ottla.errors import KafkaError, LogDirectoryFailed
from ottla.errors.codes import ErrorCode, error_name
from ottla.ids import TopicPartition, Uuid, uuid_text

if TYPE_CHECKING:
    from ottla.broker.doors import ControllerDoor
    from ottla.broker.metadata_cache import MetadataCache
    from ottla.broker.partitions.partitions import Partitions
    from ottla.log.directories.log_directory import LogDirectory
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


class DirectoryAssignments:
    """The reports of one node, between `start` and `stop`. `broker_epoch` returns the epoch of its newest registration."""

    def __init__(
        self, partitions: Partitions, metadata: MetadataCache, door: ControllerDoor, broker_epoch: Callable[[], int]
    ) -> None:
        self._partitions = partitions
        self._metadata = metadata
        self._door = door
        self._broker_epoch = broker_epoch
        self._telling: asyncio.Task[None] | None = None
        self._is_due = False
        self._is_stopped = True

    def start(self) -> None:
        self._is_stopped = False
        self.look()

    async def stop(self) -> None:
        self._is_stopped = True
        if self._telling is not None:
            self._telling.cancel()
            await asyncio.wait([self._telling])

    def look(self) -> None:
        """Partitions may have been created or moved: report those that the controller does not know of."""
        if self._is_stopped or len(self._partitions.directories.directories) < 2:
            return
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
                    for start in range(0, len(unknown), AT_ONCE_MAX):
                        await self._write(unknown[start : start + AT_ONCE_MAX])
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
        for partition in self._partitions:
            directory = self._partitions.directories.directory_of(partition.name)
            state = self._metadata.partition(partition.topic, partition.index)
            if directory is None or directory.directory_id is None or state is None:
                continue
            if partition.node_id not in state.replicas or self._partitions.directories.future_of(partition.name) is not None:
                continue
            known = state.directories[state.replicas.index(partition.node_id)] if state.directories else None
            if known != directory.directory_id:
                found.append(Assignment(partition.topic_id, partition.index, directory.directory_id))
        return found

    async def _write(self, assignments: Sequence[Assignment]) -> None:
        node_id, epoch = self._partitions.node_id, self._broker_epoch()
        try:
            response: AssignReplicasToDirsResponse = await self._door.call(_request(node_id, epoch, assignments))
        except KafkaError as refused:
            if refused.code == ErrorCode.UNSUPPORTED_VERSION:
                return  # the metadata.version keeps no directories
            raise
        for directory in response.directories:
            for topic in directory.topics:
                for partition in topic.partitions:
                    # A topic that was deleted meanwhile needs no directory.
                    if partition.error_code not in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_ID):
                        raise KafkaError(
                            partition.error_code,
                            f"the directory of partition {partition.partition_index} of topic {uuid_text(topic.topic_id)} was "
                            f"refused: {error_name(partition.error_code)}",
                        )


def _request(node_id: int, broker_epoch: int, assignments: Sequence[Assignment]) -> AssignReplicasToDirsRequest:
    from ottla.wire.messages.assign_replicas_to_dirs import (  # late: most nodes have one directory
        AssignReplicasToDirsRequest,
        AssignReplicasToDirsRequestDirectoryData,
        AssignReplicasToDirsRequestPartitionData,
        AssignReplicasToDirsRequestTopicData,
    )

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
