"""`ottla topics delete`."""

from __future__ import annotations

import click

from ottla.cli.common.cluster import Cluster, refusal
from ottla.cli.common.options import cluster_options, json_option, yes_option
from ottla.cli.common.output import confirm, is_for_people, print_json, say
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.cli.topics.choosing import choose, topic_arguments
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState

EXAMPLES = """\b
Examples:
  ottla topics delete orders
  ottla topics delete --topic 'test-.*' --yes
"""


@click.command("delete", epilog=EXAMPLES)
@topic_arguments
@click.option("--if-exists", is_flag=True, help="Fine if there is no such topic.")
@yes_option
@json_option
@cluster_options()
def delete(
    settings: ClientSettings, names: tuple[str, ...], pattern: str | None, if_exists: bool, yes: bool, as_json: bool
) -> None:
    """Delete topics and their records, for good. On a terminal you are asked first."""
    if not names and pattern is None:
        raise click.UsageError("name the topic to delete, for example: ottla topics delete orders")

    async def find(cluster: Cluster) -> list[str]:
        return choose(await cluster.topics(), names, pattern, if_exists)

    chosen = with_cluster(settings, find)
    if not chosen:
        return
    confirm(f"Delete {', '.join(chosen)} and all records in {'it' if len(chosen) == 1 else 'them'}?", yes)
    with_cluster(settings, lambda cluster: _delete(cluster, chosen))
    if as_json:
        print_json(chosen)
    elif is_for_people():
        say(f"Deleted {', '.join(chosen)}.")


async def _delete(cluster: Cluster, names: list[str]) -> None:
    request = DeleteTopicsRequest(
        topics=[DeleteTopicState(name=name) for name in names], timeout_ms=cluster.settings.request_timeout_ms
    )

    async def attempt() -> None:
        response: DeleteTopicsResponse = await cluster.ask_controller(request)
        for result in response.responses:
            if result.error_code:
                raise refusal(result.error_code, f"topic {result.name} was not deleted", result.error_message)

    await cluster.retrying(attempt)
    for name in names:
        await cluster.see(name, lambda topic: topic.error_code != 0)
