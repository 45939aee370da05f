"""The `elect-leaders` verb: preferred and unclean elections of partition leaders. Takes the flags of kafka-leader-election.

An unclean election can lose acknowledged records: the command says which, and asks first. Without a terminal it needs --yes,
in either spelling: --unclean, or Kafka's --election-type UNCLEAN.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import click

from ottla.cli.common.completion import complete_topics, complete_words
from ottla.cli.common.connection import with_cluster
from ottla.cli.common.explanations import explain
from ottla.cli.common.json_files import read_json, typed
from ottla.cli.common.options import cluster_options, json_option, plain_option, refused, wide_option, yes_option
from ottla.cli.common.output import confirm, is_for_people, print_json, print_table, say, warn
from ottla.cli.common.settings import ClientSettings
from ottla.cli.topics.selection import choose
from ottla.client.admin import reassignments as admin
from ottla.client.admin.offsets import OffsetSpec, list_offsets
from ottla.client.admin.topic_descriptions import PartitionDescription, describe_topics, list_topics
from ottla.client.cluster import Cluster
from ottla.client.diagnosis import loss, safe_leaders
from ottla.client.health import log_ends
from ottla.env.backoff import Backoff
from ottla.errors import ElectionNotNeededError, KafkaError
from ottla.ids import TopicPartition

PREFERRED, UNCLEAN = "preferred", "unclean"


EXAMPLES = """\b
Examples:
  ottla elect-leaders --all                       every partition back to its preferred leader, the first of its replicas
  ottla elect-leaders orders                      all partitions of a topic
  ottla elect-leaders orders:0 orders:2
  ottla elect-leaders orders:0 --unclean          a leader out of sync, if no other replica will come back: loses records
  ottla elect-leaders --path-to-json-file partitions.json
\b
The file has Kafka's form:
  {"partitions": [{"topic": "orders", "partition": 0}]}
"""


@click.command("elect-leaders", epilog=EXAMPLES)
@click.argument("places", nargs=-1, metavar="[TOPIC[:PARTITION]]...", shell_complete=complete_topics)
@click.option("--topic", metavar="TOPIC", shell_complete=complete_topics, help="Kafka's spelling of TOPIC.")
@click.option("--partition", "numbers", type=click.IntRange(0), multiple=True, help="With --topic: this partition. Repeatable.")
@click.option("--all", "--all-topic-partitions", "is_all", is_flag=True, help="All partitions that need an election.")
@click.option("--path-to-json-file", metavar="FILE", help="Partitions in Kafka's form; - reads standard input.")
@click.option("--unclean", is_flag=True, help="Where there is no leader, elect a replica that is out of sync: loses records.")
@click.option(
    "--election-type",
    type=click.Choice([PREFERRED, UNCLEAN], case_sensitive=False),
    shell_complete=complete_words(PREFERRED, UNCLEAN),
    help=f"Kafka's spelling of --unclean.  [default: {PREFERRED}]",
)
@refused(
    "--list",
    "elect-leaders lists nothing: `ottla topics describe` shows leaders, with --unavailable-partitions those that need one",
    takes_value=False,
)
@yes_option
@json_option
@plain_option
@wide_option
@cluster_options(old_config_flag="admin")
def elect_leaders(
    settings: ClientSettings,
    places: tuple[str, ...],
    topic: str | None,
    numbers: tuple[int, ...],
    is_all: bool,
    path_to_json_file: str | None,
    unclean: bool,
    election_type: str | None,
    yes: bool,
    as_json: bool,
    plain: bool,
) -> int:
    """Elect leaders of partitions: the preferred ones, or with --unclean any replica.

    The preferred leader is the first of a partition's replicas. It is elected if it is in sync. An unclean election is only for
    partitions without a leader: what was acknowledged while the new leader was out of sync is lost for good. Without a terminal
    it needs --yes. The exit code is 1 if an election failed.
    """
    if unclean and election_type == PREFERRED:
        raise click.UsageError("--unclean and --election-type preferred exclude each other: choose one")
    named = named_partitions(places, topic, numbers, is_all, path_to_json_file)
    kind = UNCLEAN if unclean or election_type == UNCLEAN else PREFERRED
    if kind == UNCLEAN:
        ask_first(settings, named, yes)
    outcomes = with_cluster(settings, lambda cluster: elect(cluster, kind, named))
    print_outcomes(kind, outcomes, as_json, plain)
    return 1 if any(each.result == FAILED for each in outcomes) else 0


FORM = '{"partitions": [{"topic": "orders", "partition": 0}]}'

Named = Sequence[tuple[str, int | None]]
"""Topics and partitions that the user has named; None for all partitions of the topic."""


def named_partitions(
    places: Sequence[str], topic: str | None, numbers: Sequence[int], is_all: bool, path: str | None
) -> Named | None:
    """What the user has named; None for --all."""
    if sum((bool(places), topic is not None, is_all, path is not None)) != 1:
        raise click.UsageError(
            "say which partitions, one way: ottla elect-leaders orders:0 (or orders, --all, --path-to-json-file)"
        )
    if numbers and topic is None:
        raise click.UsageError("--partition needs --topic; or write orders:0")
    if is_all:
        return None
    if path is not None:
        return _unique(read_json(path, FORM, _parse_file))
    if topic is not None:
        return _unique([(topic, number) for number in numbers] or [(topic, None)])
    return _unique([_parse_place(place) for place in places])


def _parse_file(content: Any) -> list[tuple[str, int | None]]:
    return [(typed(each["topic"], str), typed(each["partition"], int)) for each in content["partitions"]]


def _parse_place(text: str) -> tuple[str, int | None]:
    topic, colon, number = text.partition(":")
    if not topic or (colon and not number.isdigit()):
        raise click.UsageError(f"{text!r} is neither TOPIC nor TOPIC:PARTITION: write for example orders, or orders:0")
    return topic, int(number) if colon else None


def _unique(named: list[tuple[str, int | None]]) -> list[tuple[str, int | None]]:
    for each in named:
        if named.count(each) > 1:
            raise click.UsageError(f"{each[0]}{'' if each[1] is None else f'-{each[1]}'} is named twice")
    if not named:
        raise click.UsageError("no partition is named: there is nothing to elect")
    return named


async def describe_named(cluster: Cluster, named: Named | None) -> dict[TopicPartition, PartitionDescription | None]:
    """The partitions that are meant; None for one that does not exist."""
    known = await list_topics(cluster, include_internal=True)
    names = list(known) if named is None else choose(known, [topic for topic, _ in named], None)
    topics = (await describe_topics(cluster, names)).raise_first()
    found = {
        TopicPartition(name, each.partition): each
        for name, topic in zip(names, topics.values(), strict=True)
        for each in topic.partitions
    }
    if named is None:
        return dict(found)
    meant: dict[TopicPartition, PartitionDescription | None] = {}
    for topic_name, number in named:
        if number is None:
            meant |= {each: found[each] for each in found if each.topic == topic_name}
        else:
            meant[TopicPartition(topic_name, number)] = found.get(TopicPartition(topic_name, number))
    return meant


ANSWER_S = 5.0

Ends = Mapping[int, Mapping[TopicPartition, int]]
"""Broker → partition → where its log ends."""


def ask_first(settings: ClientSettings, named: Named | None, yes: bool) -> None:
    """Say what an unclean election would lose, and ask. Without a terminal it needs --yes."""

    async def find(cluster: Cluster) -> dict[TopicPartition, str]:
        described = await describe_named(cluster, named)
        leaderless = {each: found for each, found in described.items() if found is not None and found.leader is None}
        live = frozenset(cluster.brokers)
        ends = await _ends(cluster, leaderless, live)
        return {each: _danger(each, found, live, ends) for each, found in leaderless.items()}

    dangers = with_cluster(settings, find)
    for text in dangers.values():
        warn(text)
    if dangers:
        confirm(f"Elect leaders out of sync for {', '.join(map(str, dangers))}, and lose these records?", yes, needs_yes=True)


async def _ends(cluster: Cluster, leaderless: Mapping[TopicPartition, PartitionDescription], live: Iterable[int]) -> Ends:
    """Where the logs of the replicas end that are up, as far as their brokers answer at once."""

    async def ask(broker: int) -> dict[TopicPartition, int]:
        held = [each for each, found in leaderless.items() if broker in found.replicas]
        try:
            async with asyncio.timeout(ANSWER_S):
                return await log_ends(cluster, broker, held) if held else {}
        except (KafkaError, TimeoutError):
            return {}

    brokers = sorted(live)
    return dict(zip(brokers, await asyncio.gather(*map(ask, brokers)), strict=True))


def _danger(name: TopicPartition, found: PartitionDescription, live: frozenset[int], ends: Ends) -> str:
    """What an unclean election of a partition would lose, and how not to."""
    lost, safe = loss(name, found, live), safe_leaders(found)
    if not lost:
        return f"{name} has no leader, and none of its replicas {_ids(found.replicas)} is up: an election cannot help"
    known = [(each, ends[each][name]) for each in found.replicas if name in ends.get(each, {})]
    logs = [f"that of broker {broker} at {end}" for broker, end in known]
    if logs:
        logs[0] = f". The log of broker {known[0][0]} ends at offset {known[0][1]}"
    lost += ", ".join(logs)
    if not safe:
        return f"{lost}. No replica is known to hold all of it"
    those = f"broker {safe[0]}" if len(safe) == 1 else f"brokers {_ids(safe)}"
    return f"{lost}. If {those} can be started, do that instead: then nothing is lost"


def _ids(ids: Sequence[int]) -> str:
    return ",".join(map(str, ids))


ELECTED, NOT_NEEDED, FAILED = "elected", "not needed", "failed"
SEE_LEADER_S = 5.0
"""Brokers learn of a new leader shortly after the controller has acknowledged it."""


class Outcome(NamedTuple):
    """What became of one partition."""

    partition: TopicPartition
    result: str
    before: int | None
    """The leader before; None: none."""
    leader: int | None
    error: KafkaError | None
    loss: str | None = None
    """What an unclean election has lost."""


async def elect(cluster: Cluster, kind: str, named: Named | None) -> list[Outcome]:
    """Hold an election of `kind` for the partitions that are named, or for all that need one."""
    before = await describe_named(cluster, named)
    wanted = None if named is None else list(before)
    results = await admin.elect_leaders(cluster, kind, wanted)
    errors = results.errors
    leaders = {each: found.leader if (found := before.get(each)) is not None else None for each in results}
    elected = [each for each in results if each not in errors]
    after = leaders | await _see_leaders(cluster, {each: leaders[each] for each in elected})
    losses = await _losses(cluster, {each: after[each] for each in elected}) if kind == UNCLEAN else {}
    return [
        Outcome(each, _result(errors.get(each)), leaders[each], after[each], errors.get(each), losses.get(each))
        for each in results
    ]


def _result(error: KafkaError | None) -> str:
    return ELECTED if error is None else NOT_NEEDED if isinstance(error, ElectionNotNeededError) else FAILED


async def _see_leaders(cluster: Cluster, before: Mapping[TopicPartition, int | None]) -> dict[TopicPartition, int | None]:
    """The leaders after the election. Waits, but not for long, until brokers show that they have changed."""
    deadline_s = asyncio.get_running_loop().time() + SEE_LEADER_S
    settings = cluster.settings
    backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, cluster.world.randomness.below)
    leaders: dict[TopicPartition, int | None] = {}
    while before:
        topics = (await describe_topics(cluster, sorted({each.topic for each in before}))).values_found
        leaders = {
            TopicPartition(topic.name, each.partition): each.leader
            for topic in topics.values()
            for each in topic.partitions
            if TopicPartition(topic.name, each.partition) in before
        }
        if all(leaders.get(each) != leader for each, leader in before.items()) or not await cluster.wait(backoff, deadline_s):
            break
    return {each: leaders.get(each) for each in before}


async def _losses(cluster: Cluster, elected: Mapping[TopicPartition, int | None]) -> dict[TopicPartition, str]:
    """Where the logs of new leaders end: everything after that is lost."""
    led: dict[TopicPartition | tuple[str, int], OffsetSpec] = {
        each: OffsetSpec.LATEST for each, leader in elected.items() if leader is not None
    }
    try:
        async with asyncio.timeout(SEE_LEADER_S):
            ends = (await list_offsets(cluster, led)).values_found
    except (KafkaError, TimeoutError):
        ends = {}
    return {
        each: f"broker {leader} leads with its own log, which ends at offset {ends[each].offset}: what was acknowledged "
        "from there on is lost, and replicas that come back cut it off"
        for each, leader in elected.items()
        if each in ends
    }


def print_outcomes(kind: str, outcomes: Sequence[Outcome], as_json: bool, plain: bool) -> None:
    """Print what became of each partition."""
    if as_json:
        print_json([_as_json(each) for each in outcomes])
    elif not outcomes:
        say(f"No partition needs an election ({kind}).")
    elif is_for_people(as_json, plain):
        rows = [
            (
                each.partition.topic,
                each.partition.partition,
                each.result,
                _leader(each.before),
                _leader(each.leader),
                _remark(each),
            )
            for each in outcomes
        ]
        print_table(None, ("Topic", "#Partition", "Election", "#Leader before", "#Leader now", "=Remark"), rows)
    else:
        _print_lines(kind.upper(), outcomes)


def _leader(leader: int | None) -> str:
    return "none" if leader is None else str(leader)


def _remark(outcome: Outcome) -> str:
    return explain(outcome.error) if outcome.error is not None else outcome.loss or ""


def _print_lines(kind: str, outcomes: Sequence[Outcome]) -> None:
    """Kafka's own lines, and what was lost."""
    elected = ", ".join(str(each.partition) for each in outcomes if each.result == ELECTED)
    unneeded = ", ".join(str(each.partition) for each in outcomes if each.result == NOT_NEEDED)
    if elected:
        say(f"Successfully completed leader election ({kind}) for partitions {elected}")
    if unneeded:
        say(f"Valid replica already elected for partitions {unneeded}")
    for each in outcomes:
        if each.result == FAILED and each.error is not None:
            say(f"Error completing leader election ({kind}) for partition: {each.partition}: {explain(each.error)}")
        if each.loss is not None:
            warn(f"{each.partition}: {each.loss}")


def _as_json(outcome: Outcome) -> dict[str, object]:
    return {
        "topic": outcome.partition.topic,
        "partition": outcome.partition.partition,
        "result": outcome.result.replace(" ", "-"),
        "leaderBefore": outcome.before,
        "leader": outcome.leader,
        "error": None if outcome.error is None else explain(outcome.error),
        "loss": outcome.loss,
    }
