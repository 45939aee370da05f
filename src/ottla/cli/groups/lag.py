"""`ottla groups lag`: the lag of all groups in records and seconds, once or again and again with rates and statuses."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import click

from ottla.cli.common.connection import with_cluster
from ottla.cli.common.explanations import explain
from ottla.cli.common.options import cluster_options, json_option, plain_option, wide_option
from ottla.cli.common.output import is_for_people, print_json, print_padded, print_table, warn
from ottla.cli.common.settings import ClientSettings
from ottla.cli.common.waiting import shown_duration
from ottla.cli.groups.command import complete_groups, timeout_option, with_timeout
from ottla.cli.topics.selection import match
from ottla.client.admin.groups import GroupListing
from ottla.client.cluster import Cluster
from ottla.client.lag import GroupLag, LagMonitor, LagReader, WatchedGroup
from ottla.client_core.lag import SENSIBLE, Status

EXAMPLES = """\b
Examples:
  ottla groups lag
  ottla groups lag 'billing-*'                    a name, a regular expression or a glob
  ottla groups lag --watch --min-lag 100          every 5 s, with rates, time to catch up and status
  ottla groups lag billing --partitions --sort seconds
  ottla groups lag --json | jq '.[] | select(.lagSeconds > 60).group'
"""

WATCH_S = 5.0
SORTS: dict[str, Callable[[WatchedGroup], Any]] = {
    "lag": lambda each: (-each.lag.lag, each.lag.group),
    "seconds": lambda each: (-(each.lag.lag_s or 0), -each.lag.lag, each.lag.group),
    "status": lambda each: (each.status in (Status.OK, Status.IDLE), -each.status, -each.lag.lag, each.lag.group),
    "group": lambda each: each.lag.group,
}


class View(NamedTuple):
    """What of the groups is shown, and how."""

    patterns: tuple[str, ...]
    sort: str
    min_lag: int
    min_seconds: float
    of_partitions: bool
    is_watching: bool
    as_json: bool
    plain: bool


@click.command("lag", epilog=EXAMPLES)
@click.argument("patterns", nargs=-1, metavar="[GROUPS]...", shell_complete=complete_groups)
@click.option(
    "--watch",
    "watch_s",
    is_flag=False,
    flag_value=WATCH_S,
    type=click.FloatRange(0.1),
    metavar="[SECONDS]",
    help=f"Look again every so many seconds until Ctrl-C, with rates and statuses.  [{WATCH_S:g} if not given]",
)
@click.option("--sort", type=click.Choice(list(SORTS)), default="lag", show_default=True, help="What comes first.")
@click.option("--min-lag", type=click.IntRange(0), default=0, metavar="RECORDS", help="Only groups so far behind.")
@click.option("--min-seconds", type=click.FloatRange(0), default=0.0, metavar="S", help="Only groups so far behind.")
@click.option("--partitions", "of_partitions", is_flag=True, help="A row for each partition.")
@click.option(
    "--isolation-level",
    type=click.Choice(["read_uncommitted", "read_committed"]),
    default="read_uncommitted",
    help="read_committed: up to the last stable offset, so that open transactions are no lag.",
)
@timeout_option
@json_option
@plain_option
@wide_option
@cluster_options()
def lag(
    settings: ClientSettings,
    patterns: tuple[str, ...],
    watch_s: float | None,
    sort: str,
    min_lag: int,
    min_seconds: float,
    of_partitions: bool,
    isolation_level: str,
    timeout_ms: int | None,
    as_json: bool,
    plain: bool,
) -> int:
    """Show how far consumer groups are behind, the largest lag first.

    GROUPS are ids, regular expressions or globs; the default is all consumer groups. Lag is the number of offsets between the
    committed offset and the log end offset, summed over the partitions that a group has committed. Seconds are the age of the
    first record that is not read: of the partition where it is the oldest. The exit code is 1 if a broker does not answer.
    """
    view = View(patterns, sort, min_lag, min_seconds, of_partitions, watch_s is not None, as_json, plain)

    async def work(cluster: Cluster) -> int:
        monitor = LagMonitor(LagReader(cluster, isolation_level=isolation_level), SENSIBLE._replace(lag=min_lag))
        while True:
            found = await _look(monitor, patterns)
            for broker, error in monitor.reader.unreachable.items():
                warn(f"the groups that broker {broker} coordinates are left out: {explain(error)}")
            for each in found:
                if each.lag.error is not None:
                    warn(f"group {each.lag.group} is left out: {each.lag.error}")
            _print(found, view)
            if watch_s is None:
                return 1 if monitor.reader.unreachable or any(each.lag.error is not None for each in found) else 0
            await asyncio.sleep(watch_s)

    return with_cluster(with_timeout(settings, timeout_ms), work, is_patient=watch_s is not None)


async def _look(monitor: LagMonitor, patterns: Sequence[str]) -> list[WatchedGroup]:
    if not patterns:
        return await monitor.look()
    listed: dict[str, GroupListing] = {each.group_id: each for each in await monitor.reader.listed()}
    matches = {word: match(listed, word) for word in patterns}
    for word, ids in matches.items():
        if not ids:
            warn(f"no group matches {word!r}: `ottla groups list` shows all groups")
    return await monitor.look([listed[group_id] for group_id in sorted({one for ids in matches.values() for one in ids})])


def _print(found: Iterable[WatchedGroup], view: View) -> None:
    chosen = [
        each
        for each in sorted(found, key=SORTS[view.sort])
        if each.lag.error is None and each.lag.lag >= view.min_lag and (each.lag.lag_s or 0) >= view.min_seconds
    ]
    if view.as_json:
        print_json([group_json(each, view.of_partitions, view.is_watching) for each in chosen])
        return
    headings = ["GROUP", "STATE", "TOPICS", "PARTITIONS", "LAG", "LAG-SECONDS"]
    rows: list[list[object]] = [
        [*_summary(each.lag), each.lag.lag, _number(each.lag.lag_s)] for each in chosen if not view.of_partitions
    ]
    if view.of_partitions:
        headings = ["GROUP", "STATE", "TOPIC", "PARTITION", "LAG", "LAG-SECONDS"]
        rows = [
            [group.lag.group, group.lag.state, each.topic, each.partition, each.lag, _number(each.lag_s)]
            for group in chosen
            for each in group.lag.partitions
        ]
    if view.is_watching:
        headings += ["STATUS"] if view.of_partitions else ["IN/S", "OUT/S", "CATCH-UP", "STATUS"]
        more: list[list[object]] = (
            [[status.name] for group in chosen for status in group.statuses]
            if view.of_partitions
            else [
                [_number(each.rates.rate_in), _number(each.rates.rate_out), _duration(each.catch_up_s), each.status.name]
                for each in chosen
            ]
        )
        rows = [[*row, *cells] for row, cells in zip(rows, more, strict=True)]
    if is_for_people(view.as_json, view.plain):
        if view.is_watching and sys.stdout.isatty():
            click.clear()
        numbers = {"TOPICS", "PARTITIONS", "PARTITION", "LAG", "LAG-SECONDS", "IN/S", "OUT/S", "CATCH-UP"}
        shown = [f"{'#' if each in numbers else ''}{each.replace('-', ' ').capitalize()}" for each in headings]
        for row in rows:
            row[4] = "-" if row[4] is None else f"{row[4]:,}"
        print_table(None, shown, [["-" if cell is None else cell for cell in row] for row in rows])
    else:
        widths = (15, 20, 10, 10, 10, 12, 10, 10, 10, 0)[: len(headings) - 1]
        print_padded(headings, [["-" if cell is None else cell for cell in row] for row in rows], (*widths, 0))


def _summary(group: GroupLag) -> tuple[str, str, int, int]:
    committed = [each for each in group.partitions if each.offset is not None]
    return group.group, group.state, len({each.topic for each in committed}), len(committed)


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


def _duration(seconds: float | None) -> str | None:
    return None if seconds is None else shown_duration(seconds)


def group_json(each: WatchedGroup, of_partitions: bool, is_watching: bool) -> dict[str, object]:
    """A group as `--json` shows it."""
    name, state, topics, partitions = _summary(each.lag)
    shown: dict[str, object] = {
        "group": name,
        "state": state,
        "topics": topics,
        "partitions": partitions,
        "lag": each.lag.lag,
        "lagSeconds": each.lag.lag_s,
        "lost": each.lag.lost,
    }
    if is_watching:
        rates = each.rates
        shown |= {
            "rateIn": rates.rate_in,
            "rateOut": rates.rate_out,
            "catchUpSeconds": each.catch_up_s,
            "status": each.status.name,
        }
    if of_partitions:
        shown["lags"] = [
            {
                "topic": one.topic,
                "partition": one.partition,
                "offset": one.offset,
                "logStartOffset": one.start,
                "logEndOffset": one.end,
                "lag": one.lag,
                "lagSeconds": one.lag_s,
                **({"status": status.name} if is_watching else {}),
            }
            for one, status in zip(each.lag.partitions, each.statuses, strict=True)
        ]
    return shown
