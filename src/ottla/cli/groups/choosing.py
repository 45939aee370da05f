"""Arguments that name groups and partitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from ottla.cli.common.completion import complete_from_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.client.admin.groups import list_consumer_groups, list_groups
from ottla.client.admin.topic_descriptions import describe_topics
from ottla.client.cluster import Cluster, topic_error
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition

F = TypeVar("F", bound=Callable[..., Any])


def complete_groups(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The groups whose ids begin with `incomplete`."""

    async def ids(cluster: Cluster) -> list[str]:
        return [each.group_id for each in await list_groups(cluster)]

    return complete_from_cluster(ctx, incomplete, ids)


def group_arguments(function: F) -> F:
    """Add the argument GROUPS, and Kafka's `--group` and `--all-groups`."""
    function = click.option("--all-groups", is_flag=True, help="All consumer groups.")(function)
    function = click.option(
        "--group",
        "flagged",
        multiple=True,
        metavar="ID",
        shell_complete=complete_groups,
        help="Kafka's spelling of GROUPS. Repeatable.",
    )(function)
    return click.argument("named", nargs=-1, metavar="[GROUPS]...", shell_complete=complete_groups)(function)


timeout_option = click.option(
    "--timeout", "timeout_ms", type=click.IntRange(1), metavar="MS", help="How long the cluster may take.  [default: 60000]"
)


def with_timeout(settings: ClientSettings, timeout_ms: int | None) -> ClientSettings:
    """Settings with the time limit of `--timeout`."""
    if timeout_ms is None:
        return settings
    request_ms = min(timeout_ms, settings.client.request_timeout_ms)  # a request may not take longer than the whole
    return settings.changed({"default.api.timeout.ms": timeout_ms, "request.timeout.ms": request_ms})


def named_groups(named: Sequence[str], flagged: Sequence[str], all_groups: bool, action: str) -> list[str] | None:
    """The groups that the user named, without duplicates; None for all."""
    ids = list(dict.fromkeys((*named, *flagged)))
    if all_groups and ids:
        raise click.UsageError("name groups or give --all-groups, not both")
    if not ids and not all_groups:
        raise click.UsageError(f"name the group, for example: ottla groups {action} billing (or give --all-groups)")
    return ids or None


async def find_groups(cluster: Cluster, ids: list[str] | None) -> list[str]:
    """The named groups, or all consumer groups of the cluster if `ids` is None."""
    return ids if ids is not None else [each.group_id for each in await list_consumer_groups(cluster)]


def parse_topics(texts: Sequence[str]) -> dict[str, list[int] | None]:
    """Parse Kafka's `orders` and `orders:0,1`: partitions by topic, None for all partitions."""
    found: dict[str, list[int] | None] = {}
    for text in texts:
        topic, colon, numbers = text.partition(":")
        if not colon:
            found[topic] = None
            continue
        parts = numbers.split(",")
        if not topic or not all(part.isascii() and part.isdigit() for part in parts):
            raise click.UsageError(f"--topic takes a topic, or a topic and partitions such as orders:0,1, not {text!r}")
        if found.get(topic, []) is not None:
            found[topic] = [*(found.get(topic) or []), *map(int, parts)]
    return found


async def find_partitions(cluster: Cluster, topics: dict[str, list[int] | None]) -> list[TopicPartition]:
    """The partitions of `parse_topics`' result. Raises if a topic or partition does not exist."""
    found: list[TopicPartition] = []
    described = (await describe_topics(cluster, topics)).raise_first()
    for name, numbers in topics.items():
        known = {each.partition for each in described[name].partitions}
        for number in sorted(known if numbers is None else set(numbers)):
            if number not in known:
                raise topic_error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name, number)
            found.append(TopicPartition(name, number))
    return sorted(found)
