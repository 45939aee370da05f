"""Producer ids are handed out once: the blocks that controllers allocate do not overlap, and the next id only rises."""

from __future__ import annotations

from ottla.metadata.image.image import MetadataImage
from ottla.sim.checkers.checker import Violation
from ottla.sim.cluster.checkers.checker import Answer, ClusterChecker
from ottla.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest


class ProducerBlocks(ClusterChecker):
    """Remembers all blocks."""

    def __init__(self) -> None:
        self.blocks: list[tuple[int, int, int]] = []
        """First id, end and broker of each."""

    def image_committed(self, before: MetadataImage, image: MetadataImage) -> None:
        """`image` follows `before` in the committed log."""
        if image.next_producer_id < before.next_producer_id:
            raise Violation(f"the next producer id was {before.next_producer_id}, and then {image.next_producer_id}")

    def answered(self, node: str, answer: Answer) -> None:
        if not isinstance(answer.request, AllocateProducerIdsRequest):
            return
        start, broker_id = answer.response.producer_id_start, answer.request.broker_id
        end = start + answer.response.producer_id_len
        for first, behind, owner in self.blocks:
            if start < behind and first < end:
                raise Violation(
                    f"{node} has allocated the producer ids {start} to {end - 1} to broker {broker_id}, and {first} to "
                    f"{behind - 1} were allocated to broker {owner}"
                )
        self.blocks.append((start, end, broker_id))
