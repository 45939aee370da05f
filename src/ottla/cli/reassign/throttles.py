"""The throttles of a reassignment: which replicas and rates, set and removed as kafka-reassign-partitions does.

Topics name the throttled replicas: on leaders those that are read from, on followers those that are being added. Brokers have
the rate. `moves_of`, `throttled_replicas` and `throttled_brokers` are pure.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from ottla.cli.common.explaining import explain
from ottla.cli.common.output import warn
from ottla.cli.reassign.plan import Assignment
from ottla.client.admin.configs import ResourceKey, alter_configs
from ottla.client.admin.reassignments import PartitionReassignment
from ottla.client.cluster import Cluster
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition

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


async def clear_throttles(cluster: Cluster, brokers: Iterable[int], topics: Iterable[str], live: frozenset[int]) -> None:
    """Remove the throttles of brokers and topics. A broker that is down keeps its rate, with a warning."""
    everywhere = sorted(set(brokers) | live)
    for broker in everywhere:
        if broker not in live:
            warn(f"broker {broker} is down, and keeps its throttle: verify the plan again when it is back")
    await _change_brokers(
        cluster, [each for each in everywhere if each in live], dict.fromkeys((LEADER_RATE, FOLLOWER_RATE, LOG_DIR_RATE))
    )
    none: dict[str, object] = dict.fromkeys((LEADER_REPLICAS, FOLLOWER_REPLICAS))
    cleared: dict[ResourceKey, Mapping[str, object]] = {("topic", topic): none for topic in sorted(set(topics))}
    for resource, error in (await alter_configs(cluster, cleared)).errors.items():
        if not _is_gone(error):
            raise error
        warn(f"{resource}: {explain(error)}")


def _is_gone(error: KafkaError) -> bool:
    """Whether the topic was deleted: then it has no throttle."""
    return error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
