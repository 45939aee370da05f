"""The replicas of a partition have the same batches below their high watermarks, with the same offsets, epochs and CRCs.

And the leader epochs that each node has for its log agree with its batches: a follower that asks where an epoch ended must not
keep records that are not the leader's. Epochs without records may differ.

Looked at in the end, when all nodes serve. Not checked for compacted topics, which each node compacts by itself. Each node also
deletes old segments by itself: what one of them has deleted is not compared.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from ottla.ids import TopicPartition
from ottla.sim.checkers.checker import Violation
from ottla.sim.cluster.checkers.checker import ClusterChecker, Entry


class Replica(NamedTuple):
    """One replica, as its node has it."""

    log_start_offset: int
    high_watermark: int
    entries: list[Entry]
    epochs: list[tuple[int, int]]
    """The leader epochs with their start offsets, oldest first."""

    def epoch_for(self, offset: int) -> int | None:
        index = bisect_right(self.epochs, offset, key=lambda entry: entry[1])
        return self.epochs[index - 1][0] if index else None


class EqualReplicas(ClusterChecker):
    """Compares all replicas with the first, and each with its leader epochs."""

    def __init__(self) -> None:
        self.judged = 0

    def replicas_read(self, partition: TopicPartition, replicas: dict[str, Replica]) -> None:
        for node, replica in replicas.items():
            _check_epochs(partition, node, replica)
        start = max(replica.log_start_offset for replica in replicas.values())
        end = min(replica.high_watermark for replica in replicas.values())
        known: dict[str, dict[int, Entry]] = {
            node: {each.base_offset: each for each in replica.entries if each.base_offset >= start and each.last_offset < end}
            for node, replica in replicas.items()
        }
        (first, expected), *others = known.items()
        for node, found in others:
            self.judged += 1
            for offset in sorted(expected.keys() | found.keys()):
                one, other = expected.get(offset, "nothing"), found.get(offset, "nothing")
                if one != other:
                    raise Violation(f"{partition} at offset {offset}: {first} has {one}, and {node} has {other}")


def _check_epochs(partition: TopicPartition, node: str, replica: Replica) -> None:
    for entry in replica.entries:
        for offset in (max(entry.base_offset, replica.log_start_offset), entry.last_offset):
            if (epoch := replica.epoch_for(offset)) != entry.epoch:
                raise Violation(
                    f"{partition}: {node} has {entry}, and its leader epochs say {epoch} for offset {offset}: {replica.epochs}"
                )
