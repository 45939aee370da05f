"""The rows of `bench.cluster` that run only when they are named."""

import pytest
from bench.cluster import many, two_nodes
from bench.cluster.__main__ import read_options
from bench.cluster.rows import SELDOM, figures
from bench.side_by_side.figures import Results


def test_rows_are_those_that_are_named() -> None:
    assert not set(read_options([]).rows) & set(SELDOM)
    assert read_options(["--rows", "many,two-nodes"]).rows == SELDOM
    assert {key.partition(":")[0] for key in many.table(10) | two_nodes.ROWS} == set(SELDOM)


def test_replicas_of_many_partitions_are_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    assert read_options([]).replicas == (1,)
    assert read_options(["--replicas", "1,3"]).replicas == (1, 3)
    with pytest.raises(SystemExit):
        read_options(["--replicas", "2"])
    assert "'2' is not 1, 3 or 1,3" in capsys.readouterr().err


def test_rows_name_their_partitions_and_replicas() -> None:
    rows = many.table(10_000)
    assert rows["many:r1-creation"][0] == "three nodes, 10,000 partitions × 1 replica: created"
    assert rows["many:r3-memory"][0] == "three nodes, 10,000 partitions × 3 replicas: memory of the three nodes"


def test_two_nodes_are_held_to_their_goal() -> None:
    results = Results()
    results.add(figures(two_nodes.ROWS, {two_nodes.KEY: [100.0]}, {two_nodes.KEY: [90.0]}))
    assert [each.verdict for each in results.figures.values()] == ["missed by 25%"]


def test_a_sample_without_its_pair_is_left_out() -> None:
    rows = many.table(10)
    apache = {"many:r1-failover": [10.0, 20.0], "many:r1-idle": [5.0]}
    (only,) = figures(rows, apache, {"many:r1-failover": [1.0]})
    assert (only.key, list(only.other), list(only.ottla)) == ("cluster:many:r1-failover", [10.0], [1.0])
