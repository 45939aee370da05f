"""`ottla topics list`."""

from __future__ import annotations

import click

from ottla.cli.common.options import cluster_options, json_option
from ottla.cli.common.output import print_json, say
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.cli.topics.choosing import choose, topic_arguments

EXAMPLES = """\b
Examples:
  ottla topics list
  ottla topics list --exclude-internal --json
  ottla topics list --topic 'orders-.*'
"""


@click.command("list", epilog=EXAMPLES)
@topic_arguments
@click.option("--exclude-internal", is_flag=True, help="Leave out topics that the cluster keeps for itself.")
@json_option
@cluster_options()
def list_topics(
    settings: ClientSettings, names: tuple[str, ...], pattern: str | None, exclude_internal: bool, as_json: bool
) -> None:
    """Name the topics there are, one a line."""
    topics = with_cluster(settings, lambda cluster: cluster.topics())
    chosen = choose(topics, names, pattern, missing_is_fine=True)
    shown = [name for name in chosen if not (exclude_internal and topics[name].is_internal)]
    if as_json:
        print_json(shown)
    else:
        for name in shown:
            say(name)
