"""What is wrong with a cluster: brokers fenced or not registered, voters that do not follow, partitions without leader or ISR.

`cluster_state` asks the cluster; the other functions are pure. A cluster without a problem serves every partition, and every
replica of it is in sync.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from ottla.client.admin.cluster_state import ClusterDescription, describe_cluster
from ottla.client.admin.quorum import QuorumInfo, describe_metadata_quorum
from ottla.client.admin.topic_descriptions import TopicDescription, described_topics
from ottla.client.cluster import Cluster
from ottla.errors import UnsupportedVersionError
from ottla.errors.texts import listed
from ottla.ids import TopicPartition
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

QUORUM_ANSWER_S = 10.0
"""How long to wait for the leader of the quorum. An election takes a few seconds; without a majority there is no answer."""
VOTER_SILENT_MS = 5_000
"""A voter that has not fetched for this long does not follow. Voters fetch at least every half second."""


class ProblemKind(StrEnum):
    """The kinds of problems, the worst first."""

    NO_CONTROLLER = "no-controller"
    OFFLINE_PARTITION = "offline-partition"
    FENCED_BROKER = "fenced-broker"
    UNREGISTERED_BROKER = "unregistered-broker"
    SILENT_VOTER = "silent-voter"
    UNDER_REPLICATED = "under-replicated-partition"


class Problem(NamedTuple):
    """One thing that is wrong, and the sentence that says so."""

    kind: ProblemKind
    text: str
    partitions: tuple[str, ...] = ()
    """The partitions that have it."""


class ClusterState(NamedTuple):
    """A cluster as one of its brokers sees it."""

    described: ClusterDescription
    """With fenced brokers, from brokers since 4.0."""
    quorum: QuorumInfo | None
    """None from brokers before 3.3. Its leader is -1 if none has answered."""
    topics: dict[str, TopicDescription]
    """Internal topics too."""
    seen_by: str = "the broker"
    """The broker that was asked: `broker 1`."""
    knows_fenced: bool = True
    """Whether fenced brokers are described; not by brokers before 4.0."""

    @property
    def note(self) -> str | None:
        """What to say of the whole state if no controller has answered."""
        return stale_note(self.seen_by) if self.quorum is not None and self.quorum.leader_id < 0 else None


async def cluster_state(cluster: Cluster) -> ClusterState:
    """Brokers, quorum and partitions."""
    knows_fenced = True
    try:
        described = await describe_cluster(cluster, include_fenced_brokers=True)
    except UnsupportedVersionError:
        described, knows_fenced = await describe_cluster(cluster), False
    topics = described_topics(await cluster.topics())
    seen_by = await asked_broker(cluster)
    # Last: a broker that finds no controller holds the request back, and with it all that follow on the connection.
    return ClusterState(described, await _quorum(cluster), topics, seen_by, knows_fenced)


async def asked_broker(cluster: Cluster) -> str:
    """The broker that answers what any broker can: `broker 1`, or where it is if metadata does not name it by that address."""
    address = (await cluster.any_link()).address
    for node in cluster.brokers.values():
        if f"{node.host}:{node.port}" == address:
            return f"broker {node.id}"
    return f"the broker at {address}"


def stale_note(seen_by: str) -> str:
    """What to say of metadata if no controller answers: a dead broker is not noticed."""
    return f"no active controller: what is shown is the last state that {seen_by} knew; start a majority of the controllers"


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
    found = broker_problems(state.described) + unregistered_problems(state)
    if state.quorum is not None:
        found += quorum_problems(state.quorum, state.seen_by)
    found += partition_problems(
        state.topics, frozenset(node.id for node in state.described.nodes.values() if not node.is_fenced)
    )
    kinds = list(ProblemKind)
    return sorted(found, key=lambda each: kinds.index(each.kind))


def broker_problems(described: ClusterDescription) -> list[Problem]:
    """Fenced brokers: they are registered, but the controller does not hear of them."""
    return [
        Problem(
            ProblemKind.FENCED_BROKER,
            f"broker {node.id} at {node.host}:{node.port} is fenced: it is down or cut off. To do: start it",
        )
        for node in described.nodes.values()
        if node.is_fenced
    ]


def unregistered_problems(state: ClusterState) -> list[Problem]:
    """Brokers that hold replicas, and are not registered: unregistered too early, or started with another id."""
    if not state.knows_fenced:
        return []
    held: dict[int, list[str]] = {}
    for topic, described in state.topics.items():
        for each in described.partitions:
            for replica in each.replicas:
                if replica not in state.described.nodes:
                    held.setdefault(replica, []).append(f"{topic}-{each.partition}")
    return [
        Problem(
            ProblemKind.UNREGISTERED_BROKER,
            f"broker {broker_id} is not registered, and {listed(names, 3)} {'has' if len(names) == 1 else 'have'} a "
            f"replica there. To do: start it; if it is gone for good, move its replicas away: ottla reassign generate "
            f"--brokers {_ids(node.id for node in state.described.nodes.values() if not node.is_fenced)}",
            tuple(names),
        )
        for broker_id, names in sorted(held.items())
    ]


def quorum_problems(quorum: QuorumInfo, seen_by: str = "the broker") -> list[Problem]:
    """A quorum without a leader, and voters that do not follow it."""
    if quorum.leader_id < 0:
        return [Problem(ProblemKind.NO_CONTROLLER, _leaderless(quorum, seen_by))]
    newest = max((each.last_fetch or 0 for each in quorum.voters), default=0)
    found = []
    for voter in quorum.voters:
        if voter.id == quorum.leader_id:
            continue
        if voter.last_fetch is None:  # a voter that is up fetches within a second of the election
            text = f"has not fetched from the leader {quorum.leader_id}: start it, or look again if it has just started"
        elif newest - voter.last_fetch > VOTER_SILENT_MS:
            text = f"does not answer: start it; its last fetch was {(newest - voter.last_fetch) / 1000:.0f} s ago"
        else:
            continue
        found.append(Problem(ProblemKind.SILENT_VOTER, f"controller {_place(quorum, voter.id)} {text}"))
    return found


def _leaderless(quorum: QuorumInfo, seen_by: str) -> str:
    voters = [_place(quorum, each.id) for each in quorum.voters]
    which = f" ({listed(voters, len(voters))})" if voters else ""
    return (
        f"{seen_by} finds no leader of the metadata quorum: no change can be made until a majority of its voters{which} is up "
        "and can be reached"
    )


def _place(quorum: QuorumInfo, voter_id: int) -> str:
    """`2 at host:9093`."""
    return "".join([str(voter_id), *(f" at {each.host}:{each.port}" for each in quorum.endpoints.get(voter_id, ())[:1])])


def partition_problems(topics: Mapping[str, TopicDescription], live_brokers: frozenset[int]) -> list[Problem]:
    """Partitions without a leader; and those with replicas out of sync, in one problem for each set of missing replicas."""
    found: list[Problem] = []
    under: dict[tuple[int, ...], list[str]] = {}
    for topic, described in topics.items():
        for each in described.partitions:
            name = f"{topic}-{each.partition}"
            if each.leader is None:
                text = f"{name} has no leader (replicas {_ids(each.replicas)}, ISR {_ids(each.isr)})"
                found.append(Problem(ProblemKind.OFFLINE_PARTITION, text, (name,)))
            elif len(each.isr) < len(each.replicas):
                under.setdefault(tuple(sorted(set(each.replicas) - set(each.isr))), []).append(name)
    for missing, names in under.items():
        who = f"{names[0]} is" if len(names) == 1 else f"{len(names):,} partitions are"
        text = f"{who} under-replicated: {_missing(missing, live_brokers)}"
        found.append(Problem(ProblemKind.UNDER_REPLICATED, text, tuple(names)))
    return found


def _missing(missing: Sequence[int], live_brokers: frozenset[int]) -> str:
    """Why replicas are out of sync, and what to do."""
    why, remedies = [], []
    down = [str(each) for each in missing if each not in live_brokers]
    behind = [str(each) for each in missing if each in live_brokers]
    if down:
        why.append(f"broker {listed(down)} {'is' if len(down) == 1 else 'are'} down")
        remedies.append(f"start broker {listed(down)}")
    if behind:
        why.append(f"broker {listed(behind)} {'is' if len(behind) == 1 else 'are'} up, but behind")
        remedies.append(f"wait until broker {listed(behind)} has caught up; if it does not, its log says why")
    return f"{'; '.join(why)}. To do: {'; '.join(remedies)}"


def _ids(ids: Iterable[int]) -> str:
    return ",".join(map(str, ids)) or "none"


# Where a broker's own replicas end, whether it leads the partitions or not (ListOffsets as the debugging consumer).
#
# Not a function of Admin: Kafka's has none like it.

_DEBUGGING_CONSUMER = -2
"""The replica id that followers answer, too."""
_LATEST = -1


async def log_ends(cluster: Cluster, broker_id: int, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Where the logs of a broker's own replicas end, whether it leads them or not. Refused partitions are left out."""
    topics: dict[str, ListOffsetsTopic] = {}
    for each in partitions:
        asked = ListOffsetsPartition(partition_index=each.partition, timestamp=_LATEST)
        topics.setdefault(each.topic, ListOffsetsTopic(name=each.topic)).partitions.append(asked)
    request = ListOffsetsRequest(
        replica_id=_DEBUGGING_CONSUMER, topics=list(topics.values()), timeout_ms=cluster.settings.request_timeout_ms
    )
    response: ListOffsetsResponse = await cluster.once(broker_id, request)
    return {
        TopicPartition(topic.name, each.partition_index): each.offset
        for topic in response.topics
        for each in topic.partitions
        if not each.error_code
    }
