"""The question before an unclean election, and what it would lose."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from ottla.cli.common.output import confirm, warn
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.cli.elect_leaders.naming import Named, describe_named
from ottla.cli.topics.diagnosis import loss, safe_leaders
from ottla.client.admin.topic_descriptions import PartitionDescription
from ottla.client.cluster import Cluster
from ottla.client.log_ends import log_ends
from ottla.errors import KafkaError
from ottla.ids import TopicPartition

ANSWER_S = 5.0

Ends = Mapping[int, Mapping[TopicPartition, int]]
"""Broker → partition → where its log ends."""


def ask_first(settings: ClientSettings, named: Named | None, yes: bool) -> None:
    """Say what an unclean election would lose, and ask. Without a terminal it needs --yes."""

    async def find(cluster: Cluster) -> dict[TopicPartition, str]:
        described = await describe_named(cluster, named)
        leaderless = {each: found for each, found in described.items() if found is not None and found.leader is None}
        live = frozenset(cluster.brokers)
        ends = await _ends(cluster, leaderless, live)
        return {each: _danger(each, found, live, ends) for each, found in leaderless.items()}

    dangers = with_cluster(settings, find)
    for text in dangers.values():
        warn(text)
    if dangers:
        confirm(f"Elect leaders out of sync for {', '.join(map(str, dangers))}, and lose these records?", yes, needs_yes=True)


async def _ends(cluster: Cluster, leaderless: Mapping[TopicPartition, PartitionDescription], live: Iterable[int]) -> Ends:
    """Where the logs of the replicas end that are up, as far as their brokers answer at once."""

    async def ask(broker: int) -> dict[TopicPartition, int]:
        held = [each for each, found in leaderless.items() if broker in found.replicas]
        try:
            async with asyncio.timeout(ANSWER_S):
                return await log_ends(cluster, broker, held) if held else {}
        except (KafkaError, TimeoutError):
            return {}

    brokers = sorted(live)
    return dict(zip(brokers, await asyncio.gather(*map(ask, brokers)), strict=True))


def _danger(name: TopicPartition, found: PartitionDescription, live: frozenset[int], ends: Ends) -> str:
    """What an unclean election of a partition would lose, and how not to."""
    lost, safe = loss(name, found, live), safe_leaders(found)
    if not lost:
        return f"{name} has no leader, and none of its replicas {_ids(found.replicas)} is up: an election cannot help"
    known = [(each, ends[each][name]) for each in found.replicas if name in ends.get(each, {})]
    logs = [f"that of broker {broker} at {end}" for broker, end in known]
    if logs:
        logs[0] = f". The log of broker {known[0][0]} ends at offset {known[0][1]}"
    lost += ", ".join(logs)
    if not safe:
        return f"{lost}. No replica is known to hold all of it"
    those = f"broker {safe[0]}" if len(safe) == 1 else f"brokers {_ids(safe)}"
    return f"{lost}. If {those} can be started, do that instead: then nothing is lost"


def _ids(ids: Sequence[int]) -> str:
    return ",".join(map(str, ids))
