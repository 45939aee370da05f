"""In which of its log directories this node keeps each partition, told to the controller.

A node with one directory has nothing to tell: the controller knows. With several, the node chooses where a new partition goes,
and may move it later. The controller must know, or it would not know whom to replace when a directory is lost.

One event loop; telling is a task in the background, for all partitions that need it at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.errors import KafkaError, LogDirectoryFailed
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition, Uuid
from ottla.metadata.controller.decision import Decision

if TYPE_CHECKING:
    from ottla.broker.hosts.controller import ControllerHost
    from ottla.broker.metadata_cache import MetadataCache
    from ottla.broker.partitions.partitions import Partitions
    from ottla.log.directories.log_directory import LogDirectory
    from ottla.wire.base import Message

logger = logging.getLogger("ottla.partitions")

AT_ONCE_MAX = 1000
"""How many assignments go into one write."""


class Assignment(NamedTuple):
    """A partition, and the directory it is in."""

    topic_id: Uuid
    number: int
    directory_id: Uuid


class DirectoryAssignments:
    """What this node tells of its directories, between `start` and `stop`."""

    def __init__(self, partitions: Partitions, metadata: MetadataCache, controller: ControllerHost) -> None:
        self._partitions = partitions
        self._metadata = metadata
        self._controller = controller
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
        """Partitions may have been made or moved: see what the controller does not know, and tell it."""
        if self._is_stopped or len(self._partitions.directories.directories) < 2:
            return
        self._is_due = True
        if self._telling is None:
            self._telling = asyncio.get_running_loop().create_task(self._tell())

    async def announce(self, name: TopicPartition, directory: LogDirectory) -> bool:
        """Tell the controller that a partition is about to be in `directory`; True when it is written down."""
        partition = self._partitions.find(*name)
        if partition is None or directory.directory_id is None:
            return partition is not None
        try:
            await self._write([Assignment(partition.topic_id, partition.index, directory.directory_id)])
        except KafkaError as refused:
            logger.warning("%s stays where it is: the controller cannot be told of its new directory: %s", name, refused)
            return False
        return True

    async def _tell(self) -> None:
        try:
            while self._is_due:
                self._is_due = False
                unknown = self._unknown()
                for start in range(0, len(unknown), AT_ONCE_MAX):
                    await self._write(unknown[start : start + AT_ONCE_MAX])
        except (
            KafkaError,
            LogDirectoryFailed,
        ) as refused:  # if the metadata log has failed, the node is told of that elsewhere
            logger.warning("the controller was not told in which directories partitions are: %s", refused)
        finally:
            self._telling = None

    def _unknown(self) -> list[Assignment]:
        """Partitions that are not where the controller believes them to be. Those on their way are left alone."""
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
        from ottla.metadata.controller.partitions import assign_directory  # late: most nodes have one directory

        node_id = self._partitions.node_id

        def decide(state: Any, now_ms: int) -> Decision[None]:
            records: list[Message] = []
            for assignment in assignments:
                try:
                    records += assign_directory(state, node_id, *assignment).records
                except KafkaError as refused:
                    if refused.code not in (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNSUPPORTED_VERSION):
                        raise
            return Decision(None, records)

        await self._controller.write(decide)
