"""The states of replicated partitions: epochs rise, one leader per leader epoch, and nodes use committed states only.

In the metadata, the partition epoch rises with every change, the leader epoch never falls, and a leader epoch has one leader,
which is in the ISR. ISR and ELR are replicas, and have none in common. A node has a partition in a state that is committed, and
never goes back to an older one.
"""

from __future__ import annotations

from ottla.metadata.image.image import MetadataImage
from ottla.metadata.image.topics import NO_LEADER, PartitionState
from ottla.sim.checkers.checker import Violation
from ottla.sim.cluster.checkers.checker import ClusterChecker, HeldPartition, PartitionKey


class PartitionStates(ClusterChecker):
    """Remembers every committed state of every partition, by its partition epoch."""

    def __init__(self) -> None:
        self._committed: dict[PartitionKey, dict[int, PartitionState]] = {}
        self._leaders: dict[tuple[PartitionKey, int], int] = {}
        self._newest: dict[tuple[str, PartitionKey], int] = {}
        self.judged = 0

    def started(self, node: str) -> None:
        self._newest = {held: epoch for held, epoch in self._newest.items() if held[0] != node}

    def image_committed(self, before: MetadataImage, image: MetadataImage) -> None:
        if before.topics is image.topics:
            return
        for topic in image.topics.by_id.values():
            known = before.topics.by_id.get(topic.id)
            if known is topic:
                continue
            for number, state in topic.partitions.items():
                earlier = None if known is None else known.partitions.get(number)
                if earlier is not state:
                    self._changed(f"{topic.name}-{number}", (topic.id, number), earlier, state)

    def _changed(self, name: str, key: PartitionKey, before: PartitionState | None, state: PartitionState) -> None:
        if before is not None and before != state:
            if state.partition_epoch <= before.partition_epoch:
                raise Violation(f"{name} was changed from {before} to {state}, and its partition epoch has not risen")
            if state.leader_epoch < before.leader_epoch:
                raise Violation(f"the leader epoch of {name} was {before.leader_epoch}, and then {state.leader_epoch}")
        if not {*state.isr, *state.elr} <= set(state.replicas) or set(state.isr) & set(state.elr):
            raise Violation(f"ISR and ELR of {name} are not apart, or not among its replicas: {state}")
        if state.leader != NO_LEADER:
            if state.leader not in state.isr:
                raise Violation(f"{name} is led by broker {state.leader}, which is not in its ISR {state.isr}")
            leader = self._leaders.setdefault((key, state.leader_epoch), state.leader)
            if leader != state.leader:
                raise Violation(f"leader epoch {state.leader_epoch} of {name} has two leaders: {leader} and {state.leader}")
        self._committed.setdefault(key, {})[state.partition_epoch] = state

    def partition_held(self, node: str, held: HeldPartition) -> None:
        self.judged += 1
        epoch = held.partition_epoch
        newest = self._newest.setdefault((node, held.key), epoch)
        if epoch < newest:
            raise Violation(f"{node} went back from partition epoch {newest} of {held.name} to {epoch}")
        self._newest[node, held.key] = epoch
        state = self._committed.get(held.key, {}).get(epoch)
        if state is None:
            raise Violation(f"{node} has {held.name} in partition epoch {epoch}, which is not committed")
        if (held.isr, held.leader, held.leader_epoch) != (state.isr, state.leader, state.leader_epoch):
            raise Violation(
                f"{node} has {held.name} with ISR {held.isr}, leader {held.leader} and leader epoch {held.leader_epoch} in "
                f"partition epoch {epoch}, and committed is {state}"
            )
