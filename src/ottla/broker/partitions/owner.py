"""What a partition calls on the table that holds it: the contract between `Partition` and `Partitions`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ottla.broker.partitions.partition import Partition
    from ottla.errors import LogDirectoryFailed
    from ottla.log.partition_log import PartitionLog


class PartitionOwner(Protocol):
    """What a partition calls on the object that holds it."""

    def has_news(self, partition: Partition) -> None:
        """Fetches watch the partition, and there is more to read."""
        ...

    def has_changed(self, partition: Partition) -> None:
        """Fetches watch the partition, and may have to be refused now."""
        ...

    def has_more_for_followers(self, partition: Partition) -> None:
        """Followers' fetches watch the partition, and its log has grown."""
        ...

    @property
    def replica_lag_s(self) -> float:
        """replica.lag.time.max.ms, in seconds."""
        ...

    def is_eligible(self, replica: int, broker_epoch: int) -> bool:
        """Whether the metadata lets a replica that fetched with `broker_epoch` into an ISR."""
        ...

    def wants_isr_change(self, partition: Partition) -> None:
        """The partition has a pending change of its ISR, for which the controller has not been asked yet."""
        ...

    def lose_directory(self, failure: LogDirectoryFailed, log: PartitionLog) -> None:
        """The partition's disk has failed."""
        ...

    def upkeep_is_due(self) -> None:
        """The log has work for the background."""
        ...

    def broken(self, failure: BaseException) -> None:
        """An invariant is broken, and there is no request to fail: the node has to stop."""
        ...
