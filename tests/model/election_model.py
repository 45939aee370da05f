"""What must hold when one partition changes its leader and its in-sync replicas, with the records that each replica holds.

The replicas are ghosts: each holds a prefix of the committed records. A record is committed when every in-sync replica holds
it, and only with min.insync.replicas of them. A broker that crashes can lose any of its records. A replica whose log directory
was replaced has none, and one whose directory has failed takes none.
"""

from __future__ import annotations

from collections import Counter

from tests.support.nodes.controller_cluster import ControllerCluster

from ottla.metadata.controller.leadership import is_active
from ottla.metadata.controller.partition_change import RECOVERING
from ottla.metadata.image.topics import NO_LEADER, PartitionState
from ottla.metadata.image.topics_delta import merge
from ottla.wire.messages.metadata_records import ClearElrRecord, PartitionChangeRecord

TOPIC = "t"


class ElectionChecks:
    """Follows the log of `cluster`, and the records of partition 0 of its topic."""

    def __init__(self, cluster: ControllerCluster, min_isr: int, unclean: bool, elr: bool) -> None:
        self.cluster = cluster
        self.wanted_min_isr = min_isr
        self.unclean = unclean
        self.elr = elr
        self.committed = 0
        self.held: Counter[int] = Counter()
        """Broker → how many of the committed records its replica holds."""
        self._crashed: set[int] = set()
        """Without ELR: brokers that crashed since they were last known to hold everything."""
        self.offline: set[int] = set()
        """Brokers whose replica is in a failed directory."""
        self.proposed: list[int] = []
        """The ISR that the leader proposes with the current decision: replicas that hold what it holds."""
        self._partition = self.partition
        self._read = len(cluster.log)

    @property
    def partition(self) -> PartitionState:
        return self.cluster.partition(TOPIC)

    @property
    def min_isr(self) -> int:
        return min(self.wanted_min_isr, len(self.partition.replicas))

    def commit(self) -> None:
        """Commit a record, if the partition takes one."""
        partition = self.partition
        if partition.leader != NO_LEADER and len(partition.isr) >= self.min_isr and self.offline.isdisjoint(partition.isr):
            self.committed += 1
            for replica in partition.isr:
                self.held[replica] = self.committed

    def catch_up(self, replica: int) -> None:
        """The replica holds what its leader holds."""
        self.held[replica] = self.held[self.partition.leader]
        self._crashed.discard(replica)

    def crash(self, broker_id: int, lost: int) -> None:
        self.held[broker_id] = max(0, self.held[broker_id] - lost)
        self._crashed.add(broker_id)

    def has_its_directory(self, replica: int) -> bool:
        """Whether the directory that the metadata has for a replica is one of its broker's."""
        broker, partition = self.cluster.state.image.cluster.brokers.get(replica), self.partition
        return broker is not None and broker.has_online_directory(partition.directories[partition.replicas.index(replica)])

    def check(self) -> None:
        """After each decision: every change of the partition, one by one."""
        changed = 0
        for record in self.cluster.log[self._read :]:
            if isinstance(record, PartitionChangeRecord):
                before, after = self._partition, merge(self._partition, record)
                self._check_change(before, after)
                self._partition = after
                changed += 1
            elif isinstance(record, ClearElrRecord) and (self._partition.elr or self._partition.last_known_elr):
                epoch = self._partition.partition_epoch + 1
                self._partition = self._partition._replace(elr=(), last_known_elr=(), partition_epoch=epoch)
        self._read = len(self.cluster.log)
        assert changed <= 1, "one decision changes a partition once"
        assert self._partition == self.partition
        self._check_state(self.partition)

    def _check_change(self, before: PartitionState, after: PartitionState) -> None:
        assert after.partition_epoch == before.partition_epoch + 1
        assert before._replace(partition_epoch=0, leader_epoch=0) != after._replace(partition_epoch=0, leader_epoch=0) or (
            after.leader_epoch == before.leader_epoch + 1
        ), "a change that changes nothing"
        if after.leader == before.leader:
            return
        assert after.leader_epoch == before.leader_epoch + 1
        if after.leader == NO_LEADER:
            return
        if after.leader_recovery_state == RECOVERING and after.isr == (after.leader,) and after.leader not in before.isr:
            returns = self.elr and before.last_known_elr == (after.leader,) and not before.isr
            assert self.unclean or returns, "an unclean election that nobody allowed"
            self.lose(after.leader)
            return
        in_sync = [each for each in before.isr if each not in after.replicas or self.has_its_directory(each)]
        is_eligible = after.leader in before.elr and not any(is_active(self.cluster.state, each) for each in in_sync)
        assert is_eligible or after.leader in (*before.isr, *self.proposed), "a leader from outside of ISR and ELR"
        if self.elr or after.leader not in self._crashed:
            assert self.held[after.leader] >= self.committed, "a clean election lost committed records"
        else:
            self.lose(after.leader)

    def lose(self, leader: int) -> None:
        """What the new leader lacks is lost, and the others truncate their logs to its own."""
        self.committed = self.held[leader]
        for replica in self.held:
            self.held[replica] = min(self.held[replica], self.committed)

    def _check_state(self, partition: PartitionState) -> None:
        state = self.cluster.state
        isr, elr = set(partition.isr), set(partition.elr)
        assert not isr & elr
        adding, final = set(partition.adding_replicas), set(partition.final_replicas)
        assert adding <= final
        is_moving = adding or partition.removing_replicas
        assert not (is_moving and final <= isr), "a reassignment that does not end, although all are in sync"
        if not self.elr:
            assert isr, "without ELR the last in-sync replica stays in sync"
            assert not elr
            assert not partition.last_known_elr
        if len(isr) >= self.min_isr:
            assert not elr
        for replica in isr:
            broker = state.image.cluster.brokers.get(replica)
            alone = not self.elr and len(isr) == 1
            assert alone or (broker is not None and broker.is_active), f"replica {replica} is in sync, and its broker is away"
            if self.elr:
                assert self.held[replica] >= self.committed, f"replica {replica} is in sync and lacks records"
        if self.elr and not isr:
            for replica in elr & set(partition.replicas):  # Kafka keeps those that a reassignment has removed
                if self.has_its_directory(replica):  # a replica in another directory has to report that first
                    assert self.held[replica] >= self.committed, f"replica {replica} is eligible and lacks records"
        if partition.leader != NO_LEADER:
            assert partition.leader in isr
            assert is_active(state, partition.leader)
            assert self.has_its_directory(partition.leader), "it leads a partition in a directory that has failed"
            return
        candidates = filter(self.has_its_directory, (isr or elr) & set(partition.replicas))
        able = [replica for replica in candidates if is_active(state, replica)]
        assert not able, f"brokers {able} could lead, and nobody does"
