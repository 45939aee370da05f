"""`ottla topics list`: names in a pipe; on a terminal and in JSON also partitions, records and size."""

from __future__ import annotations

import click

from ottla.cli.common.options import cluster_options, json_option, wide_option
from ottla.cli.common.output import is_for_people, print_json, print_table, say, warn
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.cli.topics.choosing import choose, match, topic_arguments
from ottla.cli.topics.sizes import TopicSize, find_sizes
from ottla.client.admin.topic_descriptions import TopicDescription, described_topics
from ottla.client.cluster import Cluster
from ottla.errors.texts import sized

HEADINGS = ("Topic", "#Partitions", "#Records", "#Size")

EXAMPLES = """\b
Examples:
  ottla topics list                               a table on a terminal, names in a pipe
  ottla topics list --exclude-internal --json
  ottla topics list 'orders-.*'                   a name, a regular expression or a glob such as 'orders-*'
"""


@click.command("list", epilog=EXAMPLES)
@topic_arguments
@click.option("--exclude-internal", is_flag=True, help="Leave out internal topics.")
@json_option
@click.option("--plain", is_flag=True, help="Only names, one a line, also on a terminal (pipes get them anyway).")
@wide_option
@cluster_options()
def list_topics(
    settings: ClientSettings, names: tuple[str, ...], pattern: str | None, exclude_internal: bool, as_json: bool, plain: bool
) -> None:
    """List topics: on a terminal and with --json also their partitions, records and size.

    NAMES are names, regular expressions or globs; the default is all topics. Records are counted by offsets, so compaction and
    the ends of transactions make the number too large. The size is that of one copy. What a broker does not tell stays empty.
    """
    is_table = is_for_people(as_json, plain)

    async def find(cluster: Cluster) -> tuple[dict[str, TopicDescription], dict[str, TopicSize]]:
        topics = described_topics(await cluster.topics())
        shown = _choose(topics, names, pattern, exclude_internal)
        return shown, await find_sizes(cluster, shown) if as_json or is_table else {}

    topics, sizes = with_cluster(settings, find)
    if as_json:
        print_json([_as_json(topic, sizes[name]) for name, topic in topics.items()])
    elif is_table:
        print_table(None, HEADINGS, [_row(topic, sizes[name]) for name, topic in topics.items()])
    else:
        for name in topics:
            say(name)


def _choose(
    topics: dict[str, TopicDescription], names: tuple[str, ...], pattern: str | None, exclude_internal: bool
) -> dict[str, TopicDescription]:
    if names and pattern is None:
        matches = {name: match(topics, name) for name in names}
        chosen = sorted({topic for found in matches.values() for topic in found})
    else:
        chosen = choose(topics, names, pattern, missing_is_fine=True)
        matches = {} if pattern is None else {pattern: chosen}
    for word, found in matches.items():
        if not found:
            warn(f"no topic matches {word!r}")
    return {name: topics[name] for name in chosen if not (exclude_internal and topics[name].is_internal)}


def _as_json(topic: TopicDescription, size: TopicSize) -> dict[str, object]:
    return {
        "name": topic.name,
        "internal": topic.is_internal,
        "partitions": len(topic.partitions),
        "records": size.records,
        "sizeBytes": size.size_bytes,
    }


def _row(topic: TopicDescription, size: TopicSize) -> tuple[object, ...]:
    records = None if size.records is None else f"{size.records:,}"
    return (topic.name, len(topic.partitions), records, None if size.size_bytes is None else sized(size.size_bytes))
