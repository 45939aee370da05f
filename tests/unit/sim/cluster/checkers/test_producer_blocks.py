"""No producer id is in two blocks."""

import pytest

from ottla.metadata.image.image import MetadataImage
from ottla.sim.checkers.checker import Violation
from ottla.sim.cluster.checkers.checker import Answer
from ottla.sim.cluster.checkers.quorum import ProducerBlocks
from ottla.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse


def block(start: int, broker_id: int = 1) -> Answer:
    response = AllocateProducerIdsResponse(producer_id_start=start, producer_id_len=1000)
    return Answer(AllocateProducerIdsRequest(broker_id=broker_id), response, [], 0)


def test_blocks_side_by_side_are_right() -> None:
    checker = ProducerBlocks()
    checker.answered("n1", block(0))
    checker.answered("n2", block(1000))
    assert len(checker.blocks) == 2


def test_overlapping_blocks_are_found() -> None:
    checker = ProducerBlocks()
    checker.answered("n1", block(0))
    with pytest.raises(Violation, match=r"n2 has allocated the producer ids 999 to 1998 to broker 2, and 0 to 999 .* broker 1"):
        checker.answered("n2", block(999, 2))


def test_a_next_id_that_goes_back_is_found() -> None:
    with pytest.raises(Violation, match="the next producer id was 2000, and then 1000"):
        ProducerBlocks().image_committed(MetadataImage(next_producer_id=2000), MetadataImage(next_producer_id=1000))
