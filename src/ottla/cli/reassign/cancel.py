"""`ottla reassign cancel`: stops moves; the partitions go back to the replicas that they had."""

from __future__ import annotations

from typing import NamedTuple

import click

from ottla.cli.common.explaining import explain
from ottla.cli.common.options import cluster_options, json_option
from ottla.cli.common.output import print_json, say, warn
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.cli.reassign.asking import MOVING, directory_progress
from ottla.cli.reassign.moving import start_directory_moves
from ottla.cli.reassign.options import plan_argument, plan_path, preserve_option, timeout_option
from ottla.cli.reassign.plan import Plan, read_plan
from ottla.cli.reassign.moving import remove_throttles
from ottla.client.admin.log_dirs import Replica
from ottla.client.admin.reassignments import alter_partition_reassignments, list_partition_reassignments
from ottla.client.cluster import Cluster
from ottla.errors import KafkaError
from ottla.errors.texts import counted
from ottla.ids import TopicPartition

EXAMPLES = """\b
Examples:
  ottla reassign cancel plan.json
  ottla reassign cancel --all                     every move that is under way
"""


class Cancelled(NamedTuple):
    """What has been stopped."""

    partitions: list[TopicPartition]
    errors: dict[TopicPartition, KafkaError]
    directories: list[Replica]
    """Moves between log directories."""


@click.command("cancel", epilog=EXAMPLES)
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
    done, lines = with_cluster(settings, lambda cluster: _cancel(cluster, plan, preserve_throttles, timeout_ms))
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


async def _cancel(
    cluster: Cluster, plan: Plan | None, preserves_throttles: bool, timeout_ms: int
) -> tuple[Cancelled, list[str]]:
    ongoing = await list_partition_reassignments(cluster, None if plan is None else list(plan.assignment))
    results = await alter_partition_reassignments(cluster, dict.fromkeys(sorted(ongoing)))
    errors = results.errors
    moving = (
        []
        if plan is None
        else [
            (replica, each.path)
            for replica, each in (await directory_progress(cluster, plan.log_dirs)).items()
            if each.state == MOVING
        ]
    )
    back = {replica: path for replica, path in moving if path is not None}
    await start_directory_moves(cluster, back, timeout_ms)  # to where it is: that ends the move
    plan = plan or Plan({each: list(found.replicas) for each, found in ongoing.items()}, {})
    lines = [] if preserves_throttles or not plan.assignment else await remove_throttles(cluster, plan)
    return Cancelled([each for each in results if each not in errors], errors, list(back)), lines
