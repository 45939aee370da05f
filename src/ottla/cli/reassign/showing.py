"""How far a plan is, in words: Kafka's lines for pipes, tables for people, JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ottla.cli.common.output import is_for_people, print_json, print_table, say
from ottla.cli.reassign.moves import DONE, ELSEWHERE, MISSING, MOVING, DirectoryProgress, PartitionProgress, Status
from ottla.client.admin.log_dirs import Replica
from ottla.errors.texts import listed
from ottla.ids import TopicPartition


def show_status(status: Status, as_json: bool, plain: bool) -> None:
    """Print the state of each partition, and of each replica with a log directory in the plan."""
    if as_json:
        print_json(_as_json(status))
    elif is_for_people(as_json, plain):
        _print_tables(status)
    else:
        say("Status of partition reassignment:")
        for partition, each in status.partitions.items():
            say(partition_line(partition, each))
        for line in [directory_line(*each) for each in status.directories.items()] or [""]:  # Kafka's empty line
            say(line)


def partition_line(partition: TopicPartition, progress: PartitionProgress) -> str:
    """Kafka's line about a partition."""
    if progress.state == DONE:
        return f"Reassignment of partition {partition} is completed."
    if progress.state == MOVING:
        return f"Reassignment of partition {partition} is still in progress."
    now, wanted = joined(progress.replicas), joined(progress.wanted)
    return f"There is no active reassignment of partition {partition}, but replica set is {now} rather than {wanted}."


def waiting_lines(status: Status, path: str) -> dict[int, str]:
    """Which moves cannot end, and what to do, by the broker that is down. `path` is the plan's file."""
    return {
        broker: f"broker {broker} is down: the move of "
        f"{listed([str(partition) for partition, each in status.partitions.items() if broker in each.adding])} waits for it; "
        f"start it, or stop the moves of the plan with `ottla reassign cancel {path}`"
        for broker in sorted(status.down)
    }


def directory_line(replica: Replica, move: DirectoryProgress) -> str:
    """Kafka's line about the log directory of a replica."""
    name, broker = f"{replica.topic}-{replica.partition}", replica.broker
    if move.state == DONE:
        return f"Reassignment of replica {name}-{broker} completed successfully."
    if move.state == MISSING:
        return f"Partition {name} cannot be found in any live log directory on broker {broker}."
    if move.state == ELSEWHERE:
        return f"Partition {name} on broker {broker} is not being moved from log dir {move.path} to {move.wanted}."
    if move.future_path == move.wanted:
        return f"Reassignment of replica {name}-{broker} is still in progress."
    return f"Partition {name} on broker {broker} is being moved to log dir {move.future_path} instead of {move.wanted}."


def joined(ids: Sequence[int]) -> str:
    return ",".join(map(str, ids))


def _print_tables(status: Status) -> None:
    headings = ("Topic", "#Partition", "State", "=Replicas", "=Wanted", "=Adding", "=Removing")
    rows = [
        (
            partition.topic,
            partition.partition,
            each.state,
            joined(each.replicas) or "none",
            *map(joined, (each.wanted, each.adding, each.removing)),
        )
        for partition, each in status.partitions.items()
    ]
    print_table(None, headings, rows)
    if status.directories:
        moves = [
            (*replica, each.state, each.path or "none", each.wanted, each.future_path)
            for replica, each in status.directories.items()
        ]
        print_table(None, ("Topic", "#Partition", "#Broker", "State", "~Directory", "~Wanted", "~Moving to"), moves)


def _as_json(status: Status) -> dict[str, Any]:
    return {
        "isDone": status.is_done,
        "partitions": [
            {
                "topic": partition.topic,
                "partition": partition.partition,
                "state": each.state.replace(" ", "-"),
                "replicas": list(each.replicas),
                "wanted": list(each.wanted),
                "adding": list(each.adding),
                "removing": list(each.removing),
            }
            for partition, each in status.partitions.items()
        ],
        "logDirs": [
            {
                **replica._asdict(),
                "state": each.state.replace(" ", "-"),
                "path": each.path,
                "wanted": each.wanted,
                "futurePath": each.future_path,
            }
            for replica, each in status.directories.items()
        ],
    }
