"""`ottla brokers describe`: brokers with their log directories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from ottla.cli.brokers.rows import BrokerRow, broker_json, broker_rows, complete_brokers
from ottla.cli.common.options import cluster_options, json_option, plain_option, wide_option
from ottla.cli.common.output import is_for_people, print_json, print_table, say
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.client.admin.log_dirs import LogDirDescription, describe_log_dirs
from ottla.client.cluster import Cluster
from ottla.client.health import cluster_state
from ottla.errors import KafkaError, OttlaError
from ottla.errors.codes import error_name
from ottla.errors.texts import counted

EXAMPLES = """\b
Examples:
  ottla brokers describe               every broker
  ottla brokers describe 2 3
  ottla brokers describe 2 --json
"""

Directories = Mapping[str, LogDirDescription] | KafkaError
"""The log directories of a broker, or why it does not show them."""


@click.command("describe", epilog=EXAMPLES)
@click.argument("brokers", nargs=-1, type=click.IntRange(0), metavar="[BROKERS]...", shell_complete=complete_brokers)
@json_option
@plain_option
@wide_option
@cluster_options()
def describe(settings: ClientSettings, brokers: tuple[int, ...], as_json: bool, plain: bool) -> int:
    """Show brokers: state, address, rack, partitions, and log directories with their sizes. BROKERS are ids; default: all.

    A fenced broker cannot be asked for its log directories. The exit code is 1 if another does not answer.
    """
    found = with_cluster(settings, lambda cluster: _ask(cluster, brokers))
    if as_json:
        print_json([{**broker_json(row), **_as_json(directories)} for row, directories in found])
    else:
        show = _print_table if is_for_people(as_json, plain) else _print_lines
        for row, directories in found:
            show(row, directories)
    return 1 if any(isinstance(each, KafkaError) and not row.node.is_fenced for row, each in found) else 0


async def _ask(cluster: Cluster, wanted: Sequence[int]) -> list[tuple[BrokerRow, Directories]]:
    rows = {each.node.id: each for each in broker_rows(await cluster_state(cluster))}
    for broker in wanted:
        if broker not in rows:
            raise OttlaError(f"broker {broker} is not in the cluster, which has {', '.join(map(str, rows)) or 'none'}")
    chosen = [row for broker, row in rows.items() if not wanted or broker in wanted]
    results = await describe_log_dirs(cluster, [row.node.id for row in chosen if not row.node.is_fenced])
    fenced = KafkaError(-1, "the broker is fenced: it is down or cut off")
    shown: dict[int, Directories] = {**results.values_found, **results.errors}
    return [(row, shown.get(row.node.id, fenced)) for row in chosen]


def _used(directory: LogDirDescription) -> int:
    return sum(each.size_bytes for each in directory.replicas.values())


def _summary(row: BrokerRow) -> str:
    held = f"holds {counted(row.replicas, 'replica')}, {row.out_of_sync} of them out of sync"
    return f"leads {counted(row.leaders, 'partition')}, {held}"


def _print_table(row: BrokerRow, directories: Directories) -> None:
    details = [f"rack: {row.node.rack or 'none'}", _summary(row)]
    title = f"broker {row.node.id} at {row.endpoint}  ({row.state})"
    if isinstance(directories, KafkaError):
        details.append(f"log directories: {directories}")
        directories = {}
    rows = [
        (
            each.path,
            "offline" if each.error is not None else "cordoned" if each.is_cordoned else "online",
            len(each.replicas),
            f"{_used(each):,}",
            "-" if each.usable_bytes is None else f"{each.usable_bytes:,}",
        )
        for each in directories.values()
    ]
    print_table(title, ("Log directory", "State", "#Replicas", "#Bytes", "#Free"), rows, details)


def _print_lines(row: BrokerRow, directories: Directories) -> None:
    say(
        f"Broker: {row.node.id}",
        f"State: {row.state}",
        f"Endpoint: {row.endpoint}",
        f"Rack: {row.node.rack or '-'}",
        f"Leaders: {row.leaders}",
        f"Replicas: {row.replicas}",
        f"OutOfSync: {row.out_of_sync}",
    )
    if isinstance(directories, KafkaError):
        say("", f"LogDirs: {directories}")
        return
    for each in directories.values():
        state = error_name(each.error.code) if each.error is not None else "cordoned" if each.is_cordoned else "online"
        say("", f"LogDir: {each.path}", f"State: {state}", f"Replicas: {len(each.replicas)}", f"Bytes: {_used(each)}")


def _as_json(directories: Directories) -> dict[str, Any]:
    if isinstance(directories, KafkaError):
        return {"logDirs": None, "error": str(directories)}
    return {
        "logDirs": [
            {
                "path": each.path,
                "error": None if each.error is None else error_name(each.error.code),
                "isCordoned": each.is_cordoned,
                "replicas": len(each.replicas),
                "bytes": _used(each),
                "totalBytes": each.total_bytes,
                "usableBytes": each.usable_bytes,
            }
            for each in directories.values()
        ],
        "error": None,
    }
