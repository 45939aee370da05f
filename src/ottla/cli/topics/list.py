"""`ottla topics list`."""

from __future__ import annotations

import click

from ottla.cli.common.options import cluster_options, json_option
from ottla.cli.common.output import print_json, say, warn
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.cli.topics.choosing import choose, match, topic_arguments

EXAMPLES = """\b
Examples:
  ottla topics list
  ottla topics list --exclude-internal --json
  ottla topics list 'orders-.*'                   a name, a regular expression or a glob such as 'orders-*'
"""


@click.command("list", epilog=EXAMPLES)
@topic_arguments
@click.option("--exclude-internal", is_flag=True, help="Leave out internal topics.")
@json_option
@cluster_options()
def list_topics(
    settings: ClientSettings, names: tuple[str, ...], pattern: str | None, exclude_internal: bool, as_json: bool
) -> None:
    """List topics, one a line.

    NAMES are names, regular expressions or globs; the default is all topics.
    """
    topics = with_cluster(settings, lambda cluster: cluster.topics())
    if names and pattern is None:
        matches = {name: match(topics, name) for name in names}
        chosen = sorted({topic for found in matches.values() for topic in found})
    else:
        chosen = choose(topics, names, pattern, missing_is_fine=True)
        matches = {} if pattern is None else {pattern: chosen}
    for word, found in matches.items():
        if not found:
            warn(f"no topic matches {word!r}")
    shown = [name for name in chosen if not (exclude_internal and topics[name].is_internal)]
    if as_json:
        print_json(shown)
    else:
        for name in shown:
            say(name)
