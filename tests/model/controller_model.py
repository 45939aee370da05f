"""Invariants of a controller's state and of its log, checked after every step of the machine."""

from __future__ import annotations

from tests.support.nodes.controller_cluster import ControllerCluster

from ottla.ids import DIRECTORY_MIGRATING, Uuid
from ottla.metadata.features import DIRECTORIES_FROM, ELR_FROM, record_version
from ottla.metadata.image.delta import MetadataDelta
from ottla.metadata.image.image import MetadataImage, Provenance
from ottla.metadata.image.to_records import image_records
from ottla.metadata.image.topics import NO_LEADER, PartitionState
from ottla.wire.log_records import decode_metadata_record, encode_metadata_record

NO_PROVENANCE = Provenance()


class ControllerChecks:
    """Compares the cluster with its previous state and with its log."""

    def __init__(self, cluster: ControllerCluster) -> None:
        self._cluster = cluster
        self._replayed = MetadataImage()
        self._read = 0
        self._seen: dict[tuple[Uuid, int], PartitionState] = {}
        self._counts: dict[Uuid, int] = {}
        self._next_producer_id = 0

    def check(self) -> None:
        self._check_log()
        self._check_snapshot()
        image = self._cluster.state.image
        assert image.next_producer_id >= self._next_producer_id
        self._next_producer_id = image.next_producer_id
        for topic in image.topics.by_id.values():
            numbers = list(topic.partitions)
            assert numbers == list(range(len(numbers))), f"{topic.name} has a gap: {numbers}"
            assert numbers, f"{topic.name} has no partitions"
            assert len(numbers) >= self._counts.get(topic.id, 0), f"{topic.name} has fewer partitions than it had"
            self._counts[topic.id] = len(numbers)
            assert len({len(each.replicas) for each in topic.partitions.values()}) == 1, "a topic has one replication factor"
            for number, partition in topic.partitions.items():
                self._check_partition(partition)
                self._check_epochs(self._seen.get((topic.id, number)), partition)
                self._seen[(topic.id, number)] = partition

    def _check_log(self) -> None:
        """The log, replayed record by record, gives the state's image after every decision."""
        for record in self._cluster.log[self._read :]:
            delta = MetadataDelta(self._replayed)
            delta.replay(record)
            self._replayed = delta.finish(NO_PROVENANCE)
        self._read = len(self._cluster.log)
        assert self._replayed == self._cluster.state.image._replace(provenance=NO_PROVENANCE)

    def _check_snapshot(self) -> None:
        delta, version = MetadataDelta(MetadataImage()), self._replayed.metadata_version
        for record in image_records(self._replayed):
            delta.replay(decode_metadata_record(encode_metadata_record(record, record_version(record, version))).message)
        assert delta.finish(NO_PROVENANCE) == self._replayed

    def _check_partition(self, partition: PartitionState) -> None:
        state = self._cluster.state
        replicas, isr, elr = set(partition.replicas), set(partition.isr), set(partition.elr)
        assert len(replicas) == len(partition.replicas) == len(partition.directories)
        assert isr <= replicas
        assert elr <= replicas
        assert not isr & elr
        assert len(isr) == len(partition.isr)
        if partition.leader != NO_LEADER:
            assert partition.leader in isr
            broker = state.image.cluster.brokers.get(partition.leader)
            assert broker is not None, "a broker leads that is not registered"
            assert not broker.fenced, "a fenced broker leads"
            assert not broker.in_controlled_shutdown, "a broker leads that shuts down"
        if state.image.metadata_version < ELR_FROM:
            assert isr, "without ELR the last replica in sync stays so"
            assert not elr
        if state.image.metadata_version < DIRECTORIES_FROM:
            assert set(partition.directories) == {DIRECTORY_MIGRATING}

    def _check_epochs(self, before: PartitionState | None, after: PartitionState) -> None:
        if before is None:
            return
        assert after.leader_epoch >= before.leader_epoch
        assert after.partition_epoch >= before.partition_epoch
        if after.leader != before.leader:
            assert after.leader_epoch > before.leader_epoch, "a new leader needs a new epoch"
        if after._replace(partition_epoch=0) != before._replace(partition_epoch=0):
            assert after.partition_epoch > before.partition_epoch, "a change needs a new partition epoch"
