"""The moves of one rebalance, so that a partition is moved back instead of another one being moved the other way."""

from __future__ import annotations

from typing import NamedTuple

from ottla.client_core.group.assignors.java_order import PartitionSet
from ottla.ids import TopicPartition


class Move(NamedTuple):
    """From one member to another."""

    source: str
    target: str


class PartitionMovements:
    """Which partitions have moved between which members."""

    def __init__(self) -> None:
        self._moves: dict[TopicPartition, Move] = {}
        self._by_topic: dict[str, dict[Move, PartitionSet]] = {}

    def record(self, partition: TopicPartition, source: str, target: str) -> None:
        """`partition` moves; two moves in a row become one, a move back none."""
        before = self._moves.get(partition)
        if before is None:
            self._add(partition, Move(source, target))
            return
        self._remove(partition)
        if before.source != target:
            self._add(partition, Move(before.source, target))

    def better_choice(self, partition: TopicPartition, source: str, target: str) -> TopicPartition:
        """What to move instead of `partition`: one of its topic that came the opposite way, if there is one."""
        if partition in self._moves:
            source = self._moves[partition].source
        opposite = self._by_topic.get(partition.topic, {}).get(Move(target, source))
        return next(iter(opposite)) if opposite else partition

    def _add(self, partition: TopicPartition, move: Move) -> None:
        self._moves[partition] = move
        self._by_topic.setdefault(partition.topic, {}).setdefault(move, PartitionSet()).add(partition)

    def _remove(self, partition: TopicPartition) -> None:
        move = self._moves.pop(partition)
        moves = self._by_topic[partition.topic]
        moves[move].remove(partition)
        if not moves[move]:
            del moves[move]
