"""`ottla pipeline describe`: from the files, the checkpoints and the brokers, without Spark."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime

import click

from ottla import TopicPartition
from ottla.cli.common.connection import open_cluster
from ottla.cli.common.options import json_option, wide_option
from ottla.cli.common.output import is_for_people, print_json, print_padded, print_table, say, warn
from ottla.cli.pipeline.options import (
    Clients,
    cluster_option,
    environment_options,
    pipeline_argument,
    session_for,
    session_options,
)
from ottla.cli.pipeline.run import client_settings
from ottla.client.admin.offsets import IsolationLevel, OffsetSpec, list_offsets
from ottla.errors import ConfigError, KafkaError
from ottla.spark.pipelines import checks, storage
from ottla.spark.pipelines import graph as graphs
from ottla.spark.pipelines.counts import Check
from ottla.spark.pipelines.environments import Environment
from ottla.spark.pipelines.expectations import Expectation
from ottla.spark.pipelines.outline import Flow, read_outline, source_text, write_outline
from ottla.spark.pipelines.spec import BOOTSTRAP, Spec, read_spec
from ottla.spark.pipelines.storage import Position, position_of

EXAMPLES = """\b
Examples:
  ottla pipeline describe orders
  ottla pipeline describe orders --env prod
  ottla pipeline describe orders --graph     let Spark analyse the files again
  ottla pipeline describe orders --json
"""
HEADINGS = ("Flow", "=Reads", "=Writes", "=Offsets", "#Lag")
ANSWER_S = 3.0
"""How long the brokers have to answer."""

Ends = dict[TopicPartition, int]


@click.command("describe", epilog=EXAMPLES)
@pipeline_argument
@click.option("--graph", is_flag=True, help="Start Spark and analyse the files first.")
@environment_options
@session_options
@cluster_option
@json_option
@wide_option
def describe(
    place: str,
    graph: bool,
    environment: Environment,
    master: str | None,
    remote: str | None,
    clients: Clients,
    as_json: bool,
) -> None:
    """Show what each flow of the pipeline in FOLDER reads and writes, how far it has come, and how many records are left.

    Flows are those of the last run or `validate`, or what the files say if they have changed since; offsets are read from the
    checkpoints, and the ends of topics from the brokers. Spark is started only with --graph.
    """
    spec = clients.of(read_spec(place, environment))
    with ExitStack() as stack:
        if graph:
            from ottla.spark.pipelines.resolution import prepared

            spark = stack.enter_context(session_for(spec, master, remote, quiet=as_json))
            with prepared(spec, spark) as resolved:
                write_outline(resolved)
        outline, is_analysed = read_outline(spec)
        # With a session, a storage that is elsewhere can be read too.
        is_seen = storage.files_of(spec) is not None
        positions = {each["flow"]: position_of(spec, each["flow"]) for each in outline if _runs(each)}
        checks_of = {each["flow"]: storage.counts_of(spec, each["flow"]) for each in outline}
    ends, problems = asyncio.run(_ends_of(spec, [each for each in positions.values() if each is not None]))
    flows = [_described(spec, each, positions.get(each["flow"]), ends, checks_of[each["flow"]]) for each in outline]
    notes = [] if is_analysed else ["flows as the files say, which Spark has not analysed: --graph does"]
    if not is_seen:
        way = "Spark Connect gives no way to it" if graph else "--graph starts Spark, which can"
        problems.append(f"offsets and counts are in {spec.state}, which this command cannot read: {way}")
    if as_json:
        print_json(
            {
                "name": spec.name,
                "environment": spec.environment,
                "schedule": str(spec.schedule),
                "state": spec.state,
                "isAnalysed": is_analysed,
                "problems": problems,
                "flows": flows,
            }
        )
        return
    rows = [
        (each["flow"], _reads_text(each), _writes_text(each), _position_text(each, is_seen), _lag_text(each)) for each in flows
    ]
    if is_for_people():
        details = [f"schedule: {spec.schedule}", f"offsets, state and tables: {spec.state}", *notes]
        if spec.environment is not None:
            details.insert(0, f"environment: {spec.environment}")
        print_table(spec.name, HEADINGS, rows, details)
    else:
        print_padded([heading.lstrip("=#") for heading in HEADINGS], rows, (1, 1, 1, 1, 0))
    for line in _expectation_lines(flows):
        say(line)
    for problem in problems:
        warn(problem)


def _expectation_lines(flows: Sequence[Flow]) -> list[str]:
    """The expectations of each flow, and what the checks of all runs have found."""
    lines = []
    for flow in flows:
        lines += [f"{flow['flow']} expects {Expectation(**each).text()}" for each in flow.get("expectations", ())]
    for flow in flows:
        lines += [f"in all runs of {flow['flow']}: {Check(**each).text()}" for each in flow["checks"] if each["bad"]]
    return lines


def _runs(flow: Flow) -> bool:
    """Whether a flow is a streaming query, with a checkpoint."""
    return flow["kind"] not in (graphs.TEMPORARY, graphs.VIEW)


def _described(spec: Spec, flow: Flow, position: Position | None, ends: Ends, found_bad: Sequence[Check]) -> Flow:
    read = {} if position is None else position.partitions()
    lags = [max(0, ends[each] - offset) for each, offset in read.items() if each in ends]
    return flow | {
        "checks": [each.as_json() for each in found_bad],
        "checkpoint": storage.checkpoint(spec, flow["flow"]) if _runs(flow) else None,
        "offsets": None if position is None else list(position.offsets),
        "position": None if position is None else position.text(),
        "lag": sum(lags) if lags and len(lags) == len(read) else None,
    }


async def _ends_of(spec: Spec, positions: Sequence[Position]) -> tuple[Ends, list[str]]:
    """Where the partitions of some positions end, and the clusters that did not say so in time. All are asked at once."""
    clients = checks.topics_wanted(spec)
    wanted: dict[str, dict[str, str]] = {}
    by_client: dict[tuple[tuple[str, str], ...], list[TopicPartition]] = {}
    for each in dict.fromkeys(found for position in positions for found in position.partitions()):
        wanted[each.topic] = clients.get(each.topic, spec.client_options)
    # Clusters whose topics nothing has read yet are asked too: whether they are away is worth knowing before the first run.
    asked = {topic: options for topic, options in {**clients, **wanted}.items() if BOOTSTRAP in options}
    for client, topics in checks.by_cluster(asked):
        names = set(topics)
        parts = {found for position in positions for found in position.partitions() if found.topic in names}
        by_client[tuple(client.items())] = sorted(parts)
    answers = await asyncio.gather(*(_ask(dict(client), parts) for client, parts in by_client.items()))
    ends: Ends = {}
    for found, _ in answers:
        ends |= found
    # Sources and sinks with settings of their own may be on the same cluster.
    return ends, list(dict.fromkeys(problem for _, problem in answers if problem is not None))


async def _ask(client: Mapping[str, str], partitions: list[TopicPartition]) -> tuple[Ends, str | None]:
    level = client.get("isolation.level", "").upper() == "READ_COMMITTED"
    isolation = IsolationLevel.READ_COMMITTED if level else IsolationLevel.READ_UNCOMMITTED
    try:
        cluster = open_cluster(client_settings(client))
    except ConfigError as error:
        return {}, f"the brokers at {client['bootstrap.servers']} were not asked: {error}"
    why = f"no answer within {ANSWER_S:g} s"
    try:
        async with asyncio.timeout(ANSWER_S):
            if not partitions:
                await cluster.metadata([])
                return {}, None
            places: dict[TopicPartition | tuple[str, int], OffsetSpec | str | int | datetime] = {}
            places |= dict.fromkeys(partitions, OffsetSpec.LATEST)
            found = await list_offsets(cluster, places, isolation_level=isolation)
            return {each: offset.offset for each, offset in found.values_found.items()}, None
    except TimeoutError:
        pass
    except KafkaError as error:
        why = str(error)
    finally:
        cluster.close()
    return {}, f"the brokers at {client['bootstrap.servers']} are away, so the lag is not known: {why}"


def _reads_text(flow: Flow) -> str:
    sources = [source_text(each["format"], each["options"]) for each in flow["sources"]]
    return ", ".join([*flow["reads"], *sources]) or "-"


def _position_text(flow: Flow, is_seen: bool) -> str:
    if flow["checkpoint"] is None:
        return "-"
    return flow["position"] or ("not run yet" if is_seen else "?")


def _lag_text(flow: Flow) -> str:
    return "-" if flow["lag"] is None else str(flow["lag"])


def _writes_text(flow: Flow) -> str:
    if flow["kind"] == graphs.SINK:
        return f"sink {flow['target']} ({source_text(flow['format'], flow['options'])})"
    return f"{flow['kind']} {flow['target']}"
