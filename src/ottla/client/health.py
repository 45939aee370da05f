"""What is wrong with a cluster: fenced brokers, voters that do not follow, partitions without a leader or in-sync replicas.

`cluster_state` asks the cluster; the other functions are pure. A cluster without a problem serves every partition, and every
replica of it is in sync.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from ottla.client.admin.cluster_state import ClusterDescription, describe_cluster
from ottla.client.admin.quorum import QuorumInfo, describe_metadata_quorum
from ottla.client.admin.topic_descriptions import PartitionDescription, TopicDescription, described_topics
from ottla.client.cluster import Cluster
from ottla.errors import UnsupportedVersionError

QUORUM_ANSWER_S = 10.0
"""How long to wait for the leader of the quorum. An election takes a few seconds; without a majority there is no answer."""
VOTER_SILENT_MS = 5_000
"""A voter that has not fetched for this long does not follow. Voters fetch at least every half second."""


class ProblemKind(StrEnum):
    """The kinds of problems, the worst first."""

    NO_CONTROLLER = "no-controller"
    OFFLINE_PARTITION = "offline-partition"
    FENCED_BROKER = "fenced-broker"
    SILENT_VOTER = "silent-voter"
    UNDER_REPLICATED = "under-replicated-partition"


class Problem(NamedTuple):
    """One thing that is wrong, and the sentence that says so."""

    kind: ProblemKind
    text: str


class ClusterState(NamedTuple):
    """A cluster as one of its brokers sees it."""

    described: ClusterDescription
    """With fenced brokers, from brokers since 4.0."""
    quorum: QuorumInfo | None
    """None from brokers before 3.3. Its leader is -1 if none has answered."""
    topics: dict[str, TopicDescription]
    """Internal topics too."""


async def cluster_state(cluster: Cluster) -> ClusterState:
    """Brokers, quorum and partitions."""
    try:
        described = await describe_cluster(cluster, include_fenced_brokers=True)
    except UnsupportedVersionError:
        described = await describe_cluster(cluster)
    topics = described_topics(await cluster.topics())
    # Last: a broker that finds no controller holds the request back, and with it all that follow on the connection.
    return ClusterState(described, await _quorum(cluster), topics)


async def _quorum(cluster: Cluster) -> QuorumInfo | None:
    """The metadata quorum. That it has lost its majority is a finding, not a reason to say nothing for a minute."""
    try:
        async with asyncio.timeout(QUORUM_ANSWER_S):
            return await describe_metadata_quorum(cluster)
    except UnsupportedVersionError:
        return None
    except TimeoutError:
        return QuorumInfo(-1, -1, -1, (), (), {})


def problems_of(state: ClusterState) -> list[Problem]:
    """Everything that is wrong; the worst first."""
    found = broker_problems(state.described) + ([] if state.quorum is None else quorum_problems(state.quorum))
    for name, topic in state.topics.items():
        found += partition_problems(name, topic.partitions)
    kinds = list(ProblemKind)
    return sorted(found, key=lambda each: kinds.index(each.kind))


def broker_problems(described: ClusterDescription) -> list[Problem]:
    """Fenced brokers: they are registered, but the controller does not hear of them."""
    return [
        Problem(ProblemKind.FENCED_BROKER, f"broker {node.id} at {node.host}:{node.port} is fenced: it is down or cut off")
        for node in described.nodes.values()
        if node.is_fenced
    ]


def quorum_problems(quorum: QuorumInfo) -> list[Problem]:
    """A quorum without a leader, and voters that do not follow it."""
    if quorum.leader_id < 0:
        text = "the metadata quorum has no leader: no change can be made until a majority of its voters is up"
        return [Problem(ProblemKind.NO_CONTROLLER, text)]
    newest = max((each.last_fetch or 0 for each in quorum.voters), default=0)
    found = []
    for voter in quorum.voters:
        where = "".join(f" at {each.host}:{each.port}" for each in quorum.endpoints.get(voter.id, ())[:1])
        if voter.id == quorum.leader_id:
            continue
        if voter.last_fetch is None:
            text = f"controller {voter.id}{where} has not followed the leader {quorum.leader_id} yet"
        elif newest - voter.last_fetch > VOTER_SILENT_MS:
            text = f"controller {voter.id}{where} has not followed for {(newest - voter.last_fetch) / 1000:.0f} s"
        else:
            continue
        found.append(Problem(ProblemKind.SILENT_VOTER, text))
    return found


def partition_problems(topic: str, partitions: Sequence[PartitionDescription]) -> list[Problem]:
    """Partitions without a leader, and those with replicas that are not in sync."""
    found = []
    for each in partitions:
        name = f"{topic}-{each.partition}"
        if each.leader is None:
            found.append(
                Problem(
                    ProblemKind.OFFLINE_PARTITION,
                    f"{name} has no leader (replicas {_ids(each.replicas)}, ISR {_ids(each.isr)})",
                )
            )
        elif len(each.isr) < len(each.replicas):
            missing = [replica for replica in each.replicas if replica not in each.isr]
            found.append(
                Problem(
                    ProblemKind.UNDER_REPLICATED,
                    f"{name} is under-replicated: {_ids(missing)} of {_ids(each.replicas)} not in sync",
                )
            )
    return found


def _ids(ids: Iterable[int]) -> str:
    return ",".join(map(str, ids)) or "none"
