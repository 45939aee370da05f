"""`ottla pipeline run`."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ottla.cli.common.options import json_option, yes_option
from ottla.cli.common.output import can_ask, confirm, say, warn
from ottla.cli.common.waiting import wait_option
from ottla.cli.pipeline.clusters import Outages, topics_within
from ottla.cli.pipeline.options import (
    bootstrap_option,
    environment_options,
    metrics_option,
    pipeline_argument,
    session_for,
    session_options,
    shown,
    ui_option,
)
from ottla.cli.pipeline.progress_line import make_reporter
from ottla.cli.pipeline.summary import print_summary
from ottla.spark.pipelines import checks, storage
from ottla.spark.pipelines.checks import ListTopics
from ottla.spark.pipelines.environments import Environment
from ottla.spark.pipelines.errors import FlowFailed, PipelineError
from ottla.spark.pipelines.graph import TABLE, FlowDefinition, Graph
from ottla.spark.pipelines.hooks import told_on_failure
from ottla.spark.pipelines.metrics import MetricsPage, RunMetrics
from ottla.spark.pipelines.outline import write_outline
from ottla.spark.pipelines.positions import position_of
from ottla.spark.pipelines.progress import FlowProgress
from ottla.spark.pipelines.schedule import ONCE, Schedule, parse_schedule
from ottla.spark.pipelines.spec import Spec, read_spec

if TYPE_CHECKING:
    from ottla.spark.pipelines.resolving import Resolved
    from ottla.spark.pipelines.running import Report, Run, Totals

EXAMPLES = """\b
Examples:
  ottla pipeline run orders
  ottla pipeline run orders --schedule continuous
  ottla pipeline run orders --master spark://host:7077
  ottla pipeline run orders --metrics-port 0.0.0.0:9464
  ottla pipeline run orders --reset --yes       from the beginning again
  ottla pipeline run orders --renamed keep_large=keep_large_orders
"""
ALL = "*"
"""--reset without the name of a flow."""


class Decisions(NamedTuple):
    """What the command line says about checkpoints."""

    reset: tuple[str, ...] = ()
    forget: tuple[str, ...] = ()


UNDECIDED = Decisions()
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@click.command("run", epilog=EXAMPLES)
@pipeline_argument
@click.option("--schedule", metavar="WHEN", help="once, continuous or 'every 30s', instead of what ottla.yml says.")
@click.option(
    "--reset",
    multiple=True,
    is_flag=False,
    flag_value=ALL,
    metavar="[FLOW]",
    help="Delete checkpoints, state and tables first, of all flows or of FLOW: everything is read again.",
)
@click.option(
    "--renamed", multiple=True, metavar="OLD=NEW", help="The flow NEW was called OLD: it continues with its checkpoint."
)
@click.option("--forget", multiple=True, metavar="FLOW", help="Leave the checkpoint of FLOW, which is no flow any more.")
@yes_option
@wait_option("5m")
@metrics_option
@ui_option
@environment_options
@session_options
@bootstrap_option
@json_option
def run(
    place: str,
    schedule: str | None,
    reset: tuple[str, ...],
    renamed: tuple[str, ...],
    forget: tuple[str, ...],
    yes: bool,
    wait_s: float,
    metrics_address: tuple[str, int] | None,
    has_ui: bool,
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
    if place == "." and reset and reset[-1] != ALL and Path(reset[-1]).is_dir():
        raise click.UsageError(f"--reset {reset[-1]} resets one flow: to reset the pipeline, write {reset[-1]} --reset")
    spec = read_spec(place, environment).with_bootstrap(bootstrap_server)
    spec = replace(spec, renamed=spec.renamed | dict(map(_pair, renamed)))
    when = spec.schedule if schedule is None else parse_schedule(schedule)
    metrics = RunMetrics(spec.name)
    with _ended_by_sigterm(), told_on_failure(spec, warn), _served(metrics, metrics_address):
        check_before_spark(spec, topics_within(wait_s))
        with storage.locked(spec):
            if reset:
                _ask_for_reset(spec, reset, yes)
            with session_for(spec, master, remote, quiet=as_json, has_ui=has_ui) as spark:
                if ALL in reset and storage.reset(spec):
                    say(f"Deleted the offsets, state and tables of {spec.name}.", err=True)
                decided = Decisions(tuple(name for name in reset if name != ALL), forget)
                totals = run_pipeline(spec, spark, when, as_json, Outages(spec, wait_s), decided=decided, metrics=metrics)
    print_summary(totals, as_json)


def check_before_spark(spec: Spec, list_topics: ListTopics) -> None:
    """Raise for mistakes that show before Spark starts: all of them but the last as warnings."""
    problems = checks.option_problems(spec) or checks.topic_problems(checks.topics_wanted(spec), list_topics)
    for problem in problems[:-1]:
        warn(spec.masked(problem))
    if problems:
        raise PipelineError(spec.masked(problems[-1]))


def run_pipeline(
    spec: Spec,
    spark: Any,
    when: Schedule,
    as_json: bool,
    outages: Outages,
    flows: tuple[str, ...] = (),
    decided: Decisions = UNDECIDED,
    metrics: RunMetrics | None = None,
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
                settle_checkpoints(spec, resolved.graph, decided)
            else:
                resolved = _chosen(resolved, flows)
            problems = checks.topic_problems(resolved.graph.dead_letter_topics(), topics_within(outages.wait_s))
            if problems:
                raise PipelineError(f"dead letters need a topic: {problems[0]}")
            totals = Totals()
            # The summary of a run that ends by itself says the same.
            notice = _ignore if when.kind == ONCE else lambda text: say(text, err=True)
            metrics = metrics or RunMetrics(spec.name)
            while True:
                one = Run(resolved, spark, when, _both(report, metrics.take), totals, notice)
                metrics.follow(one)
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


def settle_checkpoints(spec: Spec, graph: Graph, decided: Decisions) -> None:
    """Rename, delete or leave the checkpoints that were named, and refuse to run if one is left that no flow has.

    A flow with another name begins with a new checkpoint: it would write to an exactly-once topic what is there already.
    """
    flows = {flow.name: flow for flow in graph.running_flows()}
    if storage.files_of(spec) is None:
        warn(
            f"the checkpoints in {spec.state} cannot be seen through Spark Connect: a flow that was renamed reads and writes "
            "everything again"
        )
        if not any(decided) and not spec.renamed:
            return
    for old, new in spec.renamed.items():
        if new not in flows:
            raise PipelineError(
                f"{old} cannot be renamed to {new}: there is no such flow; there are {', '.join(sorted(flows))}"
            )
        if old not in flows and storage.rename_checkpoint(spec, old, new, flows[new].target):
            say(f"The flow {new} continues with the checkpoint of {old}.", err=True)
    unowned = storage.unowned_checkpoints(spec, flows)
    for name in decided.reset:
        if name not in flows and name not in unowned and name not in storage.forgotten(spec):
            raise PipelineError(f"--reset {name}: there is no such flow or checkpoint; flows are {', '.join(sorted(flows))}")
        target = flows[name].target if name in flows else None
        is_table = target is not None and graph.outputs[target].kind == TABLE
        if storage.reset_flow(spec, name, target if is_table else None):
            say(f"Deleted the checkpoint{' and the table' if is_table else ''} of {name}.", err=True)
    for name in decided.forget:
        if name in flows:
            raise PipelineError(f"--forget {name}: it is a flow of the pipeline; --reset {name} starts it over")
        storage.forget(spec, name)
    for name in storage.unowned_checkpoints(spec, flows):
        _settle(spec, name, [each for each in flows if storage.position_batch(spec, each) < 0], flows)


def _settle(spec: Spec, name: str, new: list[str], flows: dict[str, FlowDefinition]) -> None:
    """Ask what becomes of a checkpoint that no flow has; refuse to run without a terminal."""
    position = position_of(spec, name)
    read = f", which has read up to {position.text()}" if position is not None else ""
    sentence = f"there is a checkpoint of {name}{read}, but no flow of that name"
    guess = new[0] if len(new) == 1 else "NEW"
    ways = (
        f"If it was renamed, its records would be read and written again: continue with --renamed {name}={guess} (or "
        f"renamed: in ottla.yml). If it is gone, leave it with --forget {name} or delete it with --reset {name}"
    )
    if not can_ask():
        raise PipelineError(f"{sentence}. {ways}")
    say(f"{sentence[0].upper()}{sentence[1:]}.", err=True)
    words = "Forget it, or reset (delete) it"
    if new:
        words = f"Which flow is it now? {', '.join(new)}; or forget or reset (delete) it"
    answer = click.prompt(f"{words}, or stop", type=click.Choice([*new, "forget", "reset", "stop"]), default="stop", err=True)
    if answer == "reset" and not click.confirm(f"Delete the checkpoint of {name}?", default=False, err=True):
        answer = "stop"
    if answer == "stop":
        raise PipelineError(f"nothing was changed. {ways}")
    if answer == "forget":
        storage.forget(spec, name)
    elif answer == "reset":
        storage.reset_flow(spec, name)
    else:
        storage.rename_checkpoint(spec, name, answer, flows[answer].target)


def _pair(text: str) -> tuple[str, str]:
    old, separator, new = text.partition("=")
    if not separator or not old or not new:
        raise click.UsageError(f"--renamed is {text}: write OLD=NEW, the old and the new name of a flow")
    return old, new


def _both(first: Report, second: Report) -> Report:
    def report(progress: FlowProgress) -> None:
        first(progress)
        second(progress)

    return report


@contextmanager
def _served(metrics: RunMetrics, address: tuple[str, int] | None) -> Iterator[None]:
    """While this lasts, the metrics are served at `address`."""
    if address is None:
        yield
        return
    with MetricsPage(metrics, *address) as page:
        say(f"Metrics are at {page.address}/metrics", err=True)
        yield


def _ignore(text: str) -> None:
    pass


def _ask_for_reset(spec: Spec, reset: tuple[str, ...], yes: bool) -> None:
    whose = spec.name if ALL in reset else ", ".join(reset)
    if not yes and not can_ask():
        raise click.UsageError(f"--reset deletes the offsets, state and tables of {whose}: add --yes to say that you mean it")
    confirm(f"Delete the offsets, state and tables of {whose} in {spec.state}, and read everything again?", yes)


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """SIGTERM ends what has no run to stop yet. The first process of a container would ignore it without a handler."""

    def on_signal(number: int, frame: Any) -> None:
        sys.exit(128 + number)

    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGTERM, on_signal)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


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
