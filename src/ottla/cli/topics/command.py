"""The `topics` verb: create, list, alter and delete. `describe` is imported when used.

`list` shows names in a pipe; on a terminal and in JSON also partitions, records and sizes, from ListOffsets and
DescribeLogDirs: one round per broker. A topic about which a broker does not answer, in time or at all, has None: a listing
must not fail for one of its topics.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from typing import NamedTuple, TypeVar

import click

from ottla.cli.common.connection import with_cluster
from ottla.cli.common.explanations import explain
from ottla.cli.common.options import ZOOKEEPER, cluster_options, json_option, retired, wide_option, yes_option
from ottla.cli.common.output import confirm, is_for_people, print_json, print_table, say, warn
from ottla.cli.common.settings import ClientSettings, parse_pairs
from ottla.cli.common.spelling import Actions
from ottla.cli.configs import in_milliseconds
from ottla.cli.topics.selection import choose, match, parse_assignment, topic_arguments
from ottla.client.admin.log_dirs import describe_log_dirs
from ottla.client.admin.offsets import OffsetSpec, list_offsets
from ottla.client.admin.results import Results
from ottla.client.admin.topic_descriptions import TopicDescription, describe_topics, described_topics, list_topics
from ottla.client.admin.topics import (
    BROKER_DEFAULT,
    CreatedTopic,
    NewPartitions,
    NewTopic,
    create_partitions,
    create_topics,
    delete_topics,
)
from ottla.client.cluster import Cluster
from ottla.env.backoff import Backoff
from ottla.errors import KafkaError, TopicExistsError
from ottla.errors.texts import sized
from ottla.ids import TopicPartition, uuid_text

SEE_CHANGES_S = 5


async def see(cluster: Cluster, name: str, is_seen: Callable[[TopicDescription | None], bool]) -> None:
    """Wait, but not for long: brokers learn of a change after it is acknowledged, and a script's next command must find it.

    `is_seen` gets None while the broker does not know the topic.
    """
    deadline_s = asyncio.get_running_loop().time() + SEE_CHANGES_S
    settings = cluster.settings
    backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, cluster.world.randomness.below)
    while True:
        results = await describe_topics(cluster, [name])
        if is_seen(None if results.errors else results[name]) or not await cluster.wait(backoff, deadline_s):
            return


CREATE_EXAMPLES = """\b
Examples:
  ottla topics create orders --partitions 3 --config retention.ms=1d
  ottla topics create prices --config cleanup.policy=compact
  ottla topics create orders prices --if-not-exists
"""


@click.command("create", epilog=CREATE_EXAMPLES)
@click.argument("names", nargs=-1, metavar="[NAMES]...")
@click.option("--topic", "flagged", multiple=True, metavar="NAME", help="Kafka's spelling of NAMES. Repeatable.")
@click.option("--partitions", type=click.IntRange(1), help="How many partitions.  [default: the cluster's num.partitions]")
@click.option(
    "--replication-factor",
    type=click.IntRange(1, 32767),
    help="How many replicas of each.  [default: the cluster's default.replication.factor]",
)
@click.option("--replica-assignment", metavar="1:2,2:3", help="Which brokers hold which partition, instead of the two above.")
@click.option("--config", "configs", multiple=True, metavar="KEY=VALUE", help="A setting of the topic. Repeatable.")
@click.option("--if-not-exists", is_flag=True, help="Do nothing if the topic exists.")
@click.option("--validate-only", is_flag=True, help="Check whether the topic could be created, without creating it.")
@json_option
@cluster_options()
def create(
    settings: ClientSettings,
    names: tuple[str, ...],
    flagged: tuple[str, ...],
    partitions: int | None,
    replication_factor: int | None,
    replica_assignment: str | None,
    configs: tuple[str, ...],
    if_not_exists: bool,
    validate_only: bool,
    as_json: bool,
) -> int:
    """Create the topics NAMES, all with the same partitions and settings."""
    if bool(names) == bool(flagged):
        raise click.UsageError("name the topic to create, for example: ottla topics create orders --partitions 3")
    if replica_assignment is not None and (partitions or replication_factor):
        raise click.UsageError(
            "--replica-assignment sets partitions and replicas: leave --partitions and --replication-factor out"
        )
    template = NewTopic(
        "",
        partitions or BROKER_DEFAULT,
        replication_factor or BROKER_DEFAULT,
        None if replica_assignment is None else parse_assignment(replica_assignment),
        in_milliseconds(parse_pairs(configs, "--config")),
    )
    wanted = [template._replace(name=name) for name in dict.fromkeys(names or flagged)]
    for each in wanted:
        if "." in each.name and "_" in each.name:
            warn(f"metric names turn . and _ into the same character: {each.name} may collide with another topic")
    results = with_cluster(settings, lambda cluster: _create_all(cluster, wanted, validate_only, if_not_exists))
    for result in results:
        if result is not None and not isinstance(result, KafkaError):
            _tell(result, validate_only, as_json)
    for text in dict.fromkeys(explain(result) for result in results if isinstance(result, KafkaError)):
        warn(text)  # once, if it is the cluster's and not a topic's
    return 1 if any(isinstance(result, KafkaError) for result in results) else 0


def _tell(made: CreatedTopic, validate_only: bool, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "topic": made.name,
                "topicId": uuid_text(made.id),
                "partitions": made.partitions,
                "replicationFactor": made.replication_factor,
                "configs": made.configs or {},
            }
        )
    else:
        say(f"Topic {made.name} could be created." if validate_only else f"Created topic {made.name}.")


async def _create_all(
    cluster: Cluster, wanted: list[NewTopic], validate_only: bool, if_not_exists: bool
) -> list[CreatedTopic | KafkaError | None]:
    """Create each topic with its own request: one that is refused does not prevent the others."""
    results: list[CreatedTopic | KafkaError | None] = []
    for each in wanted:
        try:
            made = (await create_topics(cluster, [each], validate_only=validate_only))[each.name]
            if not validate_only:
                await see(cluster, made.name, _has_leader)
            results.append(made)
        except KafkaError as error:
            results.append(None if if_not_exists and isinstance(error, TopicExistsError) else error)
    return results


def _has_leader(topic: TopicDescription | None) -> bool:
    return topic is not None and any(each.leader is not None for each in topic.partitions)


HEADINGS = ("Topic", "#Partitions", "#Records", "#Size")

LIST_EXAMPLES = """\b
Examples:
  ottla topics list                               a table on a terminal, names in a pipe
  ottla topics list --exclude-internal --json
  ottla topics list 'orders-.*'                   a name, a regular expression or a glob such as 'orders-*'
"""


@click.command("list", epilog=LIST_EXAMPLES)
@topic_arguments
@click.option("--exclude-internal", is_flag=True, help="Leave out internal topics.")
@json_option
@click.option("--plain", is_flag=True, help="Only names, one a line, also on a terminal (pipes get them anyway).")
@wide_option
@cluster_options()
def list_command(
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
        print_json([_listed_json(topic, sizes[name]) for name, topic in topics.items()])
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


def _listed_json(topic: TopicDescription, size: TopicSize) -> dict[str, object]:
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


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
ANSWER_S = 5.0


class TopicSize(NamedTuple):
    """The sums over a topic's partitions; None if one of them could not be learned."""

    records: int | None
    """End offsets minus first offsets: more than there are records, if some were compacted or transactions were ended."""
    size_bytes: int | None
    """The logs of the leaders: one copy."""


class _Found(NamedTuple):
    """What one broker knows of the partitions that it leads."""

    records: dict[TopicPartition, int]
    size_bytes: dict[TopicPartition, int]


async def find_sizes(cluster: Cluster, topics: Mapping[str, TopicDescription]) -> dict[str, TopicSize]:
    """The size of each topic."""
    by_leader: dict[int, list[TopicPartition]] = {}
    for name, topic in topics.items():
        for each in topic.partitions:
            if each.leader is not None:
                by_leader.setdefault(each.leader, []).append(TopicPartition(name, each.partition))
    answers = await asyncio.gather(*(_ask(cluster, leader, led) for leader, led in by_leader.items()))
    records = {each: count for answer in answers for each, count in answer.records.items()}
    size_bytes = {each: size for answer in answers for each, size in answer.size_bytes.items()}
    found = {}
    for name, topic in topics.items():
        partitions = [TopicPartition(name, each.partition) for each in topic.partitions]
        found[name] = TopicSize(_sum(records, partitions), _sum(size_bytes, partitions))
    return found


async def _ask(cluster: Cluster, broker_id: int, led: list[TopicPartition]) -> _Found:
    ends, starts, directories = await asyncio.gather(
        _learned(list_offsets(cluster, dict.fromkeys(led, OffsetSpec.LATEST))),
        _learned(list_offsets(cluster, dict.fromkeys(led, OffsetSpec.EARLIEST))),
        _learned(describe_log_dirs(cluster, [broker_id], wanted_partitions=led)),
    )
    size_bytes: dict[TopicPartition, int] = {}
    for paths in directories.values():
        for directory in paths.values():
            size_bytes |= {each: info.size_bytes for each, info in directory.replicas.items() if not info.is_future}
    return _Found({each: end.offset - starts[each].offset for each, end in ends.items() if each in starts}, size_bytes)


async def _learned(answer: Awaitable[Results[K, V]]) -> dict[K, V]:
    """The values of an answer. What failed is left out."""
    try:
        async with asyncio.timeout(ANSWER_S):
            results = await answer
    except (KafkaError, TimeoutError):
        return {}
    errors = results.errors
    return {key: results[key] for key in results if key not in errors}


def _sum(found: Mapping[TopicPartition, int], partitions: Iterable[TopicPartition]) -> int | None:
    try:
        return sum(found[each] for each in partitions)
    except KeyError:
        return None


ALTER_EXAMPLES = """\b
Examples:
  ottla topics alter orders --partitions 6
  ottla configs alter topic orders --set retention.ms=86400000    settings are changed there
"""

KEYS_MOVE = (
    "adding partitions changes which partition a key goes to: records of one key will no longer all be in one partition, "
    "nor in order across the old and the new one"
)
USE_CONFIGS = "settings are changed with: ottla configs alter topic NAME --set KEY=VALUE"


@click.command("alter", epilog=ALTER_EXAMPLES)
@topic_arguments
@click.option("--partitions", type=click.IntRange(1), required=True, help="The new number of partitions.")
@click.option("--replica-assignment", metavar="1:2,2:3", help="Which brokers hold which partition, the old ones included.")
@click.option("--if-exists", is_flag=True, help="Do nothing if there is no such topic.")
@retired("--config", USE_CONFIGS)
@retired("--delete-config", USE_CONFIGS)
@yes_option
@json_option
@cluster_options()
def alter(
    settings: ClientSettings,
    names: tuple[str, ...],
    pattern: str | None,
    partitions: int,
    replica_assignment: str | None,
    if_exists: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Add partitions to topics. Partitions cannot be removed."""
    if not names and pattern is None:
        raise click.UsageError("name the topic to alter, for example: ottla topics alter orders --partitions 6")
    assignment = parse_assignment(replica_assignment) if replica_assignment is not None else None
    chosen = with_cluster(settings, lambda cluster: _partition_counts(cluster, names, pattern, if_exists))
    if not chosen:
        return 0
    warn(KEYS_MOVE)
    confirm(f"Give {', '.join(chosen)} {partitions} partitions?", yes)
    failures = with_cluster(settings, lambda cluster: _alter(cluster, chosen, partitions, assignment))
    if as_json:
        print_json([{"topic": name, "partitions": partitions} for name in chosen if name not in failures])
    for failure in failures.values():
        warn(explain(failure))
    return 1 if failures else 0


async def _partition_counts(cluster: Cluster, names: tuple[str, ...], pattern: str | None, if_exists: bool) -> dict[str, int]:
    known = await list_topics(cluster, include_internal=True)
    return {name: known[name].partitions for name in choose(known, names, pattern, if_exists)}


async def _alter(
    cluster: Cluster, counts: dict[str, int], partitions: int, assignment: list[list[int]] | None
) -> dict[str, KafkaError]:
    """Add the partitions; the error of each topic that was refused."""
    wanted = {
        name: NewPartitions(partitions, None if assignment is None else assignment[count:]) for name, count in counts.items()
    }
    failures = (await create_partitions(cluster, wanted)).errors
    for name in counts:
        if name not in failures:
            await see(cluster, name, lambda topic: topic is not None and len(topic.partitions) >= partitions)
    return failures


DELETE_EXAMPLES = """\b
Examples:
  ottla topics delete orders
  ottla topics delete --topic 'test-.*' --yes
"""


@click.command("delete", epilog=DELETE_EXAMPLES)
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


EXAMPLES = """\b
Examples:
  ottla topics create orders --partitions 3
  ottla topics list
  ottla topics describe orders
  ottla topics alter orders --partitions 6
  ottla topics delete orders
  ottla topics --create --topic orders --bootstrap-server localhost:9092    Kafka's spelling
"""

ACTIONS = {
    "create": (create, "Create topics."),
    "list": (list_command, "List all topics."),
    "describe": ("ottla.cli.topics.describe", "describe", "Show partitions, replicas and settings of topics."),
    "alter": (alter, "Add partitions to topics."),
    "delete": (delete, "Delete topics and their records."),
}


@click.command("topics", cls=Actions, actions=ACTIONS, epilog=EXAMPLES)
@retired("--zookeeper", ZOOKEEPER)
def topics() -> None:
    """Create, list, describe, alter and delete topics.

    Takes the flags of Kafka's kafka-topics, too. The output is a table on a terminal, Kafka's lines in a pipe, JSON with
    --json. `ottla topics ACTION --help` shows the flags of an action.
    """
