"""The `get-offsets` verb: offsets of partitions, by place or by time. Flags and output are kafka-get-offsets'."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import click

from ottla.cli.common.completion import complete_topics
from ottla.cli.common.connection import with_cluster
from ottla.cli.common.explanations import explain
from ottla.cli.common.offsets import PLACES, list_offsets
from ottla.cli.common.options import cluster_options, json_option, plain_option, wide_option
from ottla.cli.common.output import is_for_people, print_json, print_table, say, warn
from ottla.cli.common.settings import ClientSettings
from ottla.cli.common.times import TIME_HELP, parse_time_ms, show_time
from ottla.cli.topics.selection import choose
from ottla.client.admin.offsets import FoundOffset
from ottla.client.admin.topic_descriptions import list_topics
from ottla.client.cluster import Cluster
from ottla.errors import KafkaError, OttlaError
from ottla.ids import TopicPartition

EXAMPLES = """\b
Examples:
  ottla get-offsets orders                        where each partition ends
  ottla get-offsets orders --time earliest        where it begins
  ottla get-offsets orders --time 1h              the first record of the last hour
  ottla get-offsets --topic 'orders|prices' --partitions 0,1 --time -2
  ottla get-offsets --topic-partitions orders:1-3,prices
"""

Filter = Callable[[TopicPartition], bool]
_PATTERN = re.compile(r"([^:,]*)(?::(?:([0-9]*)|(?:([0-9]*)-([0-9]*))))?")


@click.command("get-offsets", epilog=EXAMPLES)
@click.argument("names", nargs=-1, metavar="[TOPICS]...", shell_complete=complete_topics)
@click.option(
    "--topic", "pattern", metavar="REGEX", shell_complete=complete_topics, help="Topics that match; Kafka's spelling."
)
@click.option("--partitions", metavar="0,1,…", help="Only these partitions of the topics.")
@click.option(
    "--topic-partitions",
    metavar="T:1,T:0-3,…",
    help="Topics with partitions: a number, a range whose end is not included, 2- or -3; topics are regular expressions.",
)
@click.option(
    "--time",
    "when",
    default="latest",
    show_default=True,
    metavar="WHEN",
    help="latest (-1), earliest (-2), max-timestamp (-3), earliest-local (-4), latest-tiered (-5), "
    f"earliest-pending-upload (-6), {TIME_HELP}.",
)
@click.option("--exclude-internal-topics", is_flag=True, help="Leave out internal topics.")
@json_option
@plain_option
@wide_option
@cluster_options()
def get_offsets(
    settings: ClientSettings,
    names: tuple[str, ...],
    pattern: str | None,
    partitions: str | None,
    topic_partitions: str | None,
    when: str,
    exclude_internal_topics: bool,
    as_json: bool,
    plain: bool,
) -> int:
    """Show the first, last and other offsets of partitions.

    TOPICS are names; the default is all topics. For a time, the offset is that of the first record with that timestamp or a
    later one; partitions without such a record are left out.
    """
    timestamp = parse_when(when)
    keep = _filter(names, pattern, partitions, topic_partitions)
    found = with_cluster(settings, lambda cluster: _find(cluster, names, keep, timestamp, exclude_internal_topics))
    offsets: dict[TopicPartition, FoundOffset] = {}
    for partition, result in found.items():
        if isinstance(result, KafkaError):
            warn(f"{partition} is left out: {explain(result)}")
        elif result.offset >= 0:
            offsets[partition] = result
    if as_json:
        print_json(
            [
                {
                    "topic": topic,
                    "partition": index,
                    "offset": each.offset,
                    "timestamp": each.timestamp,
                    "leaderEpoch": -1 if each.leader_epoch is None else each.leader_epoch,
                }
                for (topic, index), each in offsets.items()
            ]
        )
    elif is_for_people(as_json, plain):
        rows = [(topic, index, each.offset, show_time(each.timestamp)) for (topic, index), each in offsets.items()]
        print_table(None, ("Topic", "#Partition", "#Offset", "#Timestamp"), rows)
    else:
        for (topic, index), each in offsets.items():
            say(f"{topic}:{index}:{each.offset}")
    return 1 if any(isinstance(result, KafkaError) for result in found.values()) else 0


def parse_when(text: str) -> int:
    """The timestamp or place of --time, as in ListOffsets."""
    if text in PLACES:
        return PLACES[text]
    if text.startswith("-") and text[1:].isdigit():
        if int(text) not in PLACES.values():
            raise click.UsageError(f"--time {text} is not a place: those are -1 (latest) to -6 (earliest-pending-upload)")
        return int(text)
    return parse_time_ms(text, "--time")


async def _find(
    cluster: Cluster, names: tuple[str, ...], keep: Filter, timestamp: int, exclude_internal: bool
) -> Mapping[TopicPartition, FoundOffset | KafkaError]:
    topics = await list_topics(cluster, include_internal=True)
    choose(topics, names, None)  # raises for a name that does not exist; a pattern may match nothing
    wanted = {
        TopicPartition(name, each): timestamp
        for name, topic in topics.items()
        if not (exclude_internal and topic.is_internal)
        for each in range(topic.partitions)
        if keep(TopicPartition(name, each))
    }
    if not wanted:
        raise OttlaError("no partition matches: `ottla topics describe` shows all topics and partitions")
    return await list_offsets(cluster, wanted)


def _filter(names: tuple[str, ...], pattern: str | None, partitions: str | None, topic_partitions: str | None) -> Filter:
    if topic_partitions is not None:
        if names or pattern is not None or partitions is not None:
            raise click.UsageError("--topic-partitions names topics and partitions: leave TOPICS, --topic and --partitions out")
        rules = [_rule(part.strip()) for part in topic_partitions.split(",") if part.strip()]
        return lambda each: any(rule(each) for rule in rules)
    if names and pattern is not None:
        raise click.UsageError("name topics as arguments or with --topic, not both")
    topic_rule = _topic_rule(pattern) if pattern is not None else lambda topic: not names or topic in names
    try:
        indexes = {int(part) for part in partitions.split(",")} if partitions else None
    except ValueError:
        raise click.UsageError(f"--partitions takes numbers with commas between them, not {partitions!r}") from None
    return lambda each: topic_rule(each.topic) and (indexes is None or each.partition in indexes)


def _topic_rule(pattern: str) -> Callable[[str], bool]:
    try:
        compiled = re.compile(pattern or ".*")
    except re.error as error:
        raise click.UsageError(f"{pattern!r} is neither the name of a topic nor a regular expression: {error}") from None
    return lambda topic: compiled.fullmatch(topic) is not None


def _rule(text: str) -> Filter:
    """One part of --topic-partitions: `topic`, `topic:1`, `topic:1-3`, `topic:1-`, `topic:-3`, `:0`."""
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise click.UsageError(
            f"--topic-partitions does not understand {text!r}: write topic, topic:1, topic:1-3, topic:1- or topic:-3"
        )
    topic, index, lower, upper = match.groups()
    topic_rule = _topic_rule(topic)
    if index:
        return lambda each: topic_rule(each.topic) and each.partition == int(index)
    first = int(lower) if lower else 0
    end = int(upper) if upper else None
    return lambda each: topic_rule(each.topic) and first <= each.partition and (end is None or each.partition < end)
