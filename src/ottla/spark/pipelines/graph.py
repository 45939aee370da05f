"""The graph of a pipeline: outputs and the flows into them, as the files define them, and what can be checked without Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ottla.errors.texts import near_words
from ottla.spark.pipelines.counts import Watch, WatchedQuery
from ottla.spark.pipelines.errors import PipelineError
from ottla.spark.pipelines.expectations import Expectation

TABLE, VIEW, TEMPORARY, SINK = "table", "materialized view", "view", "sink"


@dataclass(frozen=True)
class Output:
    """A table, a materialized view, a temporary view or a sink."""

    name: str
    kind: str
    place: str
    """File and line that define it."""
    format: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    schema: Any = None
    partition_columns: tuple[str, ...] = ()
    expectations: tuple[Expectation, ...] = ()
    """Of a table or view in SQL: for each flow into it."""


@dataclass(frozen=True)
class FlowDefinition:
    """A query and the output that it feeds."""

    name: str
    target: str
    place: str
    query: Callable[[], Any]
    """Makes the DataFrame, on the active session."""
    configuration: Mapping[str, str] = field(default_factory=dict)
    expectations: tuple[Expectation, ...] = ()
    """Those that decorators have given to the function."""
    sql: str | None = None
    """The query of a flow that is defined in SQL."""
    begin: tuple[int, int] = (1, 1)
    """The line and column of `sql` in its file."""

    @property
    def watch(self) -> Watch:
        """The checks and dead-letter topics of the query, after it was made."""
        return self.query.watch if isinstance(self.query, WatchedQuery) else Watch(self.name)


@dataclass
class Graph:
    """All that the files of a pipeline define."""

    outputs: dict[str, Output] = field(default_factory=dict)
    flows: dict[str, FlowDefinition] = field(default_factory=dict)

    def add_output(self, output: Output) -> None:
        """Add an output; its name must be new."""
        other = self.outputs.get(output.name)
        if other is not None:
            raise PipelineError(f"{output.place}: {output.name} is defined twice; the other one is at {other.place}")
        self.outputs[output.name] = output

    def add_flow(self, flow: FlowDefinition) -> None:
        """Add a flow; its name must be new."""
        other = self.flows.get(flow.name)
        if other is not None:
            raise PipelineError(f"{flow.place}: the flow {flow.name} is defined twice; the other one is at {other.place}")
        self.flows[flow.name] = flow

    def flows_into(self, output: str) -> list[FlowDefinition]:
        """The flows that feed an output."""
        return [flow for flow in self.flows.values() if flow.target == output]

    def running_flows(self) -> list[FlowDefinition]:
        """The flows that write something: all but those of temporary views."""
        return [flow for flow in self.flows.values() if self.outputs[flow.target].kind != TEMPORARY]

    def expectations_of(self, flow: FlowDefinition) -> tuple[Expectation, ...]:
        """All expectations of a flow's rows."""
        return (*flow.expectations, *self.outputs[flow.target].expectations)

    def dead_letter_topics(self) -> dict[str, dict[str, str]]:
        """The topics that flows send dead letters to, and the settings of their clients. Known after the queries were made."""
        return {topic: options for flow in self.flows.values() for topic, options in flow.watch.topics.items()}

    def check(self) -> None:
        """Raise a `PipelineError` for the first mistake that shows without Spark."""
        if not self.flows:
            raise PipelineError("the pipeline has no flow: define one with @dp.table, @dp.append_flow or in SQL")
        for flow in self.flows.values():
            if flow.target not in self.outputs:
                near = near_words(flow.target, self.outputs, cutoff=0.6)
                hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(self.outputs)) or 'none'}"
                raise PipelineError(
                    f"{flow.place}: the flow {flow.name} writes to {flow.target}, "
                    f"which is no table or sink of the pipeline; {hint}"
                )
        for output in self.outputs.values():
            self._check_output(output)
        if not self.running_flows():
            raise PipelineError("the pipeline writes nothing: it has only temporary views; add a table or a flow into a sink")

    def _check_output(self, output: Output) -> None:
        names = [flow.name for flow in self.flows_into(output.name)]
        if output.kind == TEMPORARY and "." in output.name:
            raise PipelineError(f"{output.place}: a temporary view has no database: name it {output.name.replace('.', '_')}")
        if not names and output.kind == TABLE:
            raise PipelineError(
                f"{output.place}: no flow writes to the table {output.name}: add @dp.append_flow(target={output.name!r})"
            )
        writes_files = output.kind == TABLE or (output.kind == SINK and "path" in output.options)
        if writes_files and len(names) > 1:
            # Each query counts its batches from 0 in the same _spark_metadata; a number that is there counts as written.
            raise PipelineError(
                f"{output.place}: the flows {', '.join(names)} write to the one file table {output.name}: Spark would lose "
                "rows without an error, because their batches have the same numbers; union them in one flow"
            )
