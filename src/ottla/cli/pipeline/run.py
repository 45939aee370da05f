"""`ottla pipeline run`."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from ottla.cli.common.options import json_option, yes_option
from ottla.cli.common.output import can_ask, confirm, say, warn
from ottla.cli.common.waiting import wait_option
from ottla.cli.pipeline.clusters import Outages, topics_within
from ottla.cli.pipeline.options import (
    bootstrap_option,
    environment_options,
    pipeline_argument,
    session_for,
    session_options,
    shown,
)
from ottla.cli.pipeline.progress_line import make_reporter
from ottla.cli.pipeline.summary import print_summary
from ottla.spark.pipelines import checks, storage
from ottla.spark.pipelines.checks import ListTopics
from ottla.spark.pipelines.environments import Environment
from ottla.spark.pipelines.errors import FlowFailed, PipelineError
from ottla.spark.pipelines.hooks import told_on_failure
from ottla.spark.pipelines.outline import write_outline
from ottla.spark.pipelines.schedule import Schedule, parse_schedule
from ottla.spark.pipelines.spec import Spec, read_spec

if TYPE_CHECKING:
    from ottla.spark.pipelines.resolving import Resolved
    from ottla.spark.pipelines.running import Run, Totals

EXAMPLES = """\b
Examples:
  ottla pipeline run orders
  ottla pipeline run orders --schedule continuous
  ottla pipeline run orders --master spark://host:7077
  ottla pipeline run orders --reset --yes       from the beginning again
"""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@click.command("run", epilog=EXAMPLES)
@pipeline_argument
@click.option("--schedule", metavar="WHEN", help="once, continuous or 'every 30s', instead of what ottla.yml says.")
@click.option("--reset", is_flag=True, help="Delete checkpoints, state and tables first: everything is read again.")
@yes_option
@wait_option("5m")
@environment_options
@session_options
@bootstrap_option
@json_option
def run(
    place: str,
    schedule: str | None,
    reset: bool,
    yes: bool,
    wait_s: float,
    environment: Environment,
    master: str | None,
    remote: str | None,
    bootstrap_server: str | None,
    as_json: bool,
) -> None:
    """Run the pipeline in FOLDER (default: the working directory). It continues where the last run stopped.

    Ctrl-C stops it after the batches that are under way. With --json, a line for each batch and one at the end. Brokers that
    are away are waited for, at the start and during the run, as long as --wait says.
    """
    spec = read_spec(place, environment).with_bootstrap(bootstrap_server)
    when = spec.schedule if schedule is None else parse_schedule(schedule)
    with told_on_failure(spec, warn):
        check_before_spark(spec, topics_within(wait_s))
        with storage.locked(spec):
            if reset:
                _reset(spec, yes)
            with session_for(spec, master, remote, quiet=as_json) as spark:
                totals = run_pipeline(spec, spark, when, as_json, Outages(spec, wait_s))
    print_summary(totals, as_json)


def check_before_spark(spec: Spec, list_topics: ListTopics) -> None:
    """Raise for mistakes that show before Spark starts: all of them but the last as warnings."""
    problems = checks.option_problems(spec) or checks.topic_problems(checks.topics_wanted(spec), list_topics)
    for problem in problems[:-1]:
        warn(spec.masked(problem))
    if problems:
        raise PipelineError(spec.masked(problems[-1]))


def run_pipeline(
    spec: Spec, spark: Any, when: Schedule, as_json: bool, outages: Outages, flows: tuple[str, ...] = ()
) -> Totals:
    """Run it, with a live line on a terminal, through outages. A broken flow leaves Spark's pages in the log file.

    A backfill runs these `flows`, or all that it can.
    """
    from ottla.spark.pipelines.resolving import prepared
    from ottla.spark.pipelines.running import Run, Totals

    try:
        with prepared(spec, spark) as resolved, make_reporter(as_json) as report:
            if spec.backfill is None:
                write_outline(resolved)
            else:
                resolved = _chosen(resolved, flows)
            totals = Totals()
            while True:
                one = Run(resolved, spark, when, report, totals)
                try:
                    with _stopped_by_signals(one), outages.told():
                        return one.run()
                except FlowFailed as failure:
                    if not outages.wait_for_end(failure):
                        raise
    except FlowFailed as failure:
        log = storage.log_file(spec)
        with open(log, "a", encoding="utf-8") as file:
            file.write(spec.masked(f"\n{failure}\n{failure.trace}\n"))
        raise FlowFailed(failure.flow, f"{failure}. {shown(log)} has the trace", failure.trace) from None


def _chosen(resolved: Resolved, flows: tuple[str, ...]) -> Resolved:
    from ottla.spark.pipelines.backfills import chosen

    found, left_out = chosen(resolved, flows)
    for sentence in left_out:
        warn(sentence)
    return found


def _reset(spec: Spec, yes: bool) -> None:
    if not yes and not can_ask():
        raise click.UsageError(
            f"--reset deletes the offsets, state and tables of {spec.name}: add --yes to say that you mean it"
        )
    confirm(f"Delete the offsets, state and tables of {spec.name} in {spec.state}, and read everything again?", yes)
    if storage.reset(spec):
        say(f"Deleted the offsets, state and tables of {spec.name}.", err=True)


@contextmanager
def _stopped_by_signals(one: Run) -> Iterator[None]:
    """The first signal stops the run in good order, a second one ends it at once."""

    def on_signal(number: int, frame: Any) -> None:
        one.stop()
        signal.signal(number, signal.default_int_handler)
        say(f"{signal.Signals(number).name}: stopping after the batches that are under way", err=True)

    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number in SIGNALS:
        # A signal that the process inherited as ignored stays ignored: SIGHUP under nohup.
        if before[number] is not signal.SIG_IGN:
            signal.signal(number, on_signal)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
