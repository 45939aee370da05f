"""A replica is let into an ISR only as the process that has caught up: the proposal has the broker epoch of its registration.

A broker that is registered again since then may have lost records in between (KIP-903). The committed log says in which epoch
each broker was registered when the controller decided.
"""

from __future__ import annotations

from collections import defaultdict

from ottla.metadata.image.image import MetadataImage
from ottla.sim.checkers.checker import Violation
from ottla.sim.cluster.checkers.checker import Answer, ClusterChecker
from ottla.wire.messages.alter_partition import AlterPartitionRequest

ANY_EPOCH = -1
"""Of a replica that stays in the ISR and has not fetched from this leader yet."""


class EligibleIsr(ClusterChecker):
    """Remembers the registrations of all brokers, and looks at the proposals of ISRs that the controller accepts."""

    def __init__(self) -> None:
        self._registered: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        """Broker → the offsets in the committed log at which it got an epoch, and the epoch."""
        self.judged = 0

    def image_committed(self, before: MetadataImage, image: MetadataImage) -> None:
        if before.cluster is image.cluster:
            return
        for broker_id, broker in image.cluster.brokers.items():
            registered = self._registered[broker_id]
            if not registered or registered[-1][1] != broker.epoch:
                registered.append((image.provenance.offset, broker.epoch))

    def answered(self, node: str, answer: Answer) -> None:
        request = answer.request
        if not isinstance(request, AlterPartitionRequest) or not answer.entries:
            return
        accepted = {
            (topic.topic_id, each.partition_index)
            for topic in answer.response.topics
            for each in topic.partitions
            if not each.error_code
        }
        for topic in request.topics:
            for proposal in topic.partitions:
                if (topic.topic_id, proposal.partition_index) not in accepted:
                    continue
                for replica in proposal.new_isr_with_epochs:
                    self._check(node, replica.broker_id, replica.broker_epoch, answer.entries[0].base_offset)

    def _check(self, node: str, broker_id: int, proposed: int, offset: int) -> None:
        self.judged += 1
        epochs = [epoch for at, epoch in self._registered[broker_id] if at < offset]
        registered = epochs[-1] if epochs else None
        if proposed not in (ANY_EPOCH, registered):
            raise Violation(
                f"the controller of {node} has let broker {broker_id} into an ISR with broker epoch {proposed}, and at offset "
                f"{offset} it was registered in epoch {registered}"
            )
