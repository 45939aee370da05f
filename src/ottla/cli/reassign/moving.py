"""Starts what a plan asks for: throttles first, then moves between brokers, then moves between log directories."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

from ottla.cli.reassign.asking import PlanRefused, Status, current_of, live_nodes, places_of, status_of
from ottla.cli.reassign.plan import Plan
from ottla.cli.reassign.throttles import clear_throttles, moves_of, set_log_dir_throttle, set_throttle
from ottla.client.admin.log_dirs import Replica, alter_replica_log_dirs
from ottla.client.admin.reassignments import alter_partition_reassignments, list_partition_reassignments
from ottla.client.cluster import Cluster
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.errors.texts import listed
from ottla.ids import TopicPartition

PAUSE_S = 0.1


class Limits(NamedTuple):
    """What a reassignment may use, in bytes per second; None: not limited."""

    throttle: int | None
    log_dir_throttle: int | None


class Started(NamedTuple):
    """What was before, and what has begun."""

    current: dict[TopicPartition, list[int]]
    places: dict[Replica, str]
    """The log directories before, for going back."""
    errors: dict[TopicPartition, KafkaError]
    directories: list[Replica]
    """The moves between log directories that have begun."""


async def prepare(cluster: Cluster, plan: Plan, is_additional: bool) -> Started:
    """Check that a plan can be executed, and find what is now. Nothing has begun yet."""
    live = await live_nodes(cluster)
    ongoing = await list_partition_reassignments(cluster)
    if ongoing and not is_additional:
        raise PlanRefused(
            f"{listed(sorted(map(str, ongoing)))} {'is' if len(ongoing) == 1 else 'are'} being moved already: wait for that, "
            "or give --additional to execute this plan as well, or to change the throttle"
        )
    unknown = sorted({broker for replicas in plan.assignment.values() for broker in replicas} - set(live))
    if unknown:
        what, are = ("broker", "is") if len(unknown) == 1 else ("brokers", "are")
        names = listed(list(map(str, unknown)))
        raise PlanRefused(f"the plan names {what} {names}, which {are} not up: `ottla brokers list`")
    current = await current_of(cluster, plan.assignment)
    return Started(current, await places_of(cluster, current, live), {}, [])


async def start(
    cluster: Cluster, plan: Plan, found: Started, limits: Limits, *, may_change_factor: bool, timeout_ms: int
) -> Started:
    """Set the throttles and begin. Partitions that the controller refuses have errors; the others move."""
    live = frozenset(await live_nodes(cluster))
    if limits.throttle is not None:
        ongoing = await list_partition_reassignments(cluster)
        await set_throttle(cluster, moves_of(plan.assignment, found.current, ongoing), limits.throttle, live)
    if limits.log_dir_throttle is not None:
        await set_log_dir_throttle(cluster, {each.broker for each in plan.log_dirs}, limits.log_dir_throttle)
    results = await alter_partition_reassignments(
        cluster, dict(plan.assignment.items()), allow_replication_factor_change=may_change_factor
    )
    errors = results.errors
    wanted = {each: path for each, path in plan.log_dirs.items() if TopicPartition(each.topic, each.partition) not in errors}
    return found._replace(errors=errors, directories=await start_directory_moves(cluster, wanted, timeout_ms))


async def start_directory_moves(cluster: Cluster, wanted: Mapping[Replica, str], timeout_ms: int) -> list[Replica]:
    """Move replicas to log directories. A replica that its broker does not have yet is tried until the time is over."""
    pending = dict(wanted)
    deadline_s = asyncio.get_running_loop().time() + timeout_ms / 1000
    while pending:
        errors = (await alter_replica_log_dirs(cluster, dict(pending.items()))).errors
        for error in errors.values():
            if error.code != ErrorCode.REPLICA_NOT_AVAILABLE:
                raise error
        pending = {each: pending[each] for each in errors}
        if pending and asyncio.get_running_loop().time() >= deadline_s:
            names = [f"{each.topic}-{each.partition} on broker {each.broker}" for each in sorted(pending)]
            raise PlanRefused(
                f"the log directories of {listed(names)} could not be set within {timeout_ms} ms: the replicas are not there "
                "yet; execute the plan again later, with --additional"
            )
        if pending:
            await asyncio.sleep(PAUSE_S)
    return sorted(wanted, key=lambda each: (each.broker, each))


async def remove_throttles(cluster: Cluster, plan: Plan) -> list[str]:
    """Remove the throttles of all live brokers and of a plan's topics. Returns Kafka's lines about it."""
    live = frozenset(await live_nodes(cluster))
    brokers = {broker for replicas in plan.assignment.values() for broker in replicas} | live
    topics = sorted({each.topic for each in plan.assignment})
    await clear_throttles(cluster, brokers, topics, live)
    return [
        f"Clearing broker-level throttles on broker{'' if len(live) == 1 else 's'} {','.join(map(str, sorted(live)))}",
        f"Clearing topic-level throttles on topic{'' if len(topics) == 1 else 's'} {','.join(topics)}",
    ]


async def finish(cluster: Cluster, plan: Plan) -> Status:
    """The status of a plan; with its throttles removed if nothing moves."""
    status = await status_of(cluster, plan)
    if not status.is_moving:
        await remove_throttles(cluster, plan)
    return status
