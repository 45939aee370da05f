"""`ottla topics delete`."""

from __future__ import annotations

import click

from ottla.cli.common.cluster import Cluster, is_retriable, refusal
from ottla.cli.common.options import cluster_options, json_option, yes_option
from ottla.cli.common.output import confirm, print_json, say, warn
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.cli.topics.choosing import choose, topic_arguments
from ottla.errors import KafkaError
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState

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
        return choose(await cluster.topics(), names, pattern, if_exists)

    chosen = with_cluster(settings, find)
    if not chosen:
        return 0
    confirm(f"Delete {', '.join(chosen)} and all records in {'it' if len(chosen) == 1 else 'them'}?", yes)
    results = with_cluster(settings, lambda cluster: _delete(cluster, chosen))
    deleted = [name for name, error in results.items() if error is None]
    if as_json:
        print_json(deleted)
    else:
        for name in deleted:
            say(f"Deleted topic {name}.")
    failures = [error for error in results.values() if error is not None]
    for failure in failures:
        warn(str(failure))
    return 1 if failures else 0


async def _delete(cluster: Cluster, names: list[str]) -> dict[str, KafkaError | None]:
    """The error of each topic; None if it was deleted."""
    results: dict[str, KafkaError | None] = {}
    left = names

    async def attempt() -> None:
        nonlocal left
        request = DeleteTopicsRequest(
            topics=[DeleteTopicState(name=name) for name in left], timeout_ms=cluster.settings.request_timeout_ms
        )
        response: DeleteTopicsResponse = await cluster.ask_controller(request)
        for result in response.responses:
            name = result.name or ""
            about = f"topic {name} was not deleted"
            results[name] = refusal(result.error_code, about, result.error_message) if result.error_code else None
        again = {name: error for name, error in results.items() if error is not None and is_retriable(error)}
        left = list(again)
        for error in again.values():
            raise error

    try:
        await cluster.retrying(attempt)
    except KafkaError:
        if not results:
            raise
    for name, failure in results.items():
        if failure is None:
            await cluster.see(name, lambda topic: topic.error_code != 0)
    return results
