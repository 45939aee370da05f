"""Which transaction.version a producer uses, when it changes (only together with a new epoch), and aborts of version 1."""

import pytest
from tests.support.producers.transaction_world import KEY, TransactionWorld

from ottla.client_core.machine import Request
from ottla.client_core.offsets import ConsumerGroupMetadata, OffsetAndMetadata
from ottla.client_core.producer.transactions import State
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.add_offsets_to_txn import AddOffsetsToTxnResponse
from ottla.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest


def test_client_that_knows_only_version_1_adds_partitions_itself() -> None:
    world = TransactionWorld(raises_epochs=True)
    world.manager.version_max = 1
    world.run(world.manager.initialize())
    world.manager.begin()
    assert not world.manager.is_implicit


@pytest.mark.parametrize("is_commit", [True, False])
def test_upgrade_to_version_2_takes_a_new_epoch_first(is_commit: bool) -> None:
    """Else a leader without the last transaction's marker takes the next one's records for part of the last one."""
    world = TransactionWorld(raises_epochs=False)
    world.run(world.manager.initialize())
    world.manager.begin()
    world.send()
    world.metadata.learn_features(2, {"transaction.version": 2})
    world.run(world.manager.end(is_commit=is_commit), ["answer", "busy"])
    assert world.manager.state is State.READY
    assert world.manager.is_implicit
    assert world.idempotence.producer == (7, 1)


def test_upgrade_waits_for_the_end_of_a_transaction_with_requests() -> None:
    world = TransactionWorld(raises_epochs=False)
    world.run(world.manager.initialize())
    world.metadata.learn_features(2, {"transaction.version": 2})
    for _ in range(2):
        world.manager.begin()
        assert not world.manager.is_implicit
        assert world.manager.end(is_commit=True).is_done, "nothing was sent, so nothing has to be asked"
    world.manager.begin()
    world.send()
    world.run(world.manager.end(is_commit=True))
    assert world.manager.is_implicit


def test_downgrade_to_version_1_needs_no_further_epoch() -> None:
    world = TransactionWorld(raises_epochs=True)
    world.run(world.manager.initialize())
    world.manager.begin()
    world.send()
    world.metadata.learn_features(2, {"transaction.version": 1})
    world.run(world.manager.end(is_commit=True))
    assert not world.manager.is_implicit
    assert world.idempotence.producer == (7, 1)


def adding(kind: str) -> tuple[TransactionWorld, Request]:
    """A transaction of version 1 whose first request, which adds a partition or a group, has left."""
    world = TransactionWorld(raises_epochs=False)
    world.run(world.manager.initialize())
    world.manager.begin()
    if kind == "partition":
        world.manager.may_send(KEY)
    else:
        world.manager.send_offsets({KEY: OffsetAndMetadata(5)}, ConsumerGroupMetadata("g"))
    world.step()
    (request,) = world.in_flight
    return world, request


@pytest.mark.parametrize("kind", ["partition", "group"])
@pytest.mark.parametrize("fate", ["lost", "unanswered"])
@pytest.mark.parametrize("is_in_flight", [True, False])
def test_abort_repeats_an_add_without_an_answer_then_ends(kind: str, fate: str, is_in_flight: bool) -> None:
    world, _ = adding(kind)
    if not is_in_flight:
        world.answer(fate)
    pending = world.manager.end(is_commit=False)
    assert not pending.is_done
    world.run(pending, [fate] if is_in_flight else [])
    assert pending.error is None
    assert world.manager.state is State.READY
    assert world.coordinator.ended == [(1, "CompleteAbort")]


@pytest.mark.parametrize("kind", ["partition", "group"])
def test_abort_waits_for_an_add_in_flight_then_ends(kind: str) -> None:
    world, _ = adding(kind)
    pending = world.manager.end(is_commit=False)
    world.run(pending)
    assert pending.error is None
    assert world.coordinator.ended == [(1, "CompleteAbort")]


@pytest.mark.parametrize("kind", ["partition", "group"])
@pytest.mark.parametrize("code", [ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION])
def test_abort_sends_no_end_when_the_repeated_add_is_refused(kind: str, code: int) -> None:
    world, _ = adding(kind)
    world.answer("lost")
    pending = world.manager.end(is_commit=False)
    for _ in range(10):
        world.now_ms += 50
        world.step()
        if world.in_flight and not isinstance(world.in_flight[0].message, FindCoordinatorRequest):
            break
        world.answer()
    world.manager.answered(world.in_flight.pop(), refusal(kind, code), 3, world.now_ms)
    assert (pending.is_done, pending.error, world.manager.state) == (True, None, State.READY)
    world.manager.begin()
    world.send()
    world.run(world.manager.end(is_commit=True))
    assert world.coordinator.ended == [(1, "CompleteCommit")]


@pytest.mark.parametrize("kind", ["partition", "group"])
def test_abort_needs_no_request_when_an_add_was_only_refused(kind: str) -> None:
    world, request = adding(kind)
    world.manager.answered(request, refusal(kind, ErrorCode.CONCURRENT_TRANSACTIONS), 3, world.now_ms)
    assert world.manager.end(is_commit=False).is_done


def test_abort_needs_no_request_when_no_add_has_left() -> None:
    world = TransactionWorld(raises_epochs=False)
    world.run(world.manager.initialize())
    world.manager.begin()
    world.manager.may_send(KEY)
    offsets = world.manager.send_offsets({KEY: OffsetAndMetadata(5)}, ConsumerGroupMetadata("g"))
    assert world.manager.end(is_commit=False).is_done
    assert offsets.error is not None


def refusal(kind: str, code: int) -> AddPartitionsToTxnResponse | AddOffsetsToTxnResponse:
    if kind == "group":
        return AddOffsetsToTxnResponse(error_code=code)
    results = [AddPartitionsToTxnPartitionResult(partition_error_code=code)]
    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[AddPartitionsToTxnTopicResult(name="t", results_by_partition=results)]
    )
