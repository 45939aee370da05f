"""The partitions of this node, for handlers that ask their logs something: whatever goes wrong is a `KafkaError`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from ottla.errors import OttlaError

if TYPE_CHECKING:
    from ottla.broker.partitions.partition import Partition
    from ottla.broker.services import Services
    from ottla.log.partition_log import PartitionLog

T = TypeVar("T")


def hosted(services: Services, topic: str, index: int) -> Partition:
    """The replica of a partition that is here, whoever leads it."""
    return services.partitions.find(topic, index) or services.partitions.leader(topic, index)


def ask(partition: Partition, question: Callable[[PartitionLog], T]) -> T:
    """What the partition's log answers."""
    try:
        return question(partition.log)
    except OttlaError as failure:
        raise partition.refused_by(failure) from None
