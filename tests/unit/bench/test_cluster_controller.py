"""The rows of `bench.cluster` that run only when they are named."""

from bench.cluster.__main__ import read_options
from bench.cluster.controller import TWO_NODES, table
from bench.cluster.rows import SELDOM, figures
from bench.side_by_side.figures import Results


def test_rows_are_those_that_are_named() -> None:
    assert not set(read_options([]).rows) & set(SELDOM)
    assert read_options(["--rows", "many,two-nodes"]).rows == SELDOM
    assert {key.partition(":")[0] for key in table(10)} == set(SELDOM)


def test_two_nodes_are_held_to_their_goal() -> None:
    results = Results()
    results.add(figures(table(0), {TWO_NODES: [100.0]}, {TWO_NODES: [90.0]}))
    assert [each.verdict for each in results.figures.values()] == ["missed by 25%"]
