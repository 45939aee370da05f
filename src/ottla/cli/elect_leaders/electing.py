"""An election, and what became of each partition."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

from ottla.cli.elect_leaders.naming import Named, describe_named
from ottla.client.admin import reassignments as admin
from ottla.client.admin.offsets import OffsetSpec, list_offsets
from ottla.client.admin.topic_descriptions import describe_topics
from ottla.client.cluster import Cluster
from ottla.client_core.backoff import Backoff
from ottla.errors import ElectionNotNeededError, KafkaError
from ottla.ids import TopicPartition

PREFERRED, UNCLEAN = "preferred", "unclean"
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
