"""A node's partitions on a simulated disk with two log directories, for tests of handlers that read logs.

Logs and partitions are the real ones. A stand-in for the broker's `Partitions` creates and finds them, so that such a test does
not depend on that class.
"""

import asyncio
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any, TypeVar

from tests.support.logs.batches import T0, make_batch
from tests.support.logs.log_directories import SMALL, NodeStorage
from tests.support.nodes.images import broker, context_of, image_of, partition, uuid_of

from ottla.broker.partitions.partition import Partition
from ottla.broker.requests.context import Handled, future_of
from ottla.config.topic import LogConfig
from ottla.errors import KafkaError, LogDirectoryFailed
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition
from ottla.log.partition_log import PartitionLog
from ottla.log.producers.append_checks import AppendOrigin
from ottla.metadata.image.image import MetadataImage
from ottla.records.control import build_end_marker
from ottla.wire.codec import decode_all, encode_bytes

R = TypeVar("R")


class StandInPartitions:
    """Finds partitions by name, as the broker's `Partitions` does; also receives their events."""

    def __init__(self, storage: NodeStorage) -> None:
        self.storage = storage
        self.all: dict[TopicPartition, Partition] = {}

    @property
    def replica_lag_s(self) -> float:
        return 30.0

    def is_eligible(self, replica: int, broker_epoch: int) -> bool:
        return True

    def find(self, topic: str, index: int) -> Partition | None:
        return self.all.get(TopicPartition(topic, index))

    def leader(self, topic: str, index: int, leader_epoch: int = -1) -> Partition:
        found = self.find(topic, index)
        if found is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "unknown")
        found.check_leading(leader_epoch)
        return found

    def has_news(self, partition: Partition) -> None: ...
    def has_changed(self, partition: Partition) -> None: ...
    def has_more_for_followers(self, partition: Partition) -> None: ...
    def wants_isr_change(self, partition: Partition) -> None: ...
    def upkeep_is_due(self) -> None: ...
    def broken(self, failure: BaseException) -> None: ...

    def lose_directory(self, failure: LogDirectoryFailed, log: PartitionLog | None = None) -> None:
        self.storage.directories.note_loss(failure, log)


class DataNode:
    """Node 1 with the topics created by `topic`. Everything below the log end is replicated, as on a single node."""

    def __init__(self, compaction: bool = False) -> None:
        self.storage = NodeStorage(compaction=compaction)
        self.storage.open()
        self.partitions = StandInPartitions(self.storage)
        self.topics: dict[str, int] = {}
        self.image: MetadataImage = image_of([broker(1)], {})
        self.services: dict[str, Any] = {
            "partitions": self.partitions,
            "directories": self.storage.directories,
            "world": SimpleNamespace(disk=self.storage.disk, clock=self.storage.clock),
        }

    def topic(self, name: str, count: int = 1, config: LogConfig = SMALL) -> Partition:
        """A new topic; returns its first partition."""
        self.topics[name] = count
        self.image = image_of([broker(1)], {each: [partition(1)] * n for each, n in self.topics.items()})
        made = self.image.topics.by_name[name]
        for index in range(count):
            key = TopicPartition(name, index)
            log = asyncio.run(self.storage.directories.create(key, config, made.id))
            self.partitions.all[key] = hosted = Partition(self.partitions, 1, made.id, log)
            hosted.adopt(made.partitions[index])
        return self.partitions.all[TopicPartition(name, 0)]

    def follow(self, name: str, leader: int = 2) -> None:
        """Make another node the leader of partition 0 of a topic."""
        state = self.image.topics.by_name[name].partitions[0]
        moved = state._replace(leader=leader, leader_epoch=state.leader_epoch + 1, partition_epoch=state.partition_epoch + 1)
        self.partitions.all[TopicPartition(name, 0)].adopt(moved)

    def ask(self, handler: Any, request: Any, version: int) -> Any:
        """The handler's response, awaited if it is parked; a refusal goes through the handler's `refuse`.

        Request and response are encoded and decoded in `version`: fields that the version lacks are lost, or cannot be sent.
        """
        context = context_of(self.image, request.KEY, version, **self.services)
        received = decode_all(type(request), version, encode_bytes(request, version))

        async def answer() -> Any:
            try:
                return await settled(handler.handle(context, received))
            except KafkaError as error:
                return handler.refuse(context, received, error)

        response = asyncio.run(answer())
        return decode_all(type(response), version, encode_bytes(response, version))


async def settled(handled: Handled) -> Any:
    """The response of a handler, awaited if it is parked."""
    return await future_of(handled)


def run(work: Coroutine[Any, Any, R]) -> R:
    return asyncio.run(work)


def append(hosted: Partition, *values: bytes, timestamp: int = T0, **batch: Any) -> int:
    """Append one batch; returns its first offset."""
    return hosted.append(make_batch(*(values or (b"value",)), timestamp=timestamp, **batch), acks=1).first_offset


def end_transaction(hosted: Partition, producer_id: int, commit: bool) -> int:
    """Append the end marker of a transaction; returns its offset."""
    marker = build_end_marker(is_commit=commit, producer_id=producer_id, producer_epoch=0, coordinator_epoch=0, timestamp_ms=T0)
    return hosted.append(marker, acks=1, origin=AppendOrigin.COORDINATOR).first_offset


__all__ = ["DataNode", "StandInPartitions", "append", "end_transaction", "run", "settled", "uuid_of"]
