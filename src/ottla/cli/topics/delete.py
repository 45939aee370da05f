"""`ottla topics delete`."""

from __future__ import annotations

import click

from ottla.cli.common.explaining import explain
from ottla.cli.common.options import cluster_options, json_option, yes_option
from ottla.cli.common.output import confirm, print_json, say, warn
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.cli.topics.choosing import choose, topic_arguments
from ottla.cli.topics.seeing import see
from ottla.client.admin.topic_descriptions import list_topics
from ottla.client.admin.topics import delete_topics
from ottla.client.cluster import Cluster
from ottla.errors import KafkaError

EXAMPLES = """\b
Examples:
  ottla topics delete orders
  ottla topics delete --topic 'test-.*' --yes
"""


@click.command("delete", epilog=EXAMPLES)
@topic_arguments
@click.option("--if-exists", is_flag=True, help="Do nothing if there is no such topic.")
@yes_option
@json_option
@cluster_options()
def delete(
    settings: ClientSettings, names: tuple[str, ...], pattern: str | None, if_exists: bool, yes: bool, as_json: bool
) -> int:
    """Delete topics and their records, permanently. Asks for confirmation on a terminal."""
    if not names and pattern is None:
        raise click.UsageError("name the topic to delete, for example: ottla topics delete orders")

    async def find(cluster: Cluster) -> list[str]:
        return choose(await list_topics(cluster, include_internal=True), names, pattern, if_exists)

    chosen = with_cluster(settings, find)
    if not chosen:
        return 0
    confirm(f"Delete {', '.join(chosen)} and all records in {'it' if len(chosen) == 1 else 'them'}?", yes)
    deleted, failures = with_cluster(settings, lambda cluster: _delete(cluster, chosen))
    if as_json:
        print_json(deleted)
    else:
        for name in deleted:
            say(f"Deleted topic {name}.")
    for failure in failures:
        warn(explain(failure))
    return 1 if failures else 0


async def _delete(cluster: Cluster, names: list[str]) -> tuple[list[str], list[KafkaError]]:
    """The topics that were deleted, and the errors of the others."""
    results = await delete_topics(cluster, names)
    deleted = [name for name in names if name not in results.errors]
    for name in deleted:
        await see(cluster, name, lambda topic: topic is None)
    return deleted, list(results.errors.values())
