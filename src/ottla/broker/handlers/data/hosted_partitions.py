"""Lookups in the logs of this node's partitions, for handlers; every failure becomes a `KafkaError`."""

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
    """This node's replica of a partition, leader or not."""
    return services.partitions.find(topic, index) or services.partitions.leader(topic, index)


def ask(partition: Partition, question: Callable[[PartitionLog], T]) -> T:
    """Call `question` with the partition's log; every failure becomes a `KafkaError`."""
    try:
        return question(partition.log)
    except OttlaError as failure:
        raise partition.refused_by(failure) from None
