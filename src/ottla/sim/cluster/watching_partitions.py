"""Looks at the partitions of a running node, for the cluster's checkers.

`PartitionsWatch` waits on every partition as a produce request does, but its wait never ends: it learns of every move of the
high watermark of a leader before anyone is answered. It also hears of every ISR that a leader proposes, and can delay it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING

from ottla.errors import OttlaError
from ottla.sim.cluster.checkers.checker import Entry, HeldPartition, PartitionKey
from ottla.sim.cluster.watching import Watch, logged_batches

if TYPE_CHECKING:
    from ottla.broker.partitions.partition import Partition
    from ottla.broker.partitions.partitions import Partitions


class PartitionsWatch:
    """The partitions of one life of a node."""

    def __init__(self, watch: Watch, name: str, partitions: Partitions) -> None:
        self._watch, self._name, self._partitions = watch, name, partitions
        self._wants_isr_change = partitions.wants_isr_change
        partitions.wants_isr_change = self._isr_wanted  # type: ignore[method-assign]  # what this is for

    def published(self) -> None:
        """The node has applied metadata."""
        for partition in self._partitions:
            partition.ack_waits.setdefault(self)
            self.settle(partition)

    def settle(self, partition: Partition) -> bool:
        """As `AckWaiter.settle`: the high watermark has moved, or the leader has changed."""
        self._watch.tell(self._watch.checkers.partition_held, self._name, held(partition))
        return False

    def ends(self) -> None:
        """The process is about to be killed. A leader without followers would tell of its high watermark in the next turn."""
        for partition in self._partitions:
            if partition.is_leading and partition.log.failure is None:
                self.settle(partition)

    def held(self, key: PartitionKey) -> HeldPartition | None:
        """One of its partitions, now; None if its log cannot be read: the node is stopping, or its disk has failed."""
        partition = self._partitions.by_id.get(key[0], {}).get(key[1])
        return None if partition is None or partition.log.failure is not None else held(partition)

    def _isr_wanted(self, partition: Partition) -> None:
        if partition.in_sync is not None and partition.in_sync.pending is not None:
            pending = partition.in_sync.pending
            self._watch.tell(self._watch.checkers.isr_proposed, self._name, held(partition), pending.isr)
        delayed = self._watch.delayed.get(self._name)
        if delayed is None:
            self._wants_isr_change(partition)
        else:
            self._watch.trace.note(self._name, "delays", f"a proposal for the ISR of {partition.name}")
            delayed.append((copy_context(), partial(self._wants_isr_change, partition)))


def held(partition: Partition) -> HeldPartition:
    """The state of a partition on its node."""
    log = partition.log

    def entries(start: int, end: int) -> Sequence[Entry]:
        try:
            return [each.entry for each in logged_batches(log, max(start, log.log_start_offset), end)]
        except (OSError, OttlaError):
            return ()  # its disk has failed

    return HeldPartition(
        (partition.topic_id, partition.index),
        partition.name,
        partition.leader,
        partition.leader_epoch,
        partition.partition_epoch,
        partition.isr,
        partition.is_leading,
        log.config.compact,
        log.log_start_offset,
        log.high_watermark,
        log.log_end_offset,
        entries,
    )
