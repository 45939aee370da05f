"""`ottla reassign execute`: begins what a plan says, and with --wait stays until it is done."""

from __future__ import annotations

import click

from ottla.cli.common.explaining import explain
from ottla.cli.common.options import cluster_options, json_option
from ottla.cli.common.output import print_json, print_json_text, say, warn
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.cli.reassign.moving import Limits, Started, prepare, start
from ottla.cli.reassign.options import plan_argument, plan_path, timeout_option
from ottla.cli.reassign.plan import CURRENT, Plan, plan_json, read_plan
from ottla.cli.reassign.waiting import await_done
from ottla.client.cluster import Cluster

EXAMPLES = """\b
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


@click.command("execute", epilog=EXAMPLES)
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
