"""The `perf` verb: its actions, each imported when used, and what they share: flags, progress, figures.

Figures are a table, or JSON with --json. Progress goes to standard error: a bar on a terminal, a line now and then elsewhere.
"""

from __future__ import annotations

import asyncio
import math
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from ottla.cli.common.completion import complete_topics
from ottla.cli.common.connection import with_cluster
from ottla.cli.common.options import json_option, wide_option
from ottla.cli.common.output import is_for_people, make_wide, print_table, say
from ottla.cli.common.settings import ClientSettings
from ottla.cli.common.spelling import Actions
from ottla.client.cluster import Cluster, topic_error
from ottla.env.backoff import Backoff
from ottla.errors.codes import ErrorCode, error_of

F = TypeVar("F", bound=Callable[..., Any])

INTERRUPTED = 130
MB = 1024 * 1024
TOPIC_S = 10
"""How long a topic that was just created may take to get a leader."""


def topic_options(function: F) -> F:
    """Add the argument TOPIC, and Kafka's `--topic`."""
    function = click.option("--topic", metavar="NAME", shell_complete=complete_topics, help="Kafka's spelling of TOPIC.")(
        function
    )
    return click.argument("name", required=False, metavar="[TOPIC]", shell_complete=complete_topics)(function)


def chosen_topic(name: str | None, topic: str | None, example: str) -> str:
    """The topic, which must be named exactly once."""
    if name is None and topic is None:
        raise click.UsageError(f"name the topic, for example: {example}")
    if name is not None and topic is not None:
        raise click.UsageError(f"the topic is named twice, {name} and {topic}: leave one of them out")
    return name or topic or ""


interval_option = click.option(
    "--reporting-interval",
    "interval_ms",
    type=click.IntRange(1),
    default=5000,
    show_default=True,
    metavar="MS",
    help="Not on a terminal: how often a line on standard error says how far it is.",
)
metrics_option = click.option("--print-metrics", is_flag=True, help="Print the client's metrics at the end.")


def output_options(function: F) -> F:
    """Add the flags that say in which form results are shown."""
    return json_option(wide_option(function))


def print_figures(title: str | None, headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table; in a pipe with all its columns."""
    if not is_for_people(False, False):
        make_wide()
    print_table(title, headings, rows)


def print_metrics(metrics: Mapping[str, Mapping[str, float]]) -> None:
    """Print the metrics of a client, sorted by group and name."""
    for group, values in sorted(metrics.items()):
        for name, value in sorted(values.items()):
            say(f"{group} {name} {value:.3f}")


def check_topic(settings: ClientSettings, topic: str) -> None:
    """Raise if the topic is not there: a producer by itself would wait for a minute. Brokers may create it."""
    with_cluster(settings, lambda cluster: _find(cluster, topic))


async def _find(cluster: Cluster, name: str) -> None:
    deadline_s = asyncio.get_running_loop().time() + TOPIC_S
    backoff = Backoff(cluster.settings.retry_backoff_ms, cluster.settings.retry_backoff_max_ms, cluster.world.randomness.below)
    while True:
        topic = (await cluster.metadata([name], auto_create=True)).topics[0]
        code = topic.error_code
        if not code and not any(each.leader_id >= 0 for each in topic.partitions):
            code = ErrorCode.LEADER_NOT_AVAILABLE
        if not code:
            return
        known = error_of(code)
        if known is None or not known.retriable or not await cluster.wait(backoff, deadline_s):
            raise topic_error(code, name)


def ratio(amount: float, of: float) -> float:
    """`amount / of`; NaN if `of` is 0."""
    return amount / of if of else math.nan


def finite(value: float, digits: int = 3) -> float | None:
    """A number for JSON, which has no NaN and no infinity."""
    return round(value, digits) if math.isfinite(value) else None


def finite_metrics(metrics: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float | None]]:
    """The metrics for JSON."""
    return {group: {name: finite(value) for name, value in values.items()} for group, values in metrics.items()}


def percentile(histogram: Mapping[int, int], share: float) -> int:
    """The value at index `share` × count of all sorted values; 0 without values."""
    index = min(int(share * sum(histogram.values())), sum(histogram.values()) - 1)
    seen = 0
    for value in sorted(histogram):
        seen += histogram[value]
        if seen > index:
            return value
    return 0


PAUSE_S_MIN = 0.001


class Pace:
    """Records per second since a start; a negative rate has no limit."""

    def __init__(self, records_per_s: float, start_s: float) -> None:
        self._rate = records_per_s
        self._start_s = start_s

    def due(self, sent: int, now_s: float) -> int | None:
        """How many records to send now, after `sent`; None: any number."""
        if self._rate < 0:
            return None
        return max(0, int((now_s - self._start_s) * self._rate) + 1 - sent)

    def pause_s(self, sent: int, now_s: float) -> float:
        """How long to wait until the next record is due. Never less than `PAUSE_S_MIN`: high rates are met in small groups."""
        return max(PAUSE_S_MIN, self._start_s + sent / self._rate - now_s)


REDRAW_S = 0.2
BAR_CELLS = 16
_FULL, _EMPTY = "━", "╌"


class Progress:
    """How far a run is, on standard error: a line that is redrawn on a terminal, a new one each `interval_ms` elsewhere."""

    def __init__(self, count: int, is_wanted: bool, start_s: float, interval_ms: int = 5000) -> None:
        self._count = count
        self._is_wanted = is_wanted
        self._is_bar = sys.stderr.isatty()
        self._every_s = REDRAW_S if self._is_bar else interval_ms / 1000
        self._start_s = self._shown_s = start_s
        self._has_bar = False

    def show(self, done: int, size_bytes: int, now_s: float) -> None:
        """Show it, unless that was done a moment ago."""
        if not self._is_wanted or now_s - self._shown_s < self._every_s:
            return
        self._shown_s = now_s
        line = progress_line(done, self._count, size_bytes, now_s - self._start_s)
        if not self._is_bar:
            say(line, err=True)
            return
        bar = _bar(done, self._count)
        sys.stderr.write(f"\r{f'{bar} {line}'[: shutil.get_terminal_size().columns - 1]}\x1b[K")
        sys.stderr.flush()
        self._has_bar = True

    def clear(self) -> None:
        """Remove the bar: something else is printed next."""
        if self._has_bar:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._has_bar = False


def _bar(done: int, count: int) -> str:
    full = int(min(1.0, done / count) * BAR_CELLS)
    return f"{_FULL * full}{_EMPTY * (BAR_CELLS - full)}"


def progress_line(done: int, count: int, size_bytes: int, seconds: float) -> str:
    """How many records are done, and how fast that was."""
    rates = f"{done / seconds:,.0f} records/s  {size_bytes / seconds / MB:,.1f} MB/s" if seconds > 0 else ""
    return f"{min(1.0, done / count):4.0%}  {done:,} of {count:,}  {rates}"


EXAMPLES = """\b
Examples:
  ottla perf produce load --num-records 1000000 --record-size 100
  ottla perf consume load --num-records 1000000
  ottla perf latency load --num-records 1000
\b
Kafka's names of the same tools work, too: ottla producer-perf-test, consumer-perf-test and e2e-latency.
"""

_HERE = "ottla.cli.perf"
ACTIONS = {
    "produce": (f"{_HERE}.produce", "produce", "Send records as fast as possible, or at a given rate."),
    "consume": (f"{_HERE}.consume", "consume", "Read records as fast as possible."),
    "latency": (f"{_HERE}.latency", "latency", "Send records one by one, and wait for each to arrive at a consumer."),
}


@click.command("perf", cls=Actions, actions=ACTIONS, epilog=EXAMPLES)
def perf() -> None:
    """Measure throughput and latency of a cluster.

    Takes the flags of Kafka's perf tools. The output is a table, JSON with --json. `ottla perf ACTION --help` shows the flags
    of an action.
    """
