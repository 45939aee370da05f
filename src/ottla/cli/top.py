"""`ottla top`: nodes, topics and groups of a cluster, live on a terminal; once as tables or JSON."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import click
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ottla.cli.common.connection import with_cluster
from ottla.cli.common.explanations import explain
from ottla.cli.common.options import cluster_options, json_option, plain_option, wide_option
from ottla.cli.common.output import escape, is_for_people, print_json, print_table
from ottla.cli.common.settings import ClientSettings
from ottla.cli.common.waiting import shown_duration
from ottla.client.admin.log_dirs import describe_log_dirs
from ottla.client.cluster import Cluster
from ottla.client.health import ClusterState, cluster_state, problems_of
from ottla.client.lag import LagMonitor, LagReader, WatchedGroup
from ottla.client_core.lag import Status
from ottla.errors import KafkaError
from ottla.ids import TopicPartition

INTERVAL_S = 2.0
DISKS_S = 30.0
"""Sizes change slowly, and a broker counts all of its replicas for them."""
EXAMPLES = """\b
Examples:
  ottla top
  ottla top --interval 5 --rows 30
  ottla top --once --json | jq '.groups[] | select(.lagSeconds > 60)'
"""
STYLES = {Status.OK: "green", Status.IDLE: "dim", Status.NOTFOUND: "dim", Status.WARN: "yellow"}


class NodeRow(NamedTuple):
    """A broker."""

    id: int
    address: str
    rack: str | None
    state: str
    leaders: int
    replicas: int
    out_of_sync: int
    bytes: int | None
    free_percent: float | None


class TopicRow(NamedTuple):
    """A topic. Rates are None until it was looked at twice."""

    name: str
    partitions: int
    replicas: int
    out_of_sync: int
    rate: float | None
    records: int
    bytes: int | None


class View(NamedTuple):
    """One look at a cluster."""

    health: str
    nodes: list[NodeRow]
    topics: list[TopicRow]
    groups: list[WatchedGroup]


class Top:
    """Looks at a cluster, and remembers the last look for rates."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._monitor = LagMonitor(LagReader(cluster, times_max=200))
        self._ends: dict[TopicPartition, int] = {}
        self._looked_s = 0.0
        self._sizes: dict[int, tuple[dict[str, int], int, float | None]] = {}
        self._sized_s = -DISKS_S

    async def look(self) -> View:
        state, ends, groups = await asyncio.gather(
            cluster_state(self._cluster), self._monitor.reader.ends(), self._monitor.look()
        )
        now_s = asyncio.get_running_loop().time()
        if now_s - self._sized_s >= DISKS_S:
            self._sizes, self._sized_s = await self._ask_sizes(), now_s
        problems = problems_of(state)
        view = View(
            "healthy"
            if not problems
            else f"{problems[0].text}{f' (and {len(problems) - 1} more)' if len(problems) > 1 else ''}",
            self._nodes(state),
            self._topics(state, ends, now_s - self._looked_s if self._ends else None),
            sorted(groups, key=lambda each: (each.status in (Status.OK, Status.IDLE), -each.lag.lag, each.lag.group)),
        )
        self._ends, self._looked_s = ends, now_s
        return view

    async def _ask_sizes(self) -> dict[int, tuple[dict[str, int], int, float | None]]:
        """By broker: bytes by topic, bytes in all, and the free share of its fullest disk."""
        results = await describe_log_dirs(self._cluster)
        _ = results.errors  # brokers that are down are shown as such
        found = {}
        for broker, directories in results.values_found.items():
            topics: dict[str, int] = {}
            free = []
            for each in directories.values():
                for key, replica in each.replicas.items():
                    topics[key.topic] = topics.get(key.topic, 0) + replica.size_bytes
                if each.total_bytes and each.usable_bytes is not None:
                    free.append(100 * each.usable_bytes / each.total_bytes)
            found[broker] = topics, sum(topics.values()), min(free, default=None)
        return found

    def _nodes(self, state: ClusterState) -> list[NodeRow]:
        partitions = [each for topic in state.topics.values() for each in topic.partitions]
        leader = -1 if state.quorum is None else state.quorum.leader_id
        found = []
        for node in sorted(state.described.nodes.values(), key=lambda each: each.id):
            held = [each for each in partitions if node.id in each.replicas]
            _, size, free = self._sizes.get(node.id, ({}, None, None))
            condition = "fenced" if node.is_fenced else "controller" if node.id == leader else "up"
            led = sum(each.leader == node.id for each in held)
            out = sum(node.id not in each.isr for each in held)
            found.append(NodeRow(node.id, f"{node.host}:{node.port}", node.rack, condition, led, len(held), out, size, free))
        return found

    def _topics(self, state: ClusterState, ends: dict[TopicPartition, int], passed_s: float | None) -> list[TopicRow]:
        found = []
        for topic in state.topics.values():
            keys = [TopicPartition(topic.name, each.partition) for each in topic.partitions]
            known = [key for key in keys if key in ends]
            if topic.is_internal:
                continue
            grown = sum(max(0, ends[key] - self._ends.get(key, ends[key])) for key in known)
            found.append(
                TopicRow(
                    topic.name,
                    len(keys),
                    max((len(each.replicas) for each in topic.partitions), default=0),
                    sum(len(each.isr) < len(each.replicas) for each in topic.partitions),
                    grown / passed_s if passed_s else None,
                    sum(ends[key] for key in known),
                    sum(sizes[0].get(topic.name, 0) for sizes in self._sizes.values()) if self._sizes else None,
                )
            )
        return sorted(found, key=lambda each: (-(each.rate or 0), -each.records, each.name))


@click.command("top", epilog=EXAMPLES)
@click.option("--interval", "interval_s", type=click.FloatRange(0.2), default=INTERVAL_S, show_default=True, metavar="SECONDS")
@click.option("--rows", type=click.IntRange(1), metavar="N", help="Topics and groups to show.  [default: as many as fit]")
@click.option("--once", is_flag=True, help="Look for one interval, print and end.")
@json_option
@plain_option
@wide_option
@cluster_options()
def top(settings: ClientSettings, interval_s: float, rows: int | None, once: bool, as_json: bool, plain: bool) -> None:
    """Show nodes, topics and consumer groups live, until Ctrl-C: the busiest topics and the groups in trouble first.

    In a pipe, with --json and with --once it looks twice, an interval apart, and ends. Works with any Kafka cluster.
    """
    is_live = not once and not as_json and is_for_people(as_json, plain) and sys.stdout.isatty()

    async def work(cluster: Cluster) -> None:
        watch = Top(cluster)
        if is_live:
            await _live(watch, interval_s, rows)
            return
        await watch.look()
        await asyncio.sleep(interval_s)
        view = await watch.look()
        if as_json:
            print_json(view_json(view))
        else:
            for title, headings, cells in _tables(view, rows):
                print_table(title, headings, [[cell for cell, _ in row] for row in cells])

    with_cluster(settings, work, is_patient=is_live)


async def _live(watch: Top, interval_s: float, rows: int | None) -> None:
    console = Console(highlight=False)
    shown: Any = Text("looking …")
    with Live(shown, console=console, screen=True, auto_refresh=False) as live:
        while True:
            try:
                view = await watch.look()
                fit = max(3, (console.height - len(view.nodes) - 11) // 2)
                shown = Group(*map(_drawn, _tables(view, rows or fit)))
                live.update(shown, refresh=True)
            except KafkaError as error:  # what was shown last stays, below why it is old
                live.update(Group(Text(f"not answering: {escape(explain(error))}", style="red"), shown), refresh=True)
            await asyncio.sleep(interval_s)


Cell = tuple[str, str]
"""A text and its style."""


def _tables(view: View, rows: int | None) -> list[tuple[str, list[str], list[list[Cell]]]]:
    """Title, headings and cells of nodes, topics and groups. `#` marks columns of numbers."""
    nodes = [
        [
            (str(each.id), ""),
            (each.address, ""),
            (each.state, "red" if each.state == "fenced" else "green"),
            (str(each.leaders), ""),
            (str(each.replicas), ""),
            (str(each.out_of_sync), "red" if each.out_of_sync else ""),
            (_size(each.bytes), ""),
            (
                "-" if each.free_percent is None else f"{each.free_percent:.0f} %",
                "red" if (each.free_percent or 100) < 15 else "",
            ),
        ]
        for each in view.nodes
    ]
    topics = [
        [
            (each.name, ""),
            (str(each.partitions), ""),
            (str(each.replicas), ""),
            (str(each.out_of_sync), "red" if each.out_of_sync else ""),
            (_rate(each.rate), ""),
            (f"{each.records:,}", ""),
            (_size(each.bytes), ""),
        ]
        for each in view.topics[:rows]
    ]
    groups = [
        [
            (each.lag.group, ""),
            (each.lag.state, ""),
            (each.status.name, STYLES.get(each.status, "red")),
            (f"{each.lag.lag:,}", ""),
            ("-" if each.lag.lag_s is None else shown_duration(each.lag.lag_s), ""),
            (_rate(each.rates.rate_in), ""),
            (_rate(each.rates.rate_out), ""),
            ("-" if each.catch_up_s is None else shown_duration(each.catch_up_s), ""),
        ]
        for each in view.groups[:rows]
    ]
    return [
        (
            f"{len(view.nodes)} nodes: {view.health}",
            ["#Node", "Address", "State", "#Leads", "#Replicas", "#Out of sync", "#Size", "#Free"],
            nodes,
        ),
        (
            f"{len(view.topics)} topics",
            ["Topic", "#Partitions", "#Replicas", "#Out of sync", "#Records/s", "#Records", "#Size"],
            topics,
        ),
        (
            f"{len(view.groups)} groups",
            ["Group", "State", "Status", "#Lag", "#Behind by", "#In/s", "#Out/s", "#Caught up in"],
            groups,
        ),
    ]


def _drawn(table: tuple[str, Sequence[str], Sequence[Sequence[Cell]]]) -> Table:
    title, headings, rows = table
    drawn = Table(title=Text(escape(title), style="bold"), title_justify="left", box=None, expand=True, pad_edge=False)
    for heading in headings:
        drawn.add_column(heading.removeprefix("#"), justify="right" if heading.startswith("#") else "left", no_wrap=True)
    for row in rows:
        drawn.add_row(*(Text(escape(cell), style=style) for cell, style in row))
    return drawn


def _size(size: float | None) -> str:
    if size is None:
        return "-"
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


def _rate(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:,.0f}" if rate >= 10 or rate == 0 else f"{rate:.1f}"


def view_json(view: View) -> dict[str, Any]:
    """A look as `--json` prints it."""
    return {
        "health": view.health,
        "nodes": [
            {
                "id": each.id,
                "address": each.address,
                "rack": each.rack,
                "state": each.state,
                "leaders": each.leaders,
                "replicas": each.replicas,
                "outOfSync": each.out_of_sync,
                "bytes": each.bytes,
                "freePercent": each.free_percent,
            }
            for each in view.nodes
        ],
        "topics": [
            {
                "topic": each.name,
                "partitions": each.partitions,
                "replicationFactor": each.replicas,
                "outOfSync": each.out_of_sync,
                "rate": each.rate,
                "records": each.records,
                "bytes": each.bytes,
            }
            for each in view.topics
        ],
        "groups": [
            {
                "group": each.lag.group,
                "state": each.lag.state,
                "status": each.status.name,
                "lag": each.lag.lag,
                "lagSeconds": each.lag.lag_s,
                "rateIn": each.rates.rate_in,
                "rateOut": each.rates.rate_out,
                "catchUpSeconds": each.catch_up_s,
            }
            for each in view.groups
        ],
    }
