"""`ottla pipeline describe`."""

from __future__ import annotations

from typing import Any

import click

from ottla.cli.common.options import json_option, wide_option
from ottla.cli.common.output import is_for_people, print_json, print_padded, print_table
from ottla.cli.pipeline.options import bootstrap_option, pipeline_argument, session_for, session_options
from ottla.spark.pipelines import graph as graphs
from ottla.spark.pipelines import storage
from ottla.spark.pipelines.plans import explain_text, reads_of
from ottla.spark.pipelines.positions import position_of
from ottla.spark.pipelines.spec import Spec, read_spec

EXAMPLES = """\b
Examples:
  ottla pipeline describe orders
  ottla pipeline describe orders --json
"""
HEADINGS = ("Flow", "=Reads", "=Writes", "=Offsets")


@click.command("describe", epilog=EXAMPLES)
@pipeline_argument
@session_options
@bootstrap_option
@json_option
@wide_option
def describe(place: str, master: str | None, remote: str | None, bootstrap_server: str | None, as_json: bool) -> None:
    """Show the graph of the pipeline in FOLDER: what each flow reads and writes, and how far it has come."""
    spec = read_spec(place).with_bootstrap(bootstrap_server)
    with session_for(spec, master, remote, quiet=as_json) as spark:
        flows = flows_of(spec, spark)
    if as_json:
        print_json({"name": spec.name, "schedule": str(spec.schedule), "state": spec.state, "flows": flows})
        return
    rows = [(each["flow"], _reads_text(each), _writes_text(each), _position_text(each)) for each in flows]
    if is_for_people():
        details = [f"schedule: {spec.schedule}", f"offsets, state and tables: {spec.state}"]
        print_table(spec.name, HEADINGS, rows, details)
    else:
        print_padded([heading.lstrip("=") for heading in HEADINGS], rows, (1, 1, 1, 0))


def flows_of(spec: Spec, spark: Any) -> list[dict[str, Any]]:
    """Each flow with what it reads and writes, in the order in which they run."""
    from ottla.spark.pipelines.resolving import prepared

    with prepared(spec, spark) as resolved:
        known = {*resolved.tables, *resolved.views}
        found = []
        for name, frame in resolved.frames.items():
            flow, reads = resolved.graph.flows[name], reads_of(explain_text(frame), known)
            output = resolved.graph.outputs[flow.target]
            runs = output.kind not in (graphs.TEMPORARY, graphs.VIEW)
            position = position_of(spec, name) if runs else None
            found.append(
                {
                    "flow": name,
                    "defined": flow.place,
                    "reads": list(reads.names),
                    "sources": [{"format": kind, "options": options} for kind, options in reads.sources],
                    "target": output.name,
                    "kind": output.kind,
                    "format": output.format or (None if output.kind == graphs.TEMPORARY else "parquet"),
                    "options": dict(output.options),
                    "checkpoint": storage.checkpoint(spec, name) if runs else None,
                    "offsets": None if position is None else list(position.offsets),
                    "position": None if position is None else position.text(),
                }
            )
        return found


def _reads_text(flow: dict[str, Any]) -> str:
    sources = [_source_text(each["format"], each["options"]) for each in flow["sources"]]
    return ", ".join([*flow["reads"], *sources]) or "-"


def _position_text(flow: dict[str, Any]) -> str:
    return "-" if flow["checkpoint"] is None else flow["position"] or "not run yet"


def _writes_text(flow: dict[str, Any]) -> str:
    if flow["kind"] == graphs.SINK:
        return f"sink {flow['target']} ({_source_text(flow['format'], flow['options'])})"
    return f"{flow['kind']} {flow['target']}"


def _source_text(kind: str, options: dict[str, str]) -> str:
    """`topic orders`, `csv data/orders`."""
    lowered = {key.lower(): value for key, value in options.items()}
    if kind == "ottla":
        named = lowered.get("subscribe") or lowered.get("topic") or lowered.get("subscribepattern") or lowered.get("assign")
        return f"topic {named}" if named else "topics of the column topic"
    return f"{kind} {lowered['path']}" if "path" in lowered else kind
