"""The question before an unclean election, and what it would lose."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.cli.common.output import confirm, warn
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.cli.elect_leaders.naming import Named, describe_named
from ottla.cli.topics.diagnosis import loss, safe_leaders
from ottla.client.admin.topic_descriptions import PartitionDescription
from ottla.client.cluster import Cluster
from ottla.ids import TopicPartition


def ask_first(settings: ClientSettings, named: Named | None, yes: bool) -> None:
    """Say what an unclean election would lose, and ask."""

    async def find(cluster: Cluster) -> dict[TopicPartition, str]:
        described = await describe_named(cluster, named)
        live = frozenset(cluster.brokers)
        return {
            each: _danger(each, found, live) for each, found in described.items() if found is not None and found.leader is None
        }

    dangers = with_cluster(settings, find)
    for text in dangers.values():
        warn(text)
    if dangers:
        confirm(f"Elect leaders out of sync for {', '.join(map(str, dangers))}, and lose these records?", yes)


def _danger(name: TopicPartition, found: PartitionDescription, live: frozenset[int]) -> str:
    """What an unclean election of a partition would lose, and how not to."""
    lost, safe = loss(name, found, live), safe_leaders(found)
    if not lost:
        return f"{name} has no leader, and none of its replicas {_ids(found.replicas)} is up: an election cannot help"
    if not safe:
        return f"{lost}. No replica is known to hold all of it"
    return f"{lost}. If broker {_ids(safe)} can be started, do that instead: then nothing is lost"


def _ids(ids: Sequence[int]) -> str:
    return ",".join(map(str, ids))
