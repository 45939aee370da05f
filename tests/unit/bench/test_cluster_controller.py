"""The rows of `bench.cluster` that need a flag."""

from bench.cluster.__main__ import figures, read_options
from bench.cluster.controller import CREATION, FAILOVER, IDLE, START, TWO_NODES, rows_of
from bench.side_by_side.figures import APACHE, OTTLA, Results


def test_rows_are_those_that_the_flags_ask_for() -> None:
    asked = read_options(["--partitions", "10000", "--two-nodes"])
    assert list(rows_of(asked.partitions, asked.two_nodes)) == [CREATION, FAILOVER, START, IDLE, TWO_NODES]
    asked = read_options([])
    assert rows_of(asked.partitions, asked.two_nodes) == {}


def test_two_nodes_are_held_to_their_goal() -> None:
    samples = {key: [1.0] for key in ("start", "failover", "memory")}
    sides = {APACHE: {**samples, TWO_NODES: [100.0]}, OTTLA: {**samples, TWO_NODES: [90.0]}}
    results = Results()
    results.add(figures(sides, rows_of(0, True)))
    assert list(results.figures.values())[-1].verdict == "missed by 25%"
