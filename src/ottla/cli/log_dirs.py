"""The `log-dirs` verb: the log directories of brokers and the partitions in them. Flags and output are kafka-log-dirs'."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from ottla.cli.common.cluster import Cluster, refusal
from ottla.cli.common.options import cluster_options, json_option, plain_option, wide_option
from ottla.cli.common.output import is_for_people, print_json, print_table, say, warn
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.errors import OttlaError
from ottla.errors.codes import error_name
from ottla.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse, DescribeLogDirsResult

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


async def _ask(cluster: Cluster, brokers: list[int] | None, topics: list[str] | None) -> dict[int, list[DescribeLogDirsResult]]:
    await cluster.metadata([])
    unknown = sorted(set(brokers or ()) - set(cluster.brokers))
    if unknown:
        there = ", ".join(map(str, sorted(cluster.brokers)))
        raise OttlaError(f"broker {', '.join(map(str, unknown))} is not in the cluster, which has {there}")
    chosen = brokers or sorted(cluster.brokers)
    # The request can only name partitions, which are not known here: ask for all, and filter by topic below.
    answers = await asyncio.gather(*(cluster.ask_broker(broker, DescribeLogDirsRequest(topics=None)) for broker in chosen))
    found: dict[int, list[DescribeLogDirsResult]] = {}
    for broker, answer in zip(chosen, answers, strict=True):
        response: DescribeLogDirsResponse = answer
        if response.error_code:
            raise refusal(response.error_code, f"broker {broker} does not show its directories")
        for result in response.results:
            result.topics = [topic for topic in result.topics if topics is None or topic.name in topics]
        found[broker] = response.results
    return found


def _as_json(result: DescribeLogDirsResult) -> dict[str, Any]:
    return {
        "partitions": [
            {
                "partition": f"{topic.name}-{each.partition_index}",
                "size": each.partition_size,
                "offsetLag": each.offset_lag,
                "isFuture": each.is_future_key,
            }
            for topic in result.topics
            for each in topic.partitions
        ],
        "error": error_name(result.error_code) if result.error_code else None,
        "logDir": result.log_dir,
    }


def _print_tables(found: dict[int, list[DescribeLogDirsResult]]) -> None:
    for broker, directories in found.items():
        for result in directories:
            if result.error_code:
                warn(str(refusal(result.error_code, f"broker {broker}, {result.log_dir}")))
                continue
            disk = f", {result.usable_bytes:,} of {result.total_bytes:,} bytes free" if result.total_bytes >= 0 else ""
            rows = sorted(
                (
                    topic.name,
                    each.partition_index,
                    f"{each.partition_size:,}",
                    each.offset_lag,
                    "yes" if each.is_future_key else "",
                )
                for topic in result.topics
                for each in topic.partitions
            )
            print_table(
                f"broker {broker}: {result.log_dir}{disk}", ("Topic", "#Partition", "#Bytes", "#Offset lag", "Moving in"), rows
            )
