"""`ottla pipeline run`: flows until a signal or the end, a live line on a terminal, and what was done at the end.

An outage of brokers is reported when it begins and when it ends. Spark's queries retry by themselves for some minutes. If one
breaks, the run waits for the brokers and starts the flows again from their checkpoints.
"""

from __future__ import annotations

import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ottla.cli.common.connection import with_cluster
from ottla.cli.common.options import json_option, yes_option
from ottla.cli.common.output import can_ask, confirm, escape, fit, is_for_people, print_json, print_table, say, warn
from ottla.cli.common.settings import ClientSettings
from ottla.cli.common.waiting import shown_duration, wait_option, with_cluster_awaited
from ottla.cli.pipeline.options import (
    Clients,
    cluster_option,
    environment_options,
    metrics_option,
    pipeline_argument,
    session_for,
    session_options,
    shown,
    ui_option,
)
from ottla.client.admin.topic_descriptions import list_topics
from ottla.client.cluster import Cluster
from ottla.config.client import admin_settings
from ottla.config.client.kinds import ADMIN
from ottla.env.real.tls_errors import protocol_mismatch
from ottla.errors import KafkaError, UnreachableError
from ottla.spark.pipelines import checks, storage
from ottla.spark.pipelines.checks import ListTopics
from ottla.spark.pipelines.environments import Environment
from ottla.spark.pipelines.errors import FlowFailed, PipelineError
from ottla.spark.pipelines.graph import TABLE, FlowDefinition, Graph
from ottla.spark.pipelines.hooks import told_on_failure
from ottla.spark.pipelines.metrics import MetricsPage, RunMetrics
from ottla.spark.pipelines.outline import write_outline
from ottla.spark.pipelines.run import FlowProgress
from ottla.spark.pipelines.spec import ONCE, Schedule, Spec, parse_schedule, read_spec
from ottla.spark.pipelines.storage import position_of

if TYPE_CHECKING:
    from ottla.spark.pipelines.resolution import Resolved
    from ottla.spark.pipelines.run import Report, Run, Totals


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
@cluster_option
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
    clients: Clients,
    as_json: bool,
) -> None:
    """Run the pipeline in FOLDER (default: the working directory). It continues where the last run stopped.

    Ctrl-C stops it after the batches that are under way. With --json, a line for each batch and one at the end. Brokers that
    are away are waited for, at the start and during the run, as long as --wait says.
    """
    if place == "." and reset and reset[-1] != ALL and Path(reset[-1]).is_dir():
        raise click.UsageError(f"--reset {reset[-1]} resets one flow: to reset the pipeline, write {reset[-1]} --reset")
    spec = clients.of(read_spec(place, environment))
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
    from ottla.spark.pipelines.resolution import prepared
    from ottla.spark.pipelines.run import Run, Totals

    try:
        with prepared(spec, spark) as resolved, make_reporter(as_json) as report:
            metrics = metrics or RunMetrics(spec.name)
            if spec.backfill is None:
                metrics.show(write_outline(resolved))
                settle_checkpoints(spec, resolved.graph, decided)
            else:
                resolved = _chosen(resolved, flows)
            problems = checks.topic_problems(resolved.graph.dead_letter_topics(), topics_within(outages.wait_s))
            if problems:
                raise PipelineError(f"dead letters need a topic: {problems[0]}")
            totals = Totals()
            # The summary of a run that ends by itself says the same.
            notice = _ignore if when.kind == ONCE else lambda text: say(text, err=True)
            while True:
                one = Run(resolved, spark, when, _both(report, metrics.take), totals, notice)
                metrics.follow(one)
                try:
                    with _stopped_by_signals(one), outages.told():
                        return one.run()
                except FlowFailed as failure:
                    metrics.broke(failure)
                    if not outages.wait_for_end(failure):
                        raise
    except FlowFailed as failure:
        log = storage.log_file(spec)
        with open(log, "a", encoding="utf-8") as file:
            file.write(spec.masked(f"\n{failure}\n{failure.trace}\n"))
        raise FlowFailed(failure.flow, f"{failure}. {shown(log)} has the trace", failure.trace) from None


def _chosen(resolved: Resolved, flows: tuple[str, ...]) -> Resolved:
    from ottla.spark.pipelines.backfill import chosen

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


LOG_INTERVAL_S = 10.0
"""The time between two lines in a file or pipe."""
_SEPARATOR = "  │  "


@contextmanager
def make_reporter(as_json: bool) -> Iterator[Callable[[FlowProgress], None]]:
    """A function to call with each batch: prints JSON lines, redraws a line, or prints one now and then where lines stay."""
    if as_json:
        yield lambda progress: print_json(progress.as_json())
        return
    latest: dict[str, FlowProgress] = {}
    if not sys.stderr.isatty():
        yield _occasional(latest)
        return

    def redraw(progress: FlowProgress) -> None:
        latest[progress.flow] = progress
        width = shutil.get_terminal_size().columns
        sys.stderr.write(f"\r\x1b[K{fit(line_of([*latest.values()]), width - 1)}")
        sys.stderr.flush()

    try:
        yield redraw
    finally:
        if latest:
            sys.stderr.write("\n")
            sys.stderr.flush()


def _occasional(latest: dict[str, FlowProgress]) -> Callable[[FlowProgress], None]:
    printed_s = time.monotonic()

    def report(progress: FlowProgress) -> None:
        nonlocal printed_s
        latest[progress.flow] = progress
        if time.monotonic() - printed_s >= LOG_INTERVAL_S:
            printed_s = time.monotonic()
            say(line_of([*latest.values()]), err=True)

    return report


def line_of(flows: list[FlowProgress]) -> str:
    """The numbers of all flows in one line, the latest batch of each."""
    return _SEPARATOR.join(text_of(each) for each in flows)


def text_of(progress: FlowProgress) -> str:
    """The numbers of one flow."""
    lag = "" if progress.lag is None else f", lag {progress.lag:,}"
    batch = f"batch {progress.batch} in {progress.batch_ms / 1000:.1f} s"
    return f"{escape(progress.flow)}: {progress.rows_per_s:,.0f} rows/s, {batch}{lag}"


def print_summary(totals: Totals, as_json: bool) -> None:
    """Print rows, batches and lag of each flow, and what is wrong with its data."""
    flows = [
        {
            "flow": name,
            "rows": rows,
            "batches": totals.batches[name],
            "lag": totals.lag[name],
            "checks": [each.as_json() for each in totals.checks.get(name, {}).values()],
        }
        for name, rows in totals.rows.items()
    ]
    if as_json:
        print_json({"flows": flows, "seconds": round(totals.seconds, 1)})
    elif not flows:
        say(f"No new records; looked for {totals.seconds:.1f} s.")
    elif is_for_people(as_json):
        rows = [(each["flow"], f"{each['rows']:,}", each["batches"], each["lag"]) for each in flows]
        print_table(f"Done in {totals.seconds:.1f} s", ("Flow", "#Rows", "#Batches", "#Lag"), rows)
    else:
        for each in flows:
            lag = "-" if each["lag"] is None else str(each["lag"])
            say(str(each["flow"]), f"{each['rows']} rows", f"{each['batches']} batches", f"lag {lag}")
    if not as_json:
        for name, checks in totals.checks.items():
            for check in checks.values():
                if check.bad:
                    warn(f"the flow {name}: {check.text()}")


LOOK_EVERY_S = 5.0
"""How often the brokers are asked for a sign of life during a run."""


def topics_within(wait_s: float) -> ListTopics:
    """A function that lists the topics of a cluster, and waits for its brokers up to `wait_s`."""

    def topics_of(client: Mapping[str, str]) -> Collection[str]:
        settings = client_settings(client)
        try:
            return with_cluster_awaited(settings, list_topics, 0)
        except UnreachableError:
            # A port of another protocol closes connections as a node does that starts, but it does not mend itself.
            if not wait_s or protocol_mismatch(client):
                raise
        return with_cluster_awaited(settings, list_topics, wait_s)

    return topics_of


def client_settings(client: Mapping[str, str]) -> ClientSettings:
    """Without the settings of the environment: the clients in Spark do not know them."""
    known = {name: value for name, value in client.items() if name in ADMIN.table}
    return ClientSettings(admin_settings(config=known), known)


async def _knock(cluster: Cluster) -> None:
    await cluster.metadata([])


class Outages:
    """Outages of the clusters that the topics of a pipeline are in."""

    def __init__(self, spec: Spec, wait_s: float) -> None:
        self._clusters = [client_settings(client) for client, _ in checks.by_cluster(checks.topics_wanted(spec))]
        self.wait_s = wait_s

    @contextmanager
    def told(self) -> Iterator[None]:
        """While this lasts, a thread says when brokers go away and when they are back."""
        ended = threading.Event()
        watching = threading.Thread(target=self._watch, args=(ended,), name="ottla-outages", daemon=True)
        watching.start()
        try:
            yield
        finally:
            ended.set()

    def _watch(self, ended: threading.Event) -> None:
        lost_s: dict[int, float] = {}
        while not ended.wait(LOOK_EVERY_S):
            for index, settings in enumerate(self._clusters):
                reason = _why_away(settings)
                servers = settings.properties["bootstrap.servers"]
                if ended.is_set():
                    return
                if reason is not None and index not in lost_s:
                    lost_s[index] = time.monotonic()
                    _tell(f"lost the brokers at {servers}, the flows wait for them: {reason}")
                elif reason is None and index in lost_s:
                    _tell(f"{servers} answers again after {shown_duration(time.monotonic() - lost_s.pop(index))}")

    def wait_for_end(self, failure: Exception) -> bool:
        """Whether brokers were away and are back, so that what broke with `failure` can go on."""
        away = [settings for settings in self._clusters if _why_away(settings) is not None]
        if not away or not self.wait_s:
            return False
        _tell(f"{failure}; it goes on when the brokers are back")
        for settings in away:
            with_cluster_awaited(settings, _knock, self.wait_s)
        return True


def _why_away(settings: ClientSettings) -> str | None:
    try:
        with_cluster(settings, _knock)
    except KafkaError as error:
        return str(error)
    return None


def _tell(text: str) -> None:
    """Print a message; on a terminal it takes the place of the live line, which is drawn again below it."""
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    warn(text)
