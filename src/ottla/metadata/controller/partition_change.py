"""PartitionChange: computes the new leader, ISR and eligible leader replicas of one partition. Pure.

The rules are Kafka's. A leader comes from the ISR, or, when that is empty, from the eligible leader replicas (ELR: they were in
sync when the ISR fell below min.insync.replicas, so nothing was committed without them). If both are empty, the last known
leader may lead again, and with an unclean election any active replica; both may have lost records, and start as "recovering".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from ottla.ids import Uuid
from ottla.metadata.features import DIRECTORIES_FROM, ISR_SHRINK_KEEPS_EPOCH_FROM
from ottla.metadata.image.topics import NO_LEADER, PartitionState
from ottla.wire.messages.metadata_records import PartitionChangeRecord

RECOVERED = 0
RECOVERING = 1
_NO_LEADER_CHANGE = -2
_NO_RECOVERY_CHANGE = -1


class Election(Enum):
    """Which replica is preferred as leader, and whether one out of sync may lead."""

    PREFERRED = "the first replica if it is in sync"
    ONLINE = "the leader there is, else one in sync"
    UNCLEAN = "one in sync, else any active replica"


@dataclass(slots=True, eq=False, repr=False)  # never compared; each generated method adds to the start-up time
class PartitionChange:
    """The wanted state of a partition. The fields start with the current state; set those that change, then call `build`."""

    partition: PartitionState
    is_acceptable_leader: Callable[[int], bool]
    """Whether a replica is active and may lead, in sync or not."""
    default_directory: Callable[[int], Uuid]
    """The directory to write for a replica whose broker has not reported one."""
    metadata_version: int
    min_isr: int
    elr_enabled: bool
    election: Election = Election.ONLINE
    unclean_shutdown_replicas: Sequence[int] = ()
    """Replicas that may have lost records: they do not become eligible leaders."""
    isr: list[int] = field(init=False)
    replicas: list[int] = field(init=False)
    removing: list[int] = field(init=False)
    adding: list[int] = field(init=False)
    elr: list[int] = field(init=False)
    recovery_state: int = field(init=False)
    directories: dict[int, Uuid] = field(init=False)

    def __post_init__(self) -> None:
        partition = self.partition
        self.isr = list(partition.isr)
        self.replicas = list(partition.replicas)
        self.removing = list(partition.removing_replicas)
        self.adding = list(partition.adding_replicas)
        self.elr = list(partition.elr)
        self.recovery_state = partition.leader_recovery_state
        self.directories = dict(zip(partition.replicas, partition.directories, strict=True))

    def build(self, topic_id: Uuid, index: int) -> PartitionChangeRecord | None:
        """The record of the change, or None if nothing changes."""
        partition = self.partition
        record = PartitionChangeRecord(topic_id=topic_id, partition_id=index)
        self._complete_reassignment()
        self._fill_elr()
        self._elect(record)
        if record.leader == _NO_LEADER_CHANGE and not set(partition.replicas) <= set(self.replicas):
            record.leader = partition.leader  # a new leader epoch tells the removed replica to stop
        if record.isr is not None or not self.elr_enabled:
            self.elr = []  # after an unclean election, or with ELR off
        if tuple(self.elr) != partition.elr:
            record.eligible_leader_replicas = self.elr
        if record.isr is None and (self.isr or self.elr_enabled) and tuple(self.isr) != partition.isr:
            record.isr = self.isr
        self._raise_epoch_for_shrunk_isr(record)
        self._remember_leader(record)
        self._assign(record)
        if self.recovery_state != partition.leader_recovery_state:
            record.leader_recovery_state = self.recovery_state
        return None if _is_empty(record) else record

    def _complete_reassignment(self) -> None:
        """Remove the old replicas once the new ones are in sync. If the count shrinks, all that remain must be in sync."""
        if not self.removing and not self.adding:
            return
        isr = [replica for replica in self.isr if replica not in self.removing]
        replicas = [replica for replica in self.replicas if replica not in self.removing]
        if self.removing and not (isr and replicas):
            return
        needed = replicas if len(self.adding) < len(self.removing) else self.adding
        if set(needed) <= set(isr) and set(self.adding) <= set(isr):
            self.isr, self.replicas, self.removing, self.adding = isr, replicas, [], []

    def _fill_elr(self) -> None:
        if not self.elr_enabled:
            return
        if len(self.isr) >= self.min_isr:
            self.elr = []
            return
        candidates = {*self.elr, *self.partition.isr} - {*self.isr, *self.unclean_shutdown_replicas}
        # A removed replica deletes its log. Apache Kafka keeps it in the ELR: added again, it could be elected without records.
        self.elr = sorted(candidates & set(self.replicas))

    def _elect(self, record: PartitionChangeRecord) -> None:
        partition = self.partition
        leader, is_unclean = self._elected()
        if leader == partition.leader:
            return
        record.leader = leader
        if leader in self.elr:
            self.isr = [leader]
            self.elr = [replica for replica in self.elr if replica != leader]
        if is_unclean:
            record.isr = [leader]
            if partition.leader_recovery_state != RECOVERING:
                record.leader_recovery_state = RECOVERING

    def _elected(self) -> tuple[int, bool]:
        """The new leader, and whether it may lack committed records."""
        order = [self.partition.leader, *self.replicas]
        if self.election is Election.PREFERRED:
            order.insert(0, self.replicas[0])
        for replica in order:
            if self._may_lead(replica):
                return replica, False
        if self._last_known_leader_may_return():
            return self.partition.last_known_elr[0], True
        if self.election is Election.UNCLEAN:
            for replica in self.replicas:
                if self.is_acceptable_leader(replica):
                    return replica, True
        return NO_LEADER, False

    def _may_lead(self, replica: int) -> bool:
        is_sure = replica in self.isr or (not self.isr and replica in self.elr)
        return is_sure and self.is_acceptable_leader(replica)

    def _last_known_leader_may_return(self) -> bool:
        known = self.partition.last_known_elr
        return self.elr_enabled and not self.elr and not self.isr and len(known) == 1 and self.is_acceptable_leader(known[0])

    def _raise_epoch_for_shrunk_isr(self, record: PartitionChangeRecord) -> None:
        """Raise the leader epoch: brokers of old releases notice a smaller ISR only by that."""
        if (
            self.metadata_version < ISR_SHRINK_KEEPS_EPOCH_FROM
            and record.leader == _NO_LEADER_CHANGE
            and record.isr is not None
            and not set(self.partition.isr) <= set(record.isr)
        ):
            record.leader = self.partition.leader

    def _remember_leader(self, record: PartitionChangeRecord) -> None:
        """Write the last known leader when the partition loses its leader, and clear it when it has one again."""
        if not self.elr_enabled:
            return
        if record.leader == NO_LEADER and not self.partition.last_known_elr:
            record.last_known_elr = [self.partition.leader]
        elif record.leader >= 0 and self.partition.last_known_elr:
            record.last_known_elr = []

    def _assign(self, record: PartitionChangeRecord) -> None:
        partition = self.partition
        if self.metadata_version >= DIRECTORIES_FROM:
            directories = [self._directory(replica) for replica in self.replicas]
            if tuple(directories) != partition.directories:
                record.directories = directories
        if tuple(self.replicas) != partition.replicas:
            record.replicas = self.replicas
        if tuple(self.removing) != partition.removing_replicas:
            record.removing_replicas = self.removing
        if tuple(self.adding) != partition.adding_replicas:
            record.adding_replicas = self.adding

    def _directory(self, replica: int) -> Uuid:
        known = self.directories.get(replica)
        return self.default_directory(replica) if known is None else known


def _is_empty(record: PartitionChangeRecord) -> bool:
    return (
        record.leader == _NO_LEADER_CHANGE
        and record.leader_recovery_state == _NO_RECOVERY_CHANGE
        and record.isr is None
        and record.eligible_leader_replicas is None
        and record.last_known_elr is None
        and record.replicas is None
        and record.removing_replicas is None
        and record.adding_replicas is None
        and record.directories is None
    )
