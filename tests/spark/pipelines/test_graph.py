"""Checks of the graph that need no Spark."""

from __future__ import annotations

import pytest

from ottla.spark.pipelines.errors import PipelineError
from ottla.spark.pipelines.graph import SINK, TABLE, TEMPORARY, FlowDefinition, Graph, Output


def graph(*parts: Output | FlowDefinition) -> Graph:
    made = Graph()
    for part in parts:
        if isinstance(part, Output):
            made.add_output(part)
        else:
            made.add_flow(part)
    return made


def output(name: str, kind: str = TABLE, **more: object) -> Output:
    return Output(name, kind, f"a.py {name}", **more)  # type: ignore[arg-type]


def flow(name: str, target: str) -> FlowDefinition:
    return FlowDefinition(name, target, f"a.py {name}", lambda: None)


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (graph(), "the pipeline has no flow"),
        (graph(output("t"), flow("f", "tt")), "f writes to tt, which is no table or sink of the pipeline; did you mean t?"),
        (graph(output("abc"), flow("f", "x")), "there are abc"),
        (graph(output("v", TEMPORARY), flow("v", "v")), "the pipeline writes nothing: it has only temporary views"),
        (graph(output("a.v", TEMPORARY), flow("v", "a.v")), "a temporary view has no database: name it a_v"),
        (graph(output("t"), output("u"), flow("t", "t")), "no flow writes to the table u: add @dp.append_flow(target='u')"),
        (
            graph(output("t"), flow("f", "t"), flow("g", "t")),
            "the flows f, g write to the one file table t: Spark would lose rows without an error",
        ),
        (
            graph(output("s", SINK, format="json", options={"path": "x"}), flow("f", "s"), flow("g", "s")),
            "union them in one flow",
        ),
    ],
)
def test_mistake_is_named(made: Graph, sentence: str) -> None:
    with pytest.raises(PipelineError) as raised:
        made.check()
    assert sentence in str(raised.value)


def test_several_flows_into_a_topic_are_fine() -> None:
    graph(output("s", SINK, format="ottla", options={"topic": "x"}), flow("f", "s"), flow("g", "s")).check()


def test_names_are_unique() -> None:
    with pytest.raises(PipelineError, match=r"a.py t: t is defined twice; the other one is at a.py t"):
        graph(output("t"), output("t"))
    with pytest.raises(PipelineError, match="the flow f is defined twice"):
        graph(flow("f", "t"), flow("f", "u"))


def test_flows_of_temporary_views_do_not_run() -> None:
    made = graph(output("v", TEMPORARY), flow("v", "v"), output("t"), flow("t", "t"))
    assert [each.name for each in made.running_flows()] == ["t"]
