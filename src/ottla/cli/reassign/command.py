"""The `reassign` verb: generate, execute, verify, cancel and list.

A proposed plan goes to standard output, what it does to standard error. The lines for pipes are those of
kafka-reassign-partitions. `verify` removes the throttles when nothing moves any more, as Kafka's tool does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from ottla.cli.brokers import complete_brokers
from ottla.cli.common.completion import complete_topics
from ottla.cli.common.connection import with_cluster
from ottla.cli.common.explanations import explain
from ottla.cli.common.options import ZOOKEEPER, cluster_options, json_option, plain_option, retired, wide_option
from ottla.cli.common.output import is_for_people, print_json, print_json_text, print_table, say, warn
from ottla.cli.common.settings import ClientSettings
from ottla.cli.common.spelling import Actions
from ottla.cli.reassign.plan import CURRENT, PROPOSED, parse_brokers, read_plan, read_topics, unique
from ottla.cli.reassign.progress import await_done, joined, show_status, waiting_lines
from ottla.cli.topics.selection import choose
from ottla.client.admin.cluster_state import NodeDescription
from ottla.client.admin.log_dirs import Replica
from ottla.client.admin.reassignments import list_partition_reassignments
from ottla.client.admin.topic_descriptions import list_topics
from ottla.client.cluster import Cluster
from ottla.client.reassignment_moves import (
    Limits,
    Started,
    cancel_moves,
    current_assignment,
    live_nodes,
    places_of,
    prepare,
    remove_throttles,
    start,
    status_of,
)
from ottla.client.reassignment_plan import Plan, check_count, plan_json, propose, racks_of, summary
from ottla.errors.texts import counted
from ottla.ids import TopicPartition

F = TypeVar("F", bound=Callable[..., Any])


def plan_argument(function: F) -> F:
    """Adds the argument FILE, and Kafka's --reassignment-json-file; the function gets both."""
    function = click.option(
        "--reassignment-json-file", "kafkas_file", metavar="FILE", help="Kafka's spelling of FILE.", type=click.Path()
    )(function)
    return click.argument("file", required=False, type=click.Path(allow_dash=True))(function)


def plan_path(file: str | None, kafkas_file: str | None, action: str) -> str:
    """The file with the plan, given one way or the other."""
    if (file is None) == (kafkas_file is None):
        raise click.UsageError(f"name the file with the plan: ottla reassign {action} plan.json (- reads standard input)")
    return file or kafkas_file or ""


preserve_option = click.option("--preserve-throttles", is_flag=True, help="Do not remove the throttles of brokers and topics.")
timeout_option = click.option(
    "--timeout",
    "timeout_ms",
    type=click.IntRange(0),
    default=10_000,
    show_default=True,
    help="How many milliseconds to wait until moves between log directories have begun.",
)


GENERATE_EXAMPLES = """\b
Examples:
  ottla reassign generate --brokers 1,2,3,4 > plan.json               all topics; use it after broker 4 was added
  ottla reassign generate --brokers 1,2,3 --topics orders,payments    away from broker 4
  ottla reassign generate --topics orders --replication-factor 3      more replicas, on the brokers there are
  ottla reassign generate --brokers 1,2,3 | ottla reassign execute -
"""


@click.command("generate", epilog=GENERATE_EXAMPLES)
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
    check_count(current, racks, replication_factor)
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


EXECUTE_EXAMPLES = """\b
Examples:
  ottla reassign execute plan.json
  ottla reassign execute plan.json --throttle 20000000 --wait     at most 20 MB/s into each broker, and out of it
  ottla reassign execute plan.json --throttle 50000000 --additional    another throttle for what moves already
  ottla reassign generate --brokers 1,2,3 | ottla reassign execute - > before.json
"""

ROLLBACK = "Save this to use as the --reassignment-json-file option during rollback"
REMEMBER = (
    "the throttles stay until `ottla reassign verify` finds that the plan is done: run it from time to time, or use --wait"
)
RATE_MIN = 1024


@click.command("execute", epilog=EXECUTE_EXAMPLES)
@plan_argument
@click.option(
    "--throttle",
    type=click.IntRange(RATE_MIN),
    metavar="BYTES/S",
    help="How much may move between brokers, per broker and second.",
)
@click.option(
    "--replica-alter-log-dirs-throttle",
    "log_dir_throttle",
    type=click.IntRange(RATE_MIN),
    metavar="BYTES/S",
    help="How much may move between the log directories of a broker, per second.",
)
@click.option("--additional", is_flag=True, help="Also if other partitions move now; changes the throttle of those, too.")
@click.option(
    "--disallow-replication-factor-change", is_flag=True, help="Refuse partitions that would get more or fewer replicas."
)
@click.option("--wait", is_flag=True, help="Stay until all is done, show the progress, and remove the throttles.")
@timeout_option
@json_option
@cluster_options()
def execute(
    settings: ClientSettings,
    file: str | None,
    kafkas_file: str | None,
    throttle: int | None,
    log_dir_throttle: int | None,
    additional: bool,
    disallow_replication_factor_change: bool,
    wait: bool,
    timeout_ms: int,
    as_json: bool,
) -> int:
    """Start moving partitions as a plan says. Prints the current assignment first: executing that goes back.

    The brokers move the partitions, also after this command has ended. Clients notice nothing but a new leader at the end.
    """
    plan = read_plan(plan_path(file, kafkas_file, "execute"))
    limits = Limits(throttle, log_dir_throttle)
    found = with_cluster(settings, lambda cluster: prepare(cluster, plan, additional))
    if not as_json:
        _print_current(found)
        if limits != Limits(None, None) and not wait:
            warn(REMEMBER)

    async def work(cluster: Cluster) -> Started:
        return await start(
            cluster, plan, found, limits, may_change_factor=not disallow_replication_factor_change, timeout_ms=timeout_ms
        )

    started = with_cluster(settings, work)
    _print_started(plan, limits, started, as_json)
    if wait and len(started.errors) < len(plan.assignment):
        kept = Plan({each: plan.assignment[each] for each in plan.assignment if each not in started.errors}, plan.log_dirs)
        is_done = await_done(settings, kept, str(file or kafkas_file))
        return 0 if is_done and not started.errors else 1
    return 1 if started.errors else 0


def _print_current(found: Started) -> None:
    """Kafka's own lines."""
    say(CURRENT)
    say("")
    print_json_text(plan_json(found.current, found.places))
    say("")
    say(ROLLBACK)


def _print_started(plan: Plan, limits: Limits, started: Started, as_json: bool) -> None:
    begun = [each for each in sorted(plan.assignment) if each not in started.errors]
    for partition, error in started.errors.items():
        warn(f"{partition}: {explain(error)}")
    if as_json:
        print_json(
            {
                "started": [each._asdict() for each in begun],
                "logDirs": [each._asdict() for each in started.directories],
                "errors": {str(each): explain(error) for each, error in started.errors.items()},
                "before": {str(each): replicas for each, replicas in sorted(started.current.items())},
            }
        )
        return
    if limits.throttle is not None:
        say(f"The inter-broker throttle limit was set to {limits.throttle} B/s")
    if limits.log_dir_throttle is not None:
        say(f"The replica-alter-dir throttle limit was set to {limits.log_dir_throttle} B/s")
    if begun:
        say(f"Successfully started partition reassignment{'' if len(begun) == 1 else 's'} for {','.join(map(str, begun))}")
    for replica in started.directories:
        say(
            f"Successfully started moving log directory to {plan.log_dirs[replica]} for replica "
            f"{replica.topic}-{replica.partition} with broker {replica.broker}"
        )


VERIFY_EXAMPLES = """\b
Examples:
  ottla reassign verify plan.json
  until ottla reassign verify plan.json; do sleep 10; done
"""


@click.command("verify", epilog=VERIFY_EXAMPLES)
@plan_argument
@preserve_option
@json_option
@plain_option
@wide_option
@cluster_options()
def verify(
    settings: ClientSettings, file: str | None, kafkas_file: str | None, preserve_throttles: bool, as_json: bool, plain: bool
) -> int:
    """Show how far a plan is.

    When no partition of the cluster moves any more, the throttles that `execute` has set are removed, of all brokers and of the
    plan's topics. The exit code is 0 if every partition is where the plan wants it, else 1.
    """
    path = plan_path(file, kafkas_file, "verify")
    plan = read_plan(path)
    status = with_cluster(settings, lambda cluster: status_of(cluster, plan))
    show_status(status, as_json, plain)
    for line in waiting_lines(status, path).values():
        warn(line)
    if not status.is_moving and not preserve_throttles:
        notes: list[str] = []
        cleared = with_cluster(settings, lambda cluster: remove_throttles(cluster, plan, notes))
        for line in notes:
            warn(line)
        if not as_json:
            for line in cleared:
                say(line)
    return 0 if status.is_done else 1


CANCEL_EXAMPLES = """\b
Examples:
  ottla reassign cancel plan.json
  ottla reassign cancel --all                     every move that is under way
"""


@click.command("cancel", epilog=CANCEL_EXAMPLES)
@plan_argument
@click.option("--all", "is_all", is_flag=True, help="Cancel all moves between brokers, without a plan.")
@preserve_option
@timeout_option
@json_option
@cluster_options(takes_controllers=True)
def cancel(
    settings: ClientSettings,
    file: str | None,
    kafkas_file: str | None,
    is_all: bool,
    preserve_throttles: bool,
    timeout_ms: int,
    as_json: bool,
) -> int:
    """Stop moving partitions: they go back to the replicas that they had. Removes the throttles, too."""
    if is_all and (file is not None or kafkas_file is not None):
        raise click.UsageError("--all takes no plan: it cancels every move")
    plan = None if is_all else read_plan(plan_path(file, kafkas_file, "cancel"))
    notes: list[str] = []
    done, lines = with_cluster(settings, lambda cluster: cancel_moves(cluster, plan, preserve_throttles, timeout_ms, notes))
    for line in notes:
        warn(line)
    for partition, error in done.errors.items():
        warn(f"{partition}: {explain(error)}")
    if as_json:
        print_json(
            {
                "cancelled": [each._asdict() for each in done.partitions],
                "logDirs": [each._asdict() for each in done.directories],
                "errors": {str(each): explain(error) for each, error in done.errors.items()},
            }
        )
        return 1 if done.errors else 0
    if done.partitions:
        plural = "" if len(done.partitions) == 1 else "s"
        say(f"Successfully cancelled partition reassignment{plural} for: {','.join(map(str, done.partitions))}")
    elif not done.errors:
        say("None of the specified partition reassignments are active.")
    if done.directories:
        say(f"Stopped moving {counted(len(done.directories), 'replica')} between log directories.")
    else:
        say("None of the specified partition moves are active.")
    for line in lines:
        say(line)
    return 1 if done.errors else 0


LIST_EXAMPLES = """\b
Examples:
  ottla reassign list
  ottla reassign list --json
"""


@click.command("list", epilog=LIST_EXAMPLES)
@json_option
@plain_option
@wide_option
@cluster_options(takes_controllers=True)
def list_reassignments(settings: ClientSettings, as_json: bool, plain: bool) -> None:
    """List the partitions that are being moved: all replicas, those that are added and those that will be removed."""
    found = dict(sorted(with_cluster(settings, list_partition_reassignments).items()))
    if as_json:
        print_json([{"topic": each.topic, "partition": each.partition, **found[each]._asdict()} for each in found])
    elif not found:
        say("No partition reassignments found.")
    elif is_for_people(as_json, plain):
        rows = [
            (partition.topic, partition.partition, *map(joined, (each.replicas, each.adding, each.removing)))
            for partition, each in found.items()
        ]
        print_table(None, ("Topic", "#Partition", "=Replicas", "=Adding", "=Removing"), rows)
    else:
        say("Current partition reassignments:")
        for partition, each in found.items():
            adding = f" adding: {joined(each.adding)}." if each.adding else ""
            removing = f" removing: {joined(each.removing)}." if each.removing else ""
            say(f"{partition}: replicas: {joined(each.replicas)}.{adding}{removing}")


EXAMPLES = """\b
Examples:
  ottla reassign generate --brokers 1,2,3,4 > plan.json      spread all topics over these brokers, with few moves
  ottla reassign execute plan.json --throttle 20000000 --wait
  ottla reassign verify plan.json                            how far it is; removes the throttles when all is done
  ottla reassign cancel plan.json                            back to where the replicas were
  ottla reassign --execute --reassignment-json-file plan.json --bootstrap-server localhost:9092    Kafka's spelling
"""

ACTIONS = {
    "generate": (generate, "Propose which brokers hold which partitions, as a plan in JSON."),
    "execute": (execute, "Start moving partitions as a plan says."),
    "verify": (verify, "Show how far a plan is; remove the throttles when it is done."),
    "cancel": (cancel, "Stop moving the partitions of a plan."),
    "list": (list_reassignments, "List the partitions that are being moved now."),
}


@click.command("reassign", cls=Actions, actions=ACTIONS, epilog=EXAMPLES)
@retired("--zookeeper", ZOOKEEPER)
def reassign() -> None:
    """Move partitions to other brokers or log directories.

    A plan is a JSON file in the form of Kafka's kafka-reassign-partitions: each tool takes the files of the other. Takes the
    flags of that tool, too.
    """
