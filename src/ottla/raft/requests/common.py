"""What all requests between replicas share: the partition they are about, checks, and what an answer says of the leader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from ottla.errors.codes import ErrorCode
from ottla.ids import ZERO_UUID, Uuid
from ottla.raft.effects import Disbelieved
from ottla.raft.election import NO_LEADER
from ottla.raft.epochs import EPOCH_LAST
from ottla.raft.roles.leader import Leader
from ottla.raft.voters import Endpoints, ReplicaKey

if TYPE_CHECKING:
    from ottla.raft.replica import Replica

TOPIC = "__cluster_metadata"

E = TypeVar("E")


def only_partition(topics: list[Any], name: str = "topic_name", index: str = "partition_index") -> Any | None:
    """The one partition of a request or an answer; None unless that is partition 0 of the metadata log alone."""
    if len(topics) != 1 or getattr(topics[0], name) != TOPIC or len(topics[0].partitions) != 1:
        return None
    partition = topics[0].partitions[0]
    return partition if getattr(partition, index) == 0 else None


def refuse_voter_request(replica: Replica, sender_id: int, epoch: int) -> int | None:
    """Why a request that voters send each other is refused; None if it is not."""
    if epoch < replica.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.INVALID_REQUEST if sender_id < 0 else None


def refuse_epoch(replica: Replica, sender_id: int, epoch: int, now_ms: int, leader_id: int | None = None) -> int | None:
    """Why a request that would raise the epoch, or name a leader, is not believed; None if it is.

    Only voters raise epochs and lead. A replica that is the only voter by its own log is the only one there is: the record that
    adds a second voter is not committed before it is durable here.
    """
    if leader_id not in (None, replica.local.id) and replica.is_only_voter:
        problem = f"says that node {leader_id} leads the quorum in epoch {epoch}, but this node is its only voter"
    elif epoch > replica.epoch and not replica.heard_epochs.allow(replica.epoch, epoch, now_ms):
        problem = f"claims epoch {epoch}, and the quorum is in epoch {replica.epoch}: no honest node can be so far ahead"
    else:
        return None
    replica.effects.append(Disbelieved(f"a request in the name of node {sender_id} {problem}"))
    return ErrorCode.INVALID_REQUEST


def refuse_leader_request(replica: Replica, epoch: int) -> int | None:
    """Why a request to the leader of `epoch` is refused; None if it is not."""
    if epoch < replica.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if epoch > replica.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    if not isinstance(replica.role, Leader):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.BROKER_NOT_AVAILABLE if replica.is_stopping else None


def is_for_another_voter(replica: Replica, voter_id: int, directory_id: Uuid) -> bool:
    """Whether a request names a voter that is not this replica: its directory was emptied, or its address is another's."""
    return voter_id >= 0 and not ReplicaKey(voter_id, directory_id).matches(replica.local)


def has_wrong_cluster(replica: Replica, cluster_id: str | None) -> bool:
    return cluster_id is not None and replica.settings.cluster_id is not None and cluster_id != replica.settings.cluster_id


def leader_address(replica: Replica, endpoint: type[E], listener: str) -> list[E]:
    """The leader's address on the listener that a request came through, if it is known."""
    found = replica.leader_endpoints.get(listener)
    if found is None or replica.leader_id == NO_LEADER:
        return []
    return [endpoint(node_id=replica.leader_id, host=found[0], port=found[1])]  # type: ignore[call-arg]


def endpoints_in(replica: Replica, leader_id: int, nodes: list[Any]) -> Endpoints:
    """Where the leader is, by an answer's node endpoints, or else by the voter set."""
    for node in nodes:
        if node.node_id == leader_id:
            return {replica.settings.listener: (node.host, node.port)}
    return replica.endpoints_of_voter(leader_id)


def endpoints_named(replica: Replica, leader_id: int, endpoints: list[Any]) -> Endpoints:
    """Where the leader is, by the endpoints that it gives itself, or else by the voter set."""
    return {each.name: (each.host, each.port) for each in endpoints} or replica.endpoints_of_voter(leader_id)


def learn_leader(replica: Replica, leader_id: int, epoch: int, endpoints: Endpoints, now_ms: int) -> bool:
    """Follow what a request or an answer says of the leader; False if it contradicts what is known."""
    known_id = replica.leader_id
    if leader_id == replica.local.id:
        if not isinstance(replica.role, Leader):
            return False
    elif epoch == replica.epoch and NO_LEADER not in (leader_id, known_id) and leader_id != known_id:
        return False
    if epoch > replica.epoch:
        if leader_id == NO_LEADER:
            replica.become_unattached(epoch, now_ms)
        else:
            replica.become_follower(epoch, leader_id, endpoints, now_ms)
    elif leader_id not in (NO_LEADER, replica.local.id) and (
        not replica.has_leader or len(endpoints) > len(replica.leader_endpoints)
    ):
        replica.become_follower(epoch, leader_id, endpoints, now_ms)
    return True


def learn_from_answer(
    replica: Replica, error: int, leader_id: int, epoch: int, endpoints: Endpoints, now_ms: int
) -> bool | None:
    """What all answers have in common. True or False: dealt with, and whether it counts as a success; None: look further.

    An answer that refuses and tells nothing new is no success: the next request to that node waits for the backoff.
    """
    if error == ErrorCode.UNKNOWN_LEADER_EPOCH:
        return False  # the peer is behind
    if epoch < replica.epoch:
        return True  # late
    if epoch > EPOCH_LAST and epoch > replica.epoch:
        return False
    if epoch > replica.epoch or error in (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER):
        before = replica.role
        return learn_leader(replica, leader_id, epoch, endpoints, now_ms) and replica.role is not before
    if leader_id not in (NO_LEADER, replica.local.id) and (
        not replica.has_leader or (endpoints and not replica.leader_endpoints)
    ):
        replica.become_follower(epoch, leader_id, endpoints, now_ms)
        return None if error == ErrorCode.NONE else True
    return None if error == ErrorCode.NONE else False


def directory_of(key: ReplicaKey) -> Uuid:
    return key.directory_id or ZERO_UUID
