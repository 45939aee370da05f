"""Builds new partitions, for new topics and for growing ones: replicas placed or assigned, the active ones in sync. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.metadata.controller.leadership import default_directory, is_active
from ottla.metadata.controller.placement import UsableBroker, place_replicas
from ottla.metadata.controller.sessions import NOT_SHUTTING_DOWN
from ottla.metadata.controller.state import ControllerState
from ottla.metadata.image.topics import PartitionState

RECORDS_PER_REQUEST_MAX = 10_000
"""The most records that one request of a client may write."""


def place_partitions(state: ControllerState, count: int, replication_factor: int) -> list[PartitionState]:
    """`count` new partitions on brokers that the controller chooses; INVALID_REPLICATION_FACTOR if there are too few."""
    brokers = [
        UsableBroker(broker.id, broker.rack, broker.fenced)
        for broker in state.image.cluster.brokers.values()
        if broker.takes_new_replicas
        and ((session := state.sessions.get(broker.id)) is None or session.shutdown_offset == NOT_SHUTTING_DOWN)
    ]
    return [
        new_partition(state, replicas, ErrorCode.INVALID_REPLICATION_FACTOR, "the partition")
        for replicas in place_replicas(brokers, count, replication_factor, state.randomness)
    ]


def new_partition(state: ControllerState, replicas: Sequence[int], code: ErrorCode, what: str) -> PartitionState:
    """A new partition: its replicas on active brokers are in sync, and the first of those leads."""
    isr = tuple(replica for replica in replicas if is_active(state, replica))
    if not isr:
        raise KafkaError(code, f"{what} would have no leader: all of the brokers {list(replicas)} are fenced or shutting down")
    return PartitionState(
        replicas=tuple(replicas),
        directories=tuple(default_directory(state, replica) for replica in replicas),
        isr=isr,
        leader=isr[0],
        leader_epoch=0,
        partition_epoch=0,
    )


def check_assignment(state: ControllerState, what: str, replicas: Sequence[int], replication_factor: int | None) -> None:
    """INVALID_REPLICA_ASSIGNMENT unless `replicas` are distinct registered brokers, `replication_factor` of them if given."""
    if not replicas:
        raise _refused(what, "its list of replicas is empty")
    for broker_id in sorted(replicas):
        if broker_id not in state.image.cluster.brokers:
            raise _refused(what, f"broker {broker_id} is not registered")
    if len(set(replicas)) != len(replicas):
        raise _refused(what, f"a broker comes more than once in {list(replicas)}")
    if replication_factor is not None and len(replicas) != replication_factor:
        raise _refused(what, f"it has {len(replicas)} replicas, and the partitions before it have {replication_factor}")


def _refused(what: str, why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"{what} cannot be assigned so: {why}")
