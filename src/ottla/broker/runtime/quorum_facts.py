"""What DescribeQuorum reports of the metadata quorum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ottla.ids import Uuid
from ottla.raft.roles.leader import Leader, Progress, is_gone
from ottla.raft.voters import Endpoints, ReplicaKey

if TYPE_CHECKING:
    from ottla.raft.replica import Replica


class ReplicaFacts(NamedTuple):
    """The progress of one replica of the metadata log. Times are -1 if it has not fetched in this epoch."""

    replica_id: int
    directory_id: Uuid
    log_end_offset: int
    last_fetch_ms: int
    last_caught_up_ms: int


class QuorumFacts(NamedTuple):
    """The state of the quorum, as its leader knows it. Other replicas know neither voters' progress nor observers."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: Sequence[ReplicaFacts]
    observers: Sequence[ReplicaFacts]
    endpoints: Mapping[int, Endpoints]
    """Voter → listener name → host and port."""


def facts_of(replica: Replica, now_ms: int, loop_ms: int) -> QuorumFacts:
    """The facts; `now_ms` is the wall clock's time and `loop_ms` that of the clock the replica is given."""
    role, known = replica.role, replica.high_watermark
    voters: list[ReplicaFacts] = []
    observers: list[ReplicaFacts] = []
    if isinstance(role, Leader):
        offset_ms = now_ms - loop_ms

        def facts(key: ReplicaKey, progress: Progress) -> ReplicaFacts:
            if key.id == role.local.id:
                return ReplicaFacts(key.id, key.directory_id, replica.log.end_offset, now_ms, now_ms)
            times = (ms if ms < 0 else ms + offset_ms for ms in (progress.last_fetch_ms, progress.last_caught_up_ms))
            return ReplicaFacts(key.id, key.directory_id, progress.end_offset, *times)

        voters = [facts(voter.key, role.progress_of(voter.key)) for voter in replica.voters]
        observers = [
            facts(key, progress)
            for key, progress in sorted(role.progress.items())
            if not replica.voters.is_voter(key) and (key == role.local or not is_gone(progress, loop_ms))
        ]
        known = role.high_watermark
    return QuorumFacts(
        replica.leader_id,
        replica.epoch,
        -1 if known is None else known,
        voters,
        observers,
        {voter.key.id: voter.endpoints for voter in replica.voters},
    )
