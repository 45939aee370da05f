"""The transaction manager against a model coordinator: legal calls, lost answers, and an EndTxn that never ends a later one."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.cases.examples import examples
from tests.support.machines.open_connections import OpenConnections
from tests.support.producers.transaction_world import KEY, TransactionWorld, sent

from ottla.client_core.machine import Channel, Connect
from ottla.client_core.offsets import ConsumerGroupMetadata, OffsetAndMetadata
from ottla.client_core.producer.transactions import State
from ottla.errors import (
    IllegalStateError,
    KafkaError,
    NetworkError,
    NotEnoughReplicasError,
    ProducerFencedError,
    exception_of,
)
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from ottla.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
)

fates = st.lists(st.sampled_from(["answer", "lost", "unanswered", "busy"]), max_size=6)
plans = st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans(), fates, fates), min_size=1, max_size=6)


@settings(max_examples=examples(300), deadline=None)
@given(st.booleans(), plans, fates)
def test_each_transaction_ends_once_as_asked(raises_epochs: bool, plan: list[Any], init_fates: list[str]) -> None:
    world = TransactionWorld(raises_epochs=raises_epochs)
    world.run(world.manager.initialize(), init_fates)
    expected: list[tuple[int, str]] = []
    for is_commit, has_record, has_offsets, offset_fates, end_fates in plan:
        world.manager.begin()
        if has_record:
            world.send()
        if has_offsets:
            pending = world.manager.send_offsets({KEY: OffsetAndMetadata(5)}, ConsumerGroupMetadata("g"))
            world.run(pending, offset_fates)
            assert pending.error is None
        pending = world.manager.end(is_commit=is_commit)
        assert world.manager.end(is_commit=is_commit) is pending or pending.is_done if not pending.is_done else True
        if not pending.is_done:
            world.run(pending, end_fates)
        assert pending.error is None
        assert world.manager.state is State.READY
        if has_record or has_offsets:
            expected.append((len(expected) + 1, "CompleteCommit" if is_commit else "CompleteAbort"))
        assert world.coordinator.ended == expected
        assert world.idempotence.producer == (7, world.coordinator.epoch)


@pytest.mark.parametrize("raises_epochs", [False, True])
def test_no_offsets_are_not_sent_and_begin_no_transaction(raises_epochs: bool) -> None:
    """A coordinator refuses the EndTxn of a transaction that has not begun, and that is fatal."""
    world = TransactionWorld(raises_epochs=raises_epochs)
    world.run(world.manager.initialize())
    world.manager.begin()
    pending = world.manager.send_offsets({}, ConsumerGroupMetadata("g"))
    assert pending.is_done
    assert pending.error is None
    assert world.manager.end(is_commit=True).is_done
    assert world.manager.state is State.READY
    with pytest.raises(IllegalStateError, match="begin_transaction first"):
        world.manager.send_offsets({}, ConsumerGroupMetadata("g"))


@pytest.mark.parametrize("raises_epochs", [False, True])
def test_no_transaction_begins_while_the_outcome_of_an_end_is_unknown(raises_epochs: bool) -> None:
    world = TransactionWorld(raises_epochs=raises_epochs)
    world.run(world.manager.initialize())
    world.manager.begin()
    world.send()
    pending = world.manager.end(is_commit=True)
    world.step()
    world.answer("unanswered")
    assert world.coordinator.ended == [(1, "CompleteCommit")]
    assert not pending.is_done
    for call in (world.manager.begin, lambda: world.manager.end(is_commit=False)):
        with pytest.raises(IllegalStateError, match="committing"):
            call()
    assert world.manager.end(is_commit=True) is pending
    world.run(pending)
    assert pending.error is None
    assert world.coordinator.ended == [(1, "CompleteCommit")]


def spoiled() -> TransactionWorld:
    """A transaction of version 1 that has lost a record: its abort goes on with InitProducerId, for a new epoch."""
    world = TransactionWorld(raises_epochs=False)
    world.run(world.manager.initialize())
    world.manager.begin()
    world.send()
    world.manager.batch_failed(NotEnoughReplicasError())
    return world


def test_an_abort_that_is_repeated_while_it_gets_a_new_epoch_waits_for_the_same() -> None:
    world = spoiled()
    pending = world.manager.end(is_commit=False)
    while world.manager.state is not State.INITIALIZING:
        world.step()
        world.answer()
    assert world.manager.end(is_commit=False) is pending
    for call in (world.manager.initialize, world.manager.begin, lambda: world.manager.end(is_commit=True)):
        with pytest.raises(IllegalStateError, match="being initialized"):
            call()
    world.run(pending)
    assert pending.error is None
    assert world.manager.state is State.READY


@pytest.mark.parametrize("is_commit", [False, True])
def test_a_call_whose_caller_did_not_wait_gives_its_outcome_when_it_is_repeated(is_commit: bool) -> None:
    world = TransactionWorld(raises_epochs=True)
    initialized = world.manager.initialize()
    world.run(initialized)
    assert world.manager.initialize() is initialized
    initialized.is_claimed = True
    with pytest.raises(IllegalStateError, match="it needs to be called once only"):
        world.manager.initialize()
    world.manager.begin()
    world.send()
    pending = world.manager.end(is_commit=is_commit)
    world.run(pending)
    assert world.manager.end(is_commit=is_commit) is pending
    with pytest.raises(IllegalStateError, match="begin_transaction first"):
        world.manager.end(is_commit=not is_commit)
    pending.is_claimed = True
    with pytest.raises(IllegalStateError, match="begin_transaction first"):
        world.manager.end(is_commit=is_commit)


def test_an_outcome_of_an_earlier_transaction_is_not_that_of_the_next() -> None:
    world = TransactionWorld(raises_epochs=True)
    world.run(world.manager.initialize())
    world.manager.begin()
    world.send()
    pending = world.manager.end(is_commit=True)
    world.run(pending)
    world.manager.begin()
    world.send()
    assert world.manager.end(is_commit=True) is not pending


def test_calls_out_of_order_say_what_to_do() -> None:
    world = TransactionWorld(raises_epochs=True)
    manager = world.manager
    for call, text in (
        (manager.begin, "init_transactions first"),
        (manager.check_send, "init_transactions first"),
        (lambda: manager.end(is_commit=True), "init_transactions first"),
    ):
        with pytest.raises(IllegalStateError, match=text):
            call()
    pending = manager.initialize()
    assert manager.initialize() is pending
    world.run(pending)
    with pytest.raises(IllegalStateError, match="begin_transaction first"):
        manager.check_send()
    manager.begin()
    manager.check_send()
    with pytest.raises(IllegalStateError, match="commit or abort it first"):
        manager.begin()


@pytest.mark.parametrize("raises_epochs", [False, True])
def test_a_lost_record_spoils_the_transaction_and_an_abort_heals_it(raises_epochs: bool) -> None:
    world = TransactionWorld(raises_epochs=raises_epochs)
    world.run(world.manager.initialize())
    world.manager.begin()
    world.send()
    epoch = world.coordinator.epoch
    world.manager.batch_failed(NotEnoughReplicasError())
    with pytest.raises(IllegalStateError, match="Now abort the transaction"):
        world.manager.end(is_commit=True)
    assert not world.manager.may_send(KEY)
    world.run(world.manager.end(is_commit=False))
    assert world.coordinator.ended == [(1, "CompleteAbort")]
    assert world.idempotence.producer == (7, epoch + 1)  # what is still on its way cannot be stored later
    world.manager.begin()
    world.send()
    world.run(world.manager.end(is_commit=True))
    assert world.coordinator.ended[-1] == (2, "CompleteCommit")


def test_a_fenced_producer_is_unusable() -> None:
    world = TransactionWorld(raises_epochs=True)
    world.run(world.manager.initialize())
    world.manager.begin()
    world.send()
    world.coordinator.epoch += 5
    pending = world.manager.end(is_commit=True)
    world.run(pending)
    assert isinstance(pending.error, ProducerFencedError)
    assert world.manager.is_fatal
    with pytest.raises(ProducerFencedError, match="close this producer"):
        world.manager.begin()


def test_a_group_that_refuses_offsets_spoils_the_transaction() -> None:
    world = TransactionWorld(raises_epochs=True)
    world.run(world.manager.initialize())
    world.manager.begin()
    pending = world.manager.send_offsets({KEY: OffsetAndMetadata(5)}, ConsumerGroupMetadata("g", 3, "gone"))
    for _ in range(10):
        world.step()
        request = world.in_flight.pop(0) if world.in_flight else None
        if request is None:
            break
        if isinstance(request.message, TxnOffsetCommitRequest):
            error: KafkaError = exception_of(ErrorCode.ILLEGAL_GENERATION)
            world.manager.failed(request, error, world.now_ms)
        else:
            world.manager.answered(request, world.coordinator.execute(sent(request)), 4, world.now_ms)
        world.now_ms += 50
    assert pending.error is not None
    assert world.manager.state is State.ABORTABLE_ERROR


def test_a_detached_transaction_stays_open() -> None:
    world = TransactionWorld(raises_epochs=True)
    world.run(world.manager.initialize())
    world.manager.begin()
    world.send()
    assert world.manager.detach() == ("tx", 7, 0)
    assert not world.manager.is_open
    assert world.manager.step(10_000) == []
    assert world.coordinator.state == "Ongoing"


def two_phase() -> TransactionWorld:
    return TransactionWorld(raises_epochs=True, transaction_two_phase_commit_enable=True)


def test_a_prepared_transaction_can_only_be_ended() -> None:
    world = two_phase()
    world.run(world.manager.initialize())
    world.manager.begin()
    world.send()
    prepared = world.manager.prepare()
    assert prepared == world.idempotence.producer == (7, 0)
    assert not world.manager.is_open  # so that closing the producer does not abort it
    for call in (world.manager.begin, world.manager.check_send, world.manager.prepare, world.manager.detach):
        with pytest.raises(IllegalStateError, match="in a prepared transaction; complete, commit or abort it first"):
            call()
    world.run(world.manager.end(is_commit=True))
    assert world.coordinator.ended == [(1, "CompleteCommit")]
    assert world.manager.prepared is None
    world.manager.begin()


def test_an_empty_transaction_that_was_prepared_needs_no_request() -> None:
    world = two_phase()
    world.run(world.manager.initialize())
    world.manager.begin()
    world.manager.prepare()
    assert world.manager.end(is_commit=True).is_done
    assert world.manager.state is State.READY


def test_preparing_needs_the_setting() -> None:
    world = TransactionWorld(raises_epochs=True)
    world.run(world.manager.initialize())
    world.manager.begin()
    with pytest.raises(IllegalStateError, match=r"needs transaction.two.phase.commit.enable=true"):
        world.manager.prepare()


@pytest.mark.parametrize("is_commit", [False, True])
@pytest.mark.parametrize("fate", ["answer", "unanswered"])
def test_a_transaction_of_an_earlier_producer_is_kept_and_ended(is_commit: bool, fate: str) -> None:
    world = two_phase()
    world.coordinator.open()
    world.coordinator.epoch = 4
    world.run(world.manager.initialize(keep_prepared=True))
    assert world.manager.prepared == (7, 4)
    assert world.manager.state is State.PREPARED
    assert world.idempotence.producer == (7, 5)
    world.run(world.manager.end(is_commit=is_commit), [fate])
    assert world.coordinator.ended == [(1, "CompleteCommit" if is_commit else "CompleteAbort")]
    assert world.idempotence.producer == (7, 6)
    world.manager.begin()
    world.send()
    world.run(world.manager.end(is_commit=True))
    assert world.coordinator.ended[1:] == [(2, "CompleteCommit")]


def test_without_an_open_transaction_there_is_nothing_to_keep() -> None:
    world = two_phase()
    world.run(world.manager.initialize(keep_prepared=True))
    assert (world.manager.prepared, world.manager.state) == (None, State.READY)


def test_requests_follow_the_coordinator_while_the_old_one_cannot_be_connected_to() -> None:
    world = TransactionWorld(raises_epochs=True)
    connections = world.manager.coordinator.connections = OpenConnections()
    pending = world.manager.initialize()
    world.step()
    world.answer()
    world.step()
    (connect,) = world.in_flight
    assert isinstance(connect, Connect)
    world.in_flight.clear()
    deadline_ms = world.manager.next_deadline_ms()
    assert deadline_ms is not None
    world.now_ms = deadline_ms
    world.step()
    (search,) = world.in_flight
    assert isinstance(search.message, FindCoordinatorRequest)
    world.in_flight.clear()
    moved = FindCoordinatorResponse(coordinators=[Coordinator(key="tx", node_id=connect.node + 1, host="h", port=1)])
    world.manager.answered(search, moved, 4, world.now_ms)
    connections.open.add((connect.node + 1, Channel.DATA))
    world.run(pending)
    world.manager.failed(connect, NetworkError("no connection in time"), world.now_ms)
    assert world.manager.coordinator.node() == connect.node + 1
