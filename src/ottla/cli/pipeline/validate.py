"""`ottla pipeline validate`."""

from __future__ import annotations

import click

from ottla.cli.common.options import json_option
from ottla.cli.common.output import print_json, say, warn
from ottla.cli.common.waiting import wait_option
from ottla.cli.pipeline.options import (
    Clients,
    cluster_option,
    environment_options,
    pipeline_argument,
    session_for,
    session_options,
)
from ottla.cli.pipeline.run import topics_within
from ottla.errors import OttlaError
from ottla.errors.texts import counted
from ottla.spark.pipelines import checks
from ottla.spark.pipelines.checks import ListTopics
from ottla.spark.pipelines.environments import Environment
from ottla.spark.pipelines.outline import write_outline
from ottla.spark.pipelines.spec import Spec, read_spec

EXAMPLES = """\b
Examples:
  ottla pipeline validate orders
  ottla pipeline validate orders --no-graph      without starting Spark
  ottla pipeline validate orders --no-cluster    without asking for the topics
"""


@click.command("validate", epilog=EXAMPLES)
@pipeline_argument
@click.option("--cluster/--no-cluster", default=True, help="Ask the cluster whether the topics exist.  [default: ask]")
@click.option("--graph/--no-graph", default=True, help="Start Spark and analyse every query.  [default: analyse]")
@wait_option("10s")
@environment_options
@session_options
@cluster_option
@json_option
def validate(
    place: str,
    cluster: bool,
    graph: bool,
    wait_s: float,
    environment: Environment,
    master: str | None,
    remote: str | None,
    clients: Clients,
    as_json: bool,
) -> int:
    """Find mistakes in the pipeline in FOLDER, without running it.

    First what needs no Spark: the YAML files, options, Java, and the topics of the cluster. Then Spark analyses every query:
    names, columns, circles. Exit code 1 if anything is wrong.
    """
    list_topics = topics_within(wait_s) if cluster else None
    problems, flows = _find(place, environment, clients, list_topics, graph, master, remote, as_json)
    if as_json:
        print_json({"problems": problems, "flows": flows})
    else:
        for problem in problems:
            warn(problem)
        if not problems:
            say(f"{place} is valid{': ' + counted(flows, 'flow') if flows else ''}.")
    return 1 if problems else 0


def _find(
    place: str,
    environment: Environment,
    clients: Clients,
    list_topics: ListTopics | None,
    graph: bool,
    master: str | None,
    remote: str | None,
    quiet: bool,
) -> tuple[list[str], int]:
    """The problems, and how many flows were analysed. Without `list_topics` no cluster is asked."""
    try:
        spec = clients.of(read_spec(place, environment))
        spec.files()
        problems = [spec.masked(each) for each in before_spark(spec, list_topics, needs_java=graph and remote is None)]
        if problems or not graph:
            return problems, 0
        with session_for(spec, master, remote, quiet=quiet) as spark:
            from ottla.spark.pipelines.resolution import prepared

            with prepared(spec, spark) as resolved:
                write_outline(resolved)
                return [], len(resolved.graph.running_flows())
    except OttlaError as error:
        return [str(error)], 0


def before_spark(spec: Spec, list_topics: ListTopics | None, needs_java: bool) -> list[str]:
    """What is wrong that can be known without Spark."""
    problems = checks.option_problems(spec)
    if list_topics is not None and not problems:
        problems += checks.topic_problems(checks.topics_wanted(spec), list_topics)
    if needs_java:
        from ottla.spark.java import NoJava, find_java

        try:
            find_java()
        except NoJava as error:
            problems.append(str(error))
    return problems
