"""No replica that keeps pace is dropped from an ISR."""

import pytest
from tests.support.nodes.watched_partitions import entry, held

from ottla.sim.checkers.checker import Violation
from ottla.sim.cluster.checkers.checker import HeldPartition
from ottla.sim.cluster.checkers.partitions import SteadyIsr

LAG_S = 1.0


def moved(high_watermark: int) -> HeldPartition:
    return held([entry(offset) for offset in range(high_watermark + 1)], high_watermark)


def led(at_s: list[float]) -> tuple[SteadyIsr, HeldPartition]:
    """A leader whose high watermark has moved at these times; it is 1.0 s now."""
    now_s = [0.0]
    checker = SteadyIsr(lambda: now_s[0], LAG_S)
    for count, each_s in enumerate(at_s, start=1):
        now_s[0] = each_s
        checker.partition_held("n1", moved(count))
    now_s[0] = 1.0
    return checker, moved(len(at_s))


def test_a_replica_that_keeps_pace_is_dropped() -> None:
    checker, partition = led([0.1, 0.3, 0.6, 0.9])
    with pytest.raises(Violation, match=r"n1 wants to drop \[2\] from the ISR of t-0"):
        checker.isr_proposed("n1", partition, (1,))


def test_a_replica_may_be_dropped_when_the_high_watermark_has_stood_still() -> None:
    checker, partition = led([0.1, 0.3, 0.4])
    checker.isr_proposed("n1", partition, (1,))
    assert checker.judged == 1


def test_proposals_to_add_a_replica_are_not_judged() -> None:
    checker, partition = led([0.1, 0.3, 0.6, 0.9])
    checker.isr_proposed("n1", partition, (1, 2, 3))
    assert checker.judged == 0
