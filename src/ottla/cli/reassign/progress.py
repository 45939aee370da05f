"""How far a plan is: Kafka's lines for pipes, tables for people, JSON; and the wait of `execute --wait` until it is done.

The wait shows a bar on a terminal, a line now and then elsewhere. Progress is counted in partitions and in bytes: what the
added replicas hold, of what their leaders hold.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ottla.cli.common.connection import with_cluster
from ottla.cli.common.output import fit, is_for_people, print_json, print_table, say, warn
from ottla.cli.common.settings import ClientSettings
from ottla.cli.common.waiting import shown_duration
from ottla.client.admin.log_dirs import Replica, describe_log_dirs
from ottla.client.cluster import Cluster, is_worth_retrying
from ottla.client.reassignment_moves import (
    DONE,
    ELSEWHERE,
    MISSING,
    MOVING,
    DirectoryProgress,
    PartitionProgress,
    Status,
    finish,
)
from ottla.client.reassignment_plan import Plan
from ottla.errors import KafkaError, UnreachableError
from ottla.errors.texts import counted, listed, sized
from ottla.ids import TopicPartition

LOOK_EVERY_S = 0.5
LINE_EVERY_S = 10.0
ANSWER_S = 5.0
SEE_CHANGES_S = 5.0
BAR_CELLS = 24
_FULL, _EMPTY = "━", "╌"


class Progress(NamedTuple):
    """How much of a plan is done."""

    partitions: int
    partitions_done: int
    bytes_wanted: int
    bytes_there: int

    @property
    def share(self) -> float:
        """From 0 to 1. Bytes say more, where there are any."""
        if self.partitions_done == self.partitions:
            return 1.0
        if self.bytes_wanted:
            return min(0.99, self.bytes_there / self.bytes_wanted)
        return self.partitions_done / self.partitions if self.partitions else 1.0


def progress_line(progress: Progress, seconds: float) -> str:
    """The text of the bar."""
    full = int(progress.share * BAR_CELLS)
    parts = [
        f"{_FULL * full}{_EMPTY * (BAR_CELLS - full)} {progress.share:4.0%}",
        f"{progress.partitions_done:,} of {counted(progress.partitions, 'partition')}",
        f"{sized(progress.bytes_there)} of {sized(progress.bytes_wanted)}" if progress.bytes_wanted else "",
        shown_duration(seconds),
    ]
    return "  ".join(filter(None, parts))


def await_done(settings: ClientSettings, plan: Plan, path: str) -> bool:
    """Wait until nothing of a plan moves any more, and remove the throttles. Whether all is as the plan says."""
    try:
        status = with_cluster(settings, lambda cluster: _wait(cluster, plan, path), is_patient=True)
    except KeyboardInterrupt:
        _erase()
        raise KeyboardInterrupt(
            f"no longer waiting; the partitions go on moving. `ottla reassign verify {path}` shows how far, "
            f"`ottla reassign cancel {path}` stops them"
        ) from None
    for partition, each in status.partitions.items():
        if each.replicas != each.wanted:
            warn(partition_line(partition, each))
    if status.is_moving:
        warn("other partitions are still moving, so the throttles stay: `ottla reassign verify` removes them later")
    if status.is_done:
        # Not to standard output: that is the plan that goes back (`execute … --wait > before.json`).
        say(f"Done: {counted(len(status.partitions), 'partition')} moved.", err=True)
    return status.is_done


async def _wait(cluster: Cluster, plan: Plan, path: str) -> Status:
    began_s = time.monotonic()
    lines_s = began_s
    ended_s: float | None = None
    bytes_seen: dict[TopicPartition, tuple[int, int]] = {}
    told: frozenset[int] = frozenset()
    while True:
        try:
            notes: list[str] = []
            status = await finish(cluster, plan, notes)
            for line in notes:
                _erase()
                warn(line)
            for broker, line in waiting_lines(status, path).items():
                if broker not in told:
                    _erase()
                    warn(line)
            told = status.down
            if MOVING in status.states:
                ended_s = None
            elif status.is_done or (ended_s is not None and time.monotonic() - ended_s > SEE_CHANGES_S):
                _erase()
                return status
            else:  # a broker may learn of the end after the controller
                ended_s = ended_s or time.monotonic()
            progress = await _progress(cluster, status, bytes_seen)
            now_s = time.monotonic()
            if sys.stderr.isatty():
                width = shutil.get_terminal_size().columns
                sys.stderr.write(f"\r\x1b[K{fit(progress_line(progress, now_s - began_s), width - 1)}")
                sys.stderr.flush()
            elif now_s - lines_s >= LINE_EVERY_S:
                lines_s = now_s
                warn(progress_line(progress, now_s - began_s))
        except KafkaError as error:
            if not (isinstance(error, UnreachableError) or is_worth_retrying(error)):
                raise
        await asyncio.sleep(LOOK_EVERY_S)


def _erase() -> None:
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


async def _progress(cluster: Cluster, status: Status, seen: dict[TopicPartition, tuple[int, int]]) -> Progress:
    """`seen` keeps the bytes (there, wanted) of each partition: those that are done have moved all."""
    moving = {each: found for each, found in status.partitions.items() if found.state == MOVING}
    sizes = await _sizes(cluster, moving)
    for partition, found in moving.items():
        held = {broker: sizes.get(broker, {}).get(partition, 0) for broker in found.replicas}
        full = max(held.values(), default=0)
        there = sum(min(held[broker], full) for broker in found.adding if broker in held)
        seen[partition] = (there, full * len(found.adding))
    for partition, (_, wanted) in list(seen.items()):
        if partition not in moving:
            seen[partition] = (wanted, wanted)
    return Progress(
        len(status.partitions),
        sum(each.state != MOVING for each in status.partitions.values()),
        sum(wanted for _, wanted in seen.values()),
        sum(there for there, _ in seen.values()),
    )


async def _sizes(cluster: Cluster, moving: Mapping[TopicPartition, object]) -> dict[int, dict[TopicPartition, int]]:
    """The size of each replica, by broker, as far as brokers answer at once."""
    try:
        async with asyncio.timeout(ANSWER_S):
            answers = (await describe_log_dirs(cluster, wanted_partitions=list(moving))).values_found
    except (KafkaError, TimeoutError):
        return {}
    return {
        broker: {
            partition: info.size_bytes
            for directory in directories.values()
            for partition, info in directory.replicas.items()
            if not info.is_future
        }
        for broker, directories in answers.items()
    }


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
