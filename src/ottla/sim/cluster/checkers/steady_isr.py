"""No replica that keeps pace is dropped from an ISR.

The high watermark waits for every replica in the ISR. If it has moved again and again during replica.lag.time.max.ms, and has
passed what the log had at the beginning of that time, then no replica in the ISR has lagged, and the leader must not drop one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from ottla.sim.checkers.checker import Violation
from ottla.sim.cluster.checkers.checker import ClusterChecker, HeldPartition, PartitionKey

PARTS = 4
"""In each of so many parts of the time, the high watermark must have moved."""


class SteadyIsr(ClusterChecker):
    """`lag_s` is replica.lag.time.max.ms by the slowest clock."""

    def __init__(self, now_s: Callable[[], float], lag_s: float) -> None:
        self._now_s = now_s
        self._lag_s = lag_s
        self._moves: defaultdict[tuple[str, PartitionKey, int], list[tuple[float, int, int, tuple[int, ...]]]] = defaultdict(
            list
        )
        """Node, partition and leader epoch → when its high watermark has moved, to where, the log's end, and the ISR."""
        self.judged = 0

    def partition_held(self, node: str, held: HeldPartition) -> None:
        if held.is_leading:
            moves = self._moves[node, held.key, held.leader_epoch]
            if not moves or moves[-1][1] < held.high_watermark:
                moves.append((self._now_s(), held.high_watermark, held.log_end_offset, held.isr))

    def isr_proposed(self, node: str, held: HeldPartition, isr: tuple[int, ...]) -> None:
        dropped = set(held.isr) - set(isr)
        if not dropped:
            return
        self.judged += 1
        begin_s = self._now_s() - self._lag_s
        moves = [move for move in self._moves[node, held.key, held.leader_epoch] if move[0] >= begin_s]
        parts = {int((at_s - begin_s) / self._lag_s * PARTS) for at_s, *_ in moves}
        if not parts >= set(range(PARTS)) or any(not dropped <= set(move[3]) for move in moves):
            return
        if held.high_watermark >= moves[0][2]:
            raise Violation(
                f"{node} wants to drop {sorted(dropped)} from the ISR of {held.name}, although the high watermark, which waits "
                f"for them, has moved {len(moves)} times in {self._lag_s:g} s up to {held.high_watermark}"
            )
