"""The moves of a plan: where its partitions are and how far they are, how they are started, and their throttles.

Throttles are set first, then moves between brokers begin, then those between log directories. As in kafka-reassign-partitions,
topics name the throttled replicas: on leaders those that are read from, on followers those that are being added. Brokers have
the rate. `moves_of`, `throttled_replicas` and `throttled_brokers` are pure.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from ottla.client.admin.cluster_state import NodeDescription, describe_cluster
from ottla.client.admin.configs import ResourceKey, alter_configs
from ottla.client.admin.log_dirs import Replica, ReplicaLogDir, alter_replica_log_dirs, describe_replica_log_dirs
from ottla.client.admin.reassignments import PartitionReassignment, alter_partition_reassignments, list_partition_reassignments
from ottla.client.admin.topic_descriptions import describe_topics
from ottla.client.cluster import Cluster
from ottla.client.reassignment_plan import Assignment, Plan, PlanRefused
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.errors.texts import listed
from ottla.ids import TopicPartition

DONE: Final = "completed"
MOVING: Final = "in progress"
ELSEWHERE: Final = "elsewhere"
MISSING: Final = "missing"
"""The replica is in no log directory that works."""
ANSWER_S = 10.0


class PartitionProgress(NamedTuple):
    """How far a partition of a plan is."""

    state: str
    replicas: tuple[int, ...]
    """Where it is now; nothing if it does not exist."""
    wanted: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()


class DirectoryProgress(NamedTuple):
    """How far the move of a replica to another log directory is."""

    state: str
    wanted: str
    path: str | None
    future_path: str | None


class Status(NamedTuple):
    """How far a plan is."""

    partitions: dict[TopicPartition, PartitionProgress]
    directories: dict[Replica, DirectoryProgress]
    is_cluster_moving: bool
    """Whether any partition of the cluster is being reassigned, of this plan or another."""
    down: frozenset[int] = frozenset()
    """The brokers that partitions of the plan move to, and that are down: these moves wait for them."""

    @property
    def is_done(self) -> bool:
        """Whether every partition and every directory is as the plan says."""
        return self.states <= {DONE}

    @property
    def states(self) -> set[str]:
        """The states of all partitions and directories of the plan."""
        return {each.state for each in self.partitions.values()} | {each.state for each in self.directories.values()}

    @property
    def is_moving(self) -> bool:
        """Whether something of the plan, or another reassignment, is under way."""
        return self.is_cluster_moving or any(each.state == MOVING for each in self.directories.values())


async def live_nodes(cluster: Cluster) -> dict[int, NodeDescription]:
    """The brokers that are up, by id."""
    return (await describe_cluster(cluster)).nodes


async def current_assignment(cluster: Cluster, topics: Iterable[str]) -> dict[TopicPartition, list[int]]:
    """The replicas of all partitions of topics."""
    described = (await describe_topics(cluster, sorted(set(topics)))).raise_first()
    return {
        TopicPartition(topic.name, each.partition): list(each.replicas)
        for topic in described.values()
        for each in topic.partitions
    }


async def current_of(cluster: Cluster, plan: Assignment) -> dict[TopicPartition, list[int]]:
    """The replicas that the partitions of a plan have now. All of them must exist."""
    known = await current_assignment(cluster, {each.topic for each in plan})
    for partition in plan:
        if partition not in known:
            raise PlanRefused(
                f"the plan names {partition}, which does not exist: {partition.topic} has "
                f"{sum(each.topic == partition.topic for each in known)} partitions"
            )
    return {partition: known[partition] for partition in plan}


async def places_of(cluster: Cluster, assignment: Assignment, live: Iterable[int]) -> dict[Replica, str]:
    """The log directories of replicas, as far as brokers tell: those that are down, or do not answer in time, are left out."""
    up = frozenset(live)
    wanted = [Replica(*each, broker) for each, replicas in assignment.items() for broker in replicas if broker in up]
    try:
        async with asyncio.timeout(ANSWER_S):
            found = (await describe_replica_log_dirs(cluster, wanted)).values_found
    except (KafkaError, TimeoutError):
        return {}
    return {replica: place.path for replica, place in found.items() if place.path is not None}


async def status_of(cluster: Cluster, plan: Plan) -> Status:
    """How far a plan is."""
    ongoing = await list_partition_reassignments(cluster)
    topics = await describe_topics(cluster, sorted({each.topic for each in plan.assignment}))
    known: dict[TopicPartition, tuple[int, ...]] = {}
    for error in topics.errors.values():
        if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise error
    for topic in topics.values_found.values():
        known |= {TopicPartition(topic.name, each.partition): each.replicas for each in topic.partitions}
    partitions = {
        partition: _progress(known.get(partition, ()), tuple(wanted), ongoing.get(partition))
        for partition, wanted in sorted(plan.assignment.items())
    }
    targets = {broker for each in partitions.values() for broker in each.adding}
    down = targets.difference(await live_nodes(cluster)) if targets else ()
    return Status(partitions, await directory_progress(cluster, plan.log_dirs), bool(ongoing), frozenset(down))


def _progress(replicas: tuple[int, ...], wanted: tuple[int, ...], ongoing: PartitionReassignment | None) -> PartitionProgress:
    if ongoing is not None:
        return PartitionProgress(MOVING, ongoing.replicas, wanted, ongoing.adding, ongoing.removing)
    return PartitionProgress(DONE if replicas == wanted else ELSEWHERE, replicas, wanted)


async def directory_progress(cluster: Cluster, wanted: Mapping[Replica, str]) -> dict[Replica, DirectoryProgress]:
    """How far the moves of replicas to log directories are."""
    found = (await describe_replica_log_dirs(cluster, wanted)).values_found if wanted else {}
    return {
        replica: _directory_progress(path, found.get(replica))
        for replica, path in sorted(wanted.items(), key=lambda each: (each[0].broker, each[0]))
    }


def _directory_progress(wanted: str, place: ReplicaLogDir | None) -> DirectoryProgress:
    if place is None or (place.path is None and place.future_path is None):
        return DirectoryProgress(MISSING, wanted, None, None)
    if place.future_path is not None:
        return DirectoryProgress(MOVING, wanted, place.path, place.future_path)
    return DirectoryProgress(DONE if place.path == wanted else ELSEWHERE, wanted, place.path, None)


LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
LOG_DIR_RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"
LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"


class Move(NamedTuple):
    """A partition's replicas that have its records, and those that get them."""

    sources: frozenset[int]
    targets: frozenset[int]


def moves_of(
    plan: Assignment, current: Assignment, ongoing: Mapping[TopicPartition, PartitionReassignment]
) -> dict[TopicPartition, Move]:
    """The moves that are under way, and those of a plan. The sources of a partition that moves already stay the same."""
    moves = {
        partition: Move(frozenset(each.replicas) - frozenset(each.adding), frozenset(each.adding))
        for partition, each in ongoing.items()
    }
    for partition, replicas in plan.items():
        sources = moves[partition].sources if partition in moves else frozenset(current[partition])
        moves[partition] = Move(sources, frozenset(replicas) - sources)
    return moves


def throttled_replicas(moves: Mapping[TopicPartition, Move]) -> dict[str, dict[str, str]]:
    """The settings of topics: `0:1,0:2` are the replicas of partition 0 on the brokers 1 and 2."""
    leaders: dict[str, set[str]] = {}
    followers: dict[str, set[str]] = {}
    for (topic, number), move in moves.items():
        leaders.setdefault(topic, set()).update(f"{number}:{broker}" for broker in move.sources)
        followers.setdefault(topic, set()).update(f"{number}:{broker}" for broker in move.targets)
    return {
        topic: {LEADER_REPLICAS: ",".join(sorted(leaders[topic])), FOLLOWER_REPLICAS: ",".join(sorted(followers[topic]))}
        for topic in leaders
    }


def throttled_brokers(moves: Mapping[TopicPartition, Move]) -> list[int]:
    """The brokers that send or receive."""
    return sorted({broker for move in moves.values() for broker in move.sources | move.targets})


async def set_throttle(cluster: Cluster, moves: Mapping[TopicPartition, Move], rate_bytes: int, live: frozenset[int]) -> None:
    """Limit what moves between brokers, before it moves. Brokers that are down are left out: they send nothing."""
    topics: dict[ResourceKey, Mapping[str, object]] = {
        ("topic", topic): settings for topic, settings in throttled_replicas(moves).items()
    }
    (await alter_configs(cluster, topics)).raise_first()
    rates = {LEADER_RATE: str(rate_bytes), FOLLOWER_RATE: str(rate_bytes)}
    await _change_brokers(cluster, [each for each in throttled_brokers(moves) if each in live], rates)


async def set_log_dir_throttle(cluster: Cluster, brokers: Iterable[int], rate_bytes: int) -> None:
    """Limit what moves between the log directories of brokers."""
    await _change_brokers(cluster, sorted(set(brokers)), {LOG_DIR_RATE: str(rate_bytes)})


async def _change_brokers(cluster: Cluster, brokers: Sequence[int], settings: Mapping[str, str | None]) -> None:
    for result in await asyncio.gather(*(alter_configs(cluster, {("broker", str(broker)): settings}) for broker in brokers)):
        result.raise_first()


async def clear_throttles(
    cluster: Cluster, brokers: Iterable[int], topics: Iterable[str], live: frozenset[int], notes: list[str]
) -> None:
    """Remove the throttles of brokers and topics. `notes` gets what keeps its throttle: a broker that is down."""
    everywhere = sorted(set(brokers) | live)
    down = [broker for broker in everywhere if broker not in live]
    notes += [f"broker {broker} is down, and keeps its throttle: verify the plan again when it is back" for broker in down]
    await _change_brokers(
        cluster, [each for each in everywhere if each in live], dict.fromkeys((LEADER_RATE, FOLLOWER_RATE, LOG_DIR_RATE))
    )
    none: dict[str, object] = dict.fromkeys((LEADER_REPLICAS, FOLLOWER_REPLICAS))
    cleared: dict[ResourceKey, Mapping[str, object]] = {("topic", topic): none for topic in sorted(set(topics))}
    for resource, error in (await alter_configs(cluster, cleared)).errors.items():
        if not _is_gone(error):
            raise error
        notes.append(f"{resource}: {error}")


def _is_gone(error: KafkaError) -> bool:
    """Whether the topic was deleted: then it has no throttle."""
    return error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


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


async def remove_throttles(cluster: Cluster, plan: Plan, notes: list[str]) -> list[str]:
    """Remove the throttles of all live brokers and of a plan's topics. Returns Kafka's lines about it.

    `notes` gets what keeps its throttle, and why.
    """
    live = frozenset(await live_nodes(cluster))
    brokers = {broker for replicas in plan.assignment.values() for broker in replicas} | live
    topics = sorted({each.topic for each in plan.assignment})
    await clear_throttles(cluster, brokers, topics, live, notes)
    return [
        f"Clearing broker-level throttles on broker{'' if len(live) == 1 else 's'} {','.join(map(str, sorted(live)))}",
        f"Clearing topic-level throttles on topic{'' if len(topics) == 1 else 's'} {','.join(topics)}",
    ]


async def finish(cluster: Cluster, plan: Plan, notes: list[str]) -> Status:
    """The status of a plan; with its throttles removed if nothing moves."""
    status = await status_of(cluster, plan)
    if not status.is_moving:
        await remove_throttles(cluster, plan, notes)
    return status


class Cancelled(NamedTuple):
    """What has been stopped."""

    partitions: list[TopicPartition]
    errors: dict[TopicPartition, KafkaError]
    directories: list[Replica]
    """Moves between log directories."""


async def cancel_moves(
    cluster: Cluster, plan: Plan | None, preserves_throttles: bool, timeout_ms: int, notes: list[str]
) -> tuple[Cancelled, list[str]]:
    """Stop the moves of a plan (None: all). Returns Kafka's lines about the throttles; `notes` as in `remove_throttles`."""
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
    lines = [] if preserves_throttles or not plan.assignment else await remove_throttles(cluster, plan, notes)
    return Cancelled([each for each in results if each not in errors], errors, list(back)), lines
