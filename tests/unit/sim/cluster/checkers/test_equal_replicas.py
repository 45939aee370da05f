"""Replicas are equal below their high watermarks, and have the leader epochs of their batches."""

import pytest

from ottla.ids import TopicPartition
from ottla.sim.checkers.checker import Violation
from ottla.sim.cluster.checkers.checker import Entry
from ottla.sim.cluster.checkers.partitions import EqualReplicas, Replica

PARTITION = TopicPartition("t", 0)
FIRST, SECOND, THIRD = (Entry(offset, offset, 1, 7) for offset in range(3))
OTHER = SECOND._replace(crc=8)
EPOCHS = [(1, 0)]


def test_what_is_above_a_high_watermark_or_deleted_is_not_compared() -> None:
    checker = EqualReplicas()
    whole = Replica(0, 3, [FIRST, SECOND, THIRD], EPOCHS)
    behind = Replica(0, 1, [FIRST, OTHER], EPOCHS)
    shorter = Replica(1, 3, [SECOND, THIRD], [(1, 1)])
    checker.replicas_read(PARTITION, {"n1": whole, "n2": behind})
    checker.replicas_read(PARTITION, {"n1": shorter, "n2": whole})
    checker.replicas_read(PARTITION, {"n1": whole})
    assert checker.judged == 2


@pytest.mark.parametrize("entries", [[FIRST, OTHER], [FIRST]], ids=["another batch", "none"])
def test_a_difference_below_is_found(entries: list[Entry]) -> None:
    replicas = {"n1": Replica(0, 2, [FIRST, SECOND], EPOCHS), "n2": Replica(0, 2, entries, EPOCHS)}
    with pytest.raises(Violation, match=r"t-0 at offset 1: n1 has 1-1 of epoch 1 .*, and n2 has"):
        EqualReplicas().replicas_read(PARTITION, replicas)
    with pytest.raises(Violation, match="t-0 at offset 1: n2 has"):
        EqualReplicas().replicas_read(PARTITION, dict(reversed(replicas.items())))


def test_epochs_without_records_may_differ() -> None:
    replicas = {"n1": Replica(0, 2, [FIRST, SECOND], [(1, 0), (3, 2)]), "n2": Replica(0, 2, [FIRST, SECOND], EPOCHS)}
    EqualReplicas().replicas_read(PARTITION, replicas)


def test_a_batch_that_begins_before_the_log_start_has_its_epoch() -> None:
    EqualReplicas().replicas_read(PARTITION, {"n1": Replica(1, 3, [Entry(0, 2, 1, 7)], [(1, 1)])})


@pytest.mark.parametrize("epochs", [[(0, 0), (1, 1)], [(1, 1)], [(1, 0), (2, 1)], []], ids=str)
def test_epochs_that_contradict_a_batch_are_found(epochs: list[tuple[int, int]]) -> None:
    with pytest.raises(Violation, match=r"t-0: n1 has .* of epoch 1 .*, and its leader epochs say (0|2|None) for offset (0|1)"):
        EqualReplicas().replicas_read(PARTITION, {"n1": Replica(0, 2, [FIRST, SECOND], epochs)})
