"""The metadata quorum: describe it, add and remove voters (DescribeQuorum, AddRaftVoter, RemoveRaftVoter)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ottla.client.admin.checks import listed, number, text
from ottla.client.admin.requests import ask_controller_whole, raise_refused
from ottla.client.cluster import Cluster
from ottla.errors import ArgumentError
from ottla.ids import Uuid, repr_with_ids
from ottla.wire.messages.add_raft_voter import AddRaftVoterRequest
from ottla.wire.messages.add_raft_voter import Listener as VoterListener
from ottla.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
)
from ottla.wire.messages.describe_quorum import ReplicaState as WireReplicaState
from ottla.wire.messages.remove_raft_voter import RemoveRaftVoterRequest

METADATA_TOPIC = "__cluster_metadata"


class QuorumReplica(NamedTuple):
    """A voter or observer of the metadata log. Times are in ms since 1970; None where they are not known."""

    id: int
    directory_id: Uuid
    log_end_offset: int
    last_fetch: int | None
    last_caught_up: int | None

    def __repr__(self) -> str:
        return repr_with_ids(self, self._fields)


class VoterEndpoint(NamedTuple):
    """Where a controller listens."""

    listener: str
    host: str
    port: int


class QuorumInfo(NamedTuple):
    """The metadata quorum as its leader sees it."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]
    endpoints: dict[int, tuple[VoterEndpoint, ...]]
    """The listeners of each voter, by its id; empty from brokers before 3.9."""


async def describe_metadata_quorum(cluster: Cluster) -> QuorumInfo:
    """The leader, the voters and the observers of the metadata quorum."""
    topic = DescribeQuorumRequestTopicData(
        topic_name=METADATA_TOPIC, partitions=[DescribeQuorumRequestPartitionData(partition_index=0)]
    )
    about = "the metadata quorum cannot be described"

    async def attempt() -> tuple[DescribeQuorumResponse, DescribeQuorumResponsePartitionData]:
        request = DescribeQuorumRequest(topics=[topic])
        asked = cluster.ask_controller(request) if cluster.is_of_controllers else cluster.ask_any(request)
        response: DescribeQuorumResponse = await asked
        raise_refused(response.error_code, about, response.error_message)
        partition = response.topics[0].partitions[0]
        raise_refused(partition.error_code, about, partition.error_message)
        return response, partition

    response, partition = await cluster.retrying(attempt)
    return QuorumInfo(
        partition.leader_id,
        partition.leader_epoch,
        partition.high_watermark,
        tuple(_replica(each) for each in partition.current_voters),
        tuple(_replica(each) for each in partition.observers),
        {
            node.node_id: tuple(VoterEndpoint(each.name, each.host, each.port) for each in node.listeners)
            for node in response.nodes
        },
    )


def _replica(state: WireReplicaState) -> QuorumReplica:
    return QuorumReplica(
        state.replica_id,
        state.replica_directory_id,
        state.log_end_offset,
        state.last_fetch_timestamp if state.last_fetch_timestamp >= 0 else None,
        state.last_caught_up_timestamp if state.last_caught_up_timestamp >= 0 else None,
    )


async def add_raft_voter(
    cluster: Cluster,
    voter_id: int,
    directory_id: Uuid,
    endpoints: Iterable[VoterEndpoint | tuple[str, str, int]],
    *,
    cluster_id: str | None = None,
) -> None:
    """Add a controller to the voters: its node id, the id of its metadata directory, and its listeners.

    With `cluster_id` the quorum refuses if it belongs to another cluster.
    """
    listeners = [VoterEndpoint(*each) for each in listed(endpoints, "endpoints")]
    if not listeners:
        raise ArgumentError("endpoints must not be empty: name where the controller listens")
    request = AddRaftVoterRequest(
        cluster_id=cluster_id,
        timeout_ms=cluster.settings.request_timeout_ms,
        voter_id=number(voter_id, "voter_id"),
        voter_directory_id=_directory(directory_id),
        listeners=[
            VoterListener(
                name=text(each.listener, "endpoints: listener"),
                host=text(each.host, "endpoints: host"),
                port=number(each.port, "endpoints: port", 1, 65535),
            )
            for each in listeners
        ],
    )
    await ask_controller_whole(cluster, request, f"controller {voter_id} was not added to the voters")


async def remove_raft_voter(cluster: Cluster, voter_id: int, directory_id: Uuid, *, cluster_id: str | None = None) -> None:
    """Remove a controller from the voters: its node id and the id of its metadata directory."""
    request = RemoveRaftVoterRequest(
        cluster_id=cluster_id, voter_id=number(voter_id, "voter_id"), voter_directory_id=_directory(directory_id)
    )
    await ask_controller_whole(cluster, request, f"controller {voter_id} was not removed from the voters")


def _directory(value: Uuid) -> Uuid:
    if not isinstance(value, bytes) or len(value) != 16:
        raise ArgumentError(f"directory_id must be 16 bytes, not {value!r}: `ottla.ids.uuid_parse` reads Kafka's text form")
    return value
