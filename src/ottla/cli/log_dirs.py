"""The `log-dirs` verb: the log directories of brokers and the partitions in them. Flags and output are kafka-log-dirs'."""

from __future__ import annotations

from typing import Any

import click

from ottla.cli.common.connection import with_cluster
from ottla.cli.common.options import cluster_options, json_option, plain_option, wide_option
from ottla.cli.common.output import is_for_people, print_json, print_table, say, warn
from ottla.cli.common.settings import ClientSettings
from ottla.client.admin.log_dirs import LogDirDescription, describe_log_dirs
from ottla.client.cluster import Cluster
from ottla.errors.codes import error_name

EXAMPLES = """\b
Examples:
  ottla log-dirs                                  every broker, every topic
  ottla log-dirs --topics orders,prices
  ottla log-dirs --brokers 1 --json
  ottla log-dirs --describe --topic-list orders --bootstrap-server localhost:9092    Kafka's spelling
"""


@click.command("log-dirs", epilog=EXAMPLES)
@click.argument("action", required=False, type=click.Choice(["describe"]), metavar="[describe]")
@click.option("--describe", is_flag=True, help="Kafka's spelling; has no effect.")
@click.option("--brokers", "--broker-list", "broker_list", metavar="1,2,…", help="Only these brokers, by id.")
@click.option("--topics", "--topic-list", "topic_list", metavar="A,B,…", help="Only these topics.")
@json_option
@plain_option
@wide_option
@cluster_options(retire_broker_list=False)
def log_dirs(
    settings: ClientSettings,
    action: str | None,
    describe: bool,
    broker_list: str | None,
    topic_list: str | None,
    as_json: bool,
    plain: bool,
) -> None:
    """Show the log directories of brokers, and the size of each partition."""
    brokers = _ids(broker_list)
    topics = None if not topic_list else [name.strip() for name in topic_list.split(",") if name.strip()]
    found = with_cluster(settings, lambda cluster: _ask(cluster, brokers, topics))
    if is_for_people(as_json, plain):
        _print_tables(found)
        return
    for_programs = {
        "brokers": [
            {"broker": broker, "logDirs": [_as_json(each) for each in directories]} for broker, directories in found.items()
        ],
        "version": 1,
    }
    if not as_json:
        say("Querying brokers for log directories information")
        say(f"Received log directory information from brokers {','.join(map(str, found))}")
    print_json(for_programs)


def _ids(text: str | None) -> list[int] | None:
    if not text:
        return None
    try:
        return sorted({int(part) for part in text.split(",")})
    except ValueError:
        raise click.UsageError(
            f"--brokers (Kafka: --broker-list) takes broker ids with commas between them, not {text!r}; "
            "--bootstrap-server takes the address of the cluster"
        ) from None


async def _ask(cluster: Cluster, brokers: list[int] | None, topics: list[str] | None) -> dict[int, list[LogDirDescription]]:
    # The request can only name partitions, which are not known here: ask for all, and filter by topic below.
    described = (await describe_log_dirs(cluster, brokers)).raise_first()
    return {
        broker: [
            each._replace(replicas={key: info for key, info in each.replicas.items() if topics is None or key.topic in topics})
            for each in directories.values()
        ]
        for broker, directories in described.items()
    }


def _as_json(directory: LogDirDescription) -> dict[str, Any]:
    return {
        "partitions": [
            {"partition": str(each), "size": info.size_bytes, "offsetLag": info.offset_lag, "isFuture": info.is_future}
            for each, info in directory.replicas.items()
        ],
        "error": None if directory.error is None else error_name(directory.error.code),
        "logDir": directory.path,
    }


def _print_tables(found: dict[int, list[LogDirDescription]]) -> None:
    for broker, directories in found.items():
        for each in directories:
            if each.error is not None:
                warn(f"broker {broker}, {each.error}")
                continue
            disk = "" if each.total_bytes is None else f", {each.usable_bytes:,} of {each.total_bytes:,} bytes free"
            rows = [
                (*key, f"{info.size_bytes:,}", info.offset_lag, "yes" if info.is_future else "")
                for key, info in sorted(each.replicas.items())
            ]
            print_table(
                f"broker {broker}: {each.path}{disk}", ("Topic", "#Partition", "#Bytes", "#Offset lag", "Moving in"), rows
            )
