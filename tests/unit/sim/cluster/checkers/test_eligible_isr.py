"""Only the registered process of a broker is let into an ISR."""

from collections.abc import Mapping

import pytest
from tests.support.nodes.watched_partitions import TOPIC_ID, entry, image, state

from ottla.errors.codes import ErrorCode
from ottla.metadata.image.image import MetadataImage, Provenance
from ottla.sim.checkers.checker import Violation
from ottla.sim.cluster.checkers.checker import Answer
from ottla.sim.cluster.checkers.partitions import ANY_EPOCH, EligibleIsr
from ottla.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
    BrokerState,
)


def proposal(epochs: Mapping[int, int], offset: int | None, error: int = ErrorCode.NONE) -> Answer:
    """An answer to a proposal of these replicas, in these epochs; its change is in the log at `offset`."""
    isr = [BrokerState(broker_id=broker_id, broker_epoch=epoch) for broker_id, epoch in epochs.items()]
    asked = AlterPartitionRequestPartitionData(partition_index=0, new_isr_with_epochs=isr)
    told = AlterPartitionResponsePartitionData(partition_index=0, error_code=error)
    return Answer(
        AlterPartitionRequest(topics=[AlterPartitionRequestTopicData(topic_id=TOPIC_ID, partitions=[asked])]),
        AlterPartitionResponse(topics=[AlterPartitionResponseTopicData(topic_id=TOPIC_ID, partitions=[told])]),
        [] if offset is None else [entry(offset)],
        broker_epoch=1,
    )


def registered() -> EligibleIsr:
    """Broker 2 is registered at offset 4, and again at offset 8."""
    checker = EligibleIsr()
    first = image(state(), {1: 3, 2: 4})._replace(provenance=Provenance(4, 1, 0))
    checker.image_committed(MetadataImage(), first)
    checker.image_committed(first, image(state(), {1: 3, 2: 8})._replace(provenance=Provenance(8, 1, 0)))
    return checker


def test_the_epoch_that_a_broker_had_when_the_controller_decided_may_join() -> None:
    checker = registered()
    checker.answered("n1", proposal({1: 3, 2: 4}, offset=6))
    checker.answered("n1", proposal({1: 3, 2: 8}, offset=9))
    checker.answered("n1", proposal({1: 3, 2: ANY_EPOCH}, offset=9))
    assert checker.judged == 6


def test_a_proposal_that_is_refused_or_changes_nothing_may_have_any_epoch() -> None:
    checker = registered()
    checker.answered("n1", proposal({2: 4}, offset=9, error=ErrorCode.INELIGIBLE_REPLICA))
    checker.answered("n1", proposal({2: 4}, offset=None))
    assert checker.judged == 0


def test_a_process_that_is_gone_and_joins_is_found() -> None:
    with pytest.raises(
        Violation, match=r"n1 has let broker 2 into an ISR with broker epoch 4, and at offset 9 it was registered in epoch 8"
    ):
        registered().answered("n1", proposal({1: 3, 2: 4}, offset=9))
