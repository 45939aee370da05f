"""Fencing holds: a fenced broker leads nothing, a broker's epochs rise, and the controller obeys no older one."""

from __future__ import annotations

from ottla.metadata.image.image import MetadataImage
from ottla.metadata.image.topics import NO_LEADER
from ottla.sim.checkers.checker import Violation
from ottla.sim.cluster.checkers.checker import Answer, ClusterChecker
from ottla.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from ottla.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest

FENCED_REQUESTS = (BrokerHeartbeatRequest, AllocateProducerIdsRequest, AssignReplicasToDirsRequest)
"""Requests with the epoch of the broker that sends them."""


class Fencing(ClusterChecker):
    """Looks at every committed image, and at the requests of brokers that the controller answers."""

    def __init__(self) -> None:
        self.judged = 0

    def image_committed(self, before: MetadataImage, image: MetadataImage) -> None:
        """`image` follows `before` in the committed log."""
        for broker_id, broker in image.cluster.brokers.items():
            known = before.cluster.brokers.get(broker_id)
            if known is not None and broker.epoch < known.epoch:
                raise Violation(f"broker {broker_id} was registered in epoch {known.epoch}, and then in {broker.epoch}")
            if known is not None and broker.epoch == known.epoch and broker.incarnation_id != known.incarnation_id:
                raise Violation(f"two processes of broker {broker_id} share epoch {broker.epoch}")
        if before.topics is image.topics and before.cluster is image.cluster:
            return
        for topic in image.topics.by_id.values():
            for number, state in topic.partitions.items():
                if state.leader == NO_LEADER:
                    continue
                leader = image.cluster.brokers.get(state.leader)
                if leader is None or leader.fenced:
                    what = "is not registered" if leader is None else "is fenced"
                    at = image.provenance.offset
                    raise Violation(f"broker {state.leader} leads {topic.name}-{number} at offset {at}, and it {what}")

    def answered(self, node: str, answer: Answer) -> None:
        if not isinstance(answer.request, FENCED_REQUESTS):
            return
        self.judged += 1
        if answer.request.broker_epoch != answer.broker_epoch:
            name = type(answer.request).__name__.removesuffix("Request")
            raise Violation(
                f"the controller of {node} has obeyed {name} of broker {answer.request.broker_id} in epoch "
                f"{answer.request.broker_epoch}, and it is registered in epoch {answer.broker_epoch}"
            )
