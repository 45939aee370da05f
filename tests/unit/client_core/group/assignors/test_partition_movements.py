"""The moves of one rebalance: they add up, and a partition that came the opposite way goes back first."""

from __future__ import annotations

from ottla.client_core.group.sticky import PartitionMovements
from ottla.ids import TopicPartition

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


def test_no_move_before_leaves_the_choice() -> None:
    assert PartitionMovements().better_choice(T0, "a", "b") == T0


def test_partition_that_came_the_opposite_way_is_the_better_choice() -> None:
    movements = PartitionMovements()
    movements.record(T1, "b", "a")
    assert movements.better_choice(T0, "a", "b") == T1
    assert movements.better_choice(T0, "b", "a") == T0, "T1 went the same way"
    assert movements.better_choice(T0, "a", "c") == T0


def test_partition_of_another_topic_is_no_choice() -> None:
    movements = PartitionMovements()
    movements.record(U0, "b", "a")
    assert movements.better_choice(T0, "a", "b") == T0


def test_move_back_is_no_move() -> None:
    movements = PartitionMovements()
    movements.record(T1, "b", "a")
    movements.record(T1, "a", "b")
    assert movements.better_choice(T0, "a", "b") == T0


def test_two_moves_in_a_row_are_one() -> None:
    movements = PartitionMovements()
    movements.record(T1, "a", "b")
    movements.record(T1, "b", "c")
    assert movements.better_choice(T0, "c", "a") == T1
    assert movements.better_choice(T0, "c", "b") == T0
    assert movements.better_choice(T0, "b", "a") == T0


def test_choice_counts_from_where_the_partition_started() -> None:
    movements = PartitionMovements()
    movements.record(T0, "a", "b")
    movements.record(T1, "c", "a")
    assert movements.better_choice(T0, "b", "c") == T1, "T0 is a move from a to c in all"
