"""`ottla reassign generate`: proposes a plan. The plan goes to standard output, what it does to standard error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import click

from ottla.cli.brokers import complete_brokers
from ottla.cli.common.completion import complete_topics
from ottla.cli.common.options import cluster_options
from ottla.cli.common.output import print_json_text, say, warn
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.cli.reassign.asking import PlanRefused, current_assignment, live_nodes, places_of
from ottla.cli.reassign.plan import CURRENT, PROPOSED, Assignment, moved, parse_brokers, plan_json, propose, read_topics, unique
from ottla.cli.topics.selection import choose
from ottla.client.admin.cluster_state import NodeDescription
from ottla.client.admin.log_dirs import Replica
from ottla.client.admin.topic_descriptions import list_topics
from ottla.client.cluster import Cluster
from ottla.errors.texts import counted, listed
from ottla.ids import TopicPartition

EXAMPLES = """\b
Examples:
  ottla reassign generate --brokers 1,2,3,4 > plan.json               all topics; use it after broker 4 was added
  ottla reassign generate --brokers 1,2,3 --topics orders,payments    away from broker 4
  ottla reassign generate --topics orders --replication-factor 3      more replicas, on the brokers there are
  ottla reassign generate --brokers 1,2,3 | ottla reassign execute -
"""


@click.command("generate", epilog=EXAMPLES)
@click.option(
    "--brokers",
    "--broker-list",
    metavar="1,2,3",
    shell_complete=complete_brokers,
    help="The brokers that shall hold the partitions.  [default: all that are up]",
)
@click.option(
    "--topics",
    "topics",
    multiple=True,
    metavar="NAME,…",
    shell_complete=complete_topics,
    help="The topics to move. Repeatable.  [default: all, internal ones too]",
)
@click.option("--topics-to-move-json-file", metavar="FILE", help="The topics in Kafka's form; - reads standard input.")
@click.option("--replication-factor", type=click.IntRange(1, 32767), help="How many replicas.  [default: as many as now]")
@click.option("--disable-rack-aware", is_flag=True, help="Do not spread the replicas of a partition over racks.")
@cluster_options(retire_broker_list=False)
def generate(
    settings: ClientSettings,
    brokers: str | None,
    topics: tuple[str, ...],
    topics_to_move_json_file: str | None,
    replication_factor: int | None,
    disable_rack_aware: bool,
) -> None:
    """Propose which brokers hold which partitions. Nothing is moved: `ottla reassign execute` does that.

    The plan spreads replicas and leaders evenly over the brokers, each partition over racks, and moves as few replicas as it
    can; it holds only the partitions that change. With --topics-to-move-json-file the output is that of Kafka's tool: the
    current assignment and the proposed one, of all partitions.
    """
    if topics and topics_to_move_json_file is not None:
        raise click.UsageError("name topics with --topics or with --topics-to-move-json-file, not both")
    wanted = parse_brokers(brokers) if brokers is not None else None
    names = unique((name.strip() for each in topics for name in each.split(",")), "--topics names")
    if topics_to_move_json_file is not None:
        names = read_topics(topics_to_move_json_file)

    async def ask(
        cluster: Cluster,
    ) -> tuple[dict[int, NodeDescription], dict[TopicPartition, list[int]], dict[Replica, str]]:
        live = await live_nodes(cluster)
        known = await list_topics(cluster, include_internal=True)
        current = await current_assignment(cluster, choose(known, names, None))
        places = await places_of(cluster, current, live) if topics_to_move_json_file is not None else {}
        return live, current, places

    live, current, places = with_cluster(settings, ask)
    racks = racks_of(live, wanted, disable_rack_aware)
    _check_count(current, racks, replication_factor)
    proposed = propose(current, racks, replication_factor)
    if topics_to_move_json_file is not None:
        say(CURRENT)
        print_json_text(plan_json(current, places))
        say("")
        say(PROPOSED)
        print_json_text(plan_json(proposed))
        return
    changed = {each: replicas for each, replicas in proposed.items() if replicas != current[each]}
    print_json_text(plan_json(changed))
    for line in summary(current, proposed, sorted(racks)):
        warn(line)


def racks_of(live: Mapping[int, NodeDescription], wanted: Sequence[int] | None, ignores_racks: bool) -> dict[int, str | None]:
    """The racks of the brokers that are wanted (None: all). Either all have one, or none is looked at."""
    brokers = sorted(live) if wanted is None else wanted
    unknown = [str(broker) for broker in brokers if broker not in live]
    if unknown:
        raise PlanRefused(
            f"broker {listed(unknown)} {'is' if len(unknown) == 1 else 'are'} not up: `ottla brokers list` shows the brokers"
        )
    racks = {broker: None if ignores_racks else live[broker].rack for broker in brokers}
    without = [str(broker) for broker, rack in racks.items() if rack is None]
    if without and len(without) < len(racks):
        raise PlanRefused(
            f"broker {listed(without)} has no rack, but others have: set broker.rack on all, or give --disable-rack-aware"
        )
    return racks


def _check_count(current: Assignment, racks: Mapping[int, str | None], replication_factor: int | None) -> None:
    """There must be a broker for each replica."""
    for partition, replicas in current.items():
        count = replication_factor or len(replicas)
        if count > len(racks):
            raise PlanRefused(
                f"{partition} would have {count} replicas, but there are {counted(len(racks), 'broker')} to hold them: name "
                "more with --brokers, or give a smaller --replication-factor"
            )


def summary(current: Assignment, proposed: Assignment, brokers: Sequence[int]) -> list[str]:
    """What a plan does, in sentences."""
    total = sum(map(len, proposed.values()))
    changed = sum(list(replicas) != list(current[each]) for each, replicas in proposed.items())
    if not changed:
        return [f"nothing to move: {counted(total, 'replica')} are spread evenly over the brokers {_joined(brokers)}"]
    before = Counter(broker for replicas in current.values() for broker in replicas)
    after = Counter(broker for replicas in proposed.values() for broker in replicas)
    moves = f"moves {counted(moved(current, proposed), 'replica')} of {total:,}"
    first = f"the plan changes {counted(changed, 'partition')} of {len(proposed):,} and {moves}"
    spread = ", ".join(f"{broker}: {before[broker]} → {after[broker]}" for broker in sorted({*before, *after}))
    return [first, f"replicas by broker: {spread}", "save it in a file, then: ottla reassign execute FILE"]


def _joined(brokers: Sequence[int]) -> str:
    return ", ".join(map(str, brokers))
