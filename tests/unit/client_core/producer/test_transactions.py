"""The transaction manager against a model coordinator: legal calls, lost answers, and an EndTxn that never ends a later one."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.machines.open_connections import OpenConnections
from tests.support.producers.settings import small_settings

from ottla.client_core.machine import Channel, Connect, Request
from ottla.client_core.metadata import Metadata
from ottla.client_core.offsets import ConsumerGroupMetadata, OffsetAndMetadata
from ottla.client_core.producer.idempotence import Idempotence
from ottla.client_core.producer.pending import Pending
from ottla.client_core.producer.transactions import State, TransactionManager
from ottla.errors import (
    IllegalStateError,
    KafkaError,
    NetworkError,
    NotEnoughReplicasError,
    ProducerFencedError,
    exception_of,
)
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from ottla.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from ottla.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from ottla.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

KEY = ("t", 0)


class ModelCoordinator:
    """Kafka's rules for one transactional id, of transaction version 1 or 2."""

    def __init__(self, *, raises_epochs: bool) -> None:
        self.raises_epochs = raises_epochs
        self.epoch = -1
        self.state = "Empty"
        self.ended: list[tuple[int, str]] = []
        """(number of the transaction, how it ended)."""
        self.opened = 0

    def execute(self, message: Any) -> Any:
        if isinstance(message, FindCoordinatorRequest):
            key = "tx" if message.key_type == 1 else "g"
            return FindCoordinatorResponse(coordinators=[Coordinator(key=key, node_id=1, host="h", port=1)])
        if isinstance(message, InitProducerIdRequest):
            if self.state == "Ongoing" and message.keep_prepared_txn:
                self.epoch += 1
                kept = {"ongoing_txn_producer_id": 7, "ongoing_txn_producer_epoch": self.epoch - 1}
                return InitProducerIdResponse(producer_id=7, producer_epoch=self.epoch, **kept)
            if self.state == "Ongoing":
                self._end("CompleteAbort")
            self.epoch += 1
            self.state = "Empty"
            return InitProducerIdResponse(producer_id=7, producer_epoch=self.epoch)
        if isinstance(message, EndTxnRequest):
            return self._end_txn(message)
        code = 0
        epoch = (
            message.v3_and_below_producer_epoch if isinstance(message, AddPartitionsToTxnRequest) else message.producer_epoch
        )
        if epoch != self.epoch:
            code = ErrorCode.PRODUCER_FENCED
        else:
            self.open()
        if isinstance(message, AddOffsetsToTxnRequest):
            return AddOffsetsToTxnResponse(error_code=code)
        if isinstance(message, TxnOffsetCommitRequest):
            return TxnOffsetCommitResponse(
                topics=[TxnOffsetCommitResponseTopic(name="t", partitions=[TxnOffsetCommitResponsePartition(error_code=code)])]
            )
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=[
                AddPartitionsToTxnTopicResult(
                    name="t", results_by_partition=[AddPartitionsToTxnPartitionResult(partition_error_code=code)]
                )
            ]
        )

    def open(self) -> None:
        if self.state != "Ongoing":
            self.state = "Ongoing"
            self.opened += 1

    def _end_txn(self, message: EndTxnRequest) -> EndTxnResponse:
        wanted = "CompleteCommit" if message.committed else "CompleteAbort"
        is_again = self.raises_epochs and message.producer_epoch == self.epoch - 1
        if is_again and self.state == wanted:
            return EndTxnResponse(producer_id=7, producer_epoch=self.epoch)
        if message.producer_epoch != self.epoch:
            return EndTxnResponse(error_code=ErrorCode.PRODUCER_FENCED)
        if self.state == "Ongoing":
            self._end(wanted)
        elif self.state != wanted:
            return EndTxnResponse(error_code=ErrorCode.INVALID_TXN_STATE)
        return EndTxnResponse(producer_id=7, producer_epoch=self.epoch) if self.raises_epochs else EndTxnResponse()

    def _end(self, how: str) -> None:
        self.ended.append((self.opened, how))
        self.state = how
        if self.raises_epochs:
            self.epoch += 1


def sent(request: Request) -> Any:
    is_two_phase = isinstance(request.message, InitProducerIdRequest)
    return request.message if request.adapt is None else request.adapt(6 if is_two_phase else 4)


class World:
    """A manager and its coordinator, without a loop."""

    def __init__(self, *, raises_epochs: bool, **given: Any) -> None:
        self.now_ms = 0
        made = small_settings(transactional_id="tx", retry_backoff_ms=10, **given)
        self.metadata = Metadata(made, lambda below: below // 2)
        self.metadata.learn_features(1, {"transaction.version": 2 if raises_epochs else 1})
        self.idempotence = Idempotence(is_transactional=True)
        self.manager = TransactionManager("tx", made, self.idempotence, self.metadata, lambda below: below // 2)
        self.coordinator = ModelCoordinator(raises_epochs=raises_epochs)
        self.in_flight: list[Request] = []

    def step(self) -> None:
        self.in_flight += self.manager.step(self.now_ms)
        ours = [request for request in self.in_flight if not isinstance(request.message, FindCoordinatorRequest)]
        assert len(ours) <= 1

    def answer(self, fate: str = "answer") -> None:
        """The oldest request meets its fate."""
        if not self.in_flight:
            return
        request = self.in_flight.pop(0)
        if fate == "lost":
            self.manager.failed(request, NetworkError("gone"), self.now_ms)
            return
        if fate == "busy" and not isinstance(request.message, FindCoordinatorRequest):
            self.manager.failed(request, exception_of(ErrorCode.CONCURRENT_TRANSACTIONS), self.now_ms)
            return
        response = self.coordinator.execute(sent(request))
        if fate == "unanswered":
            self.manager.failed(request, NetworkError("gone"), self.now_ms)
        else:
            self.manager.answered(request, response, 4, self.now_ms)

    def run(self, pending: Pending, fates: list[str] | None = None) -> None:
        """Until the operation is done: with these fates first, then all is well."""
        left = list(fates or [])
        for _ in range(200):
            self.step()
            self.answer(left.pop(0) if left else "answer")
            if pending.is_done:
                return
            self.now_ms += 50
        raise AssertionError(f"{pending.what}: not done; the manager is {self.manager.state}")

    def send(self) -> None:
        """A record is sent: under version 2 the broker adds its partition by itself."""
        for _ in range(50):
            if self.manager.may_send(KEY):
                if self.manager.is_implicit:
                    self.coordinator.open()
                return
            self.step()
            self.answer()
            self.now_ms += 50
        raise AssertionError("the partition was not added")


fates = st.lists(st.sampled_from(["answer", "lost", "unanswered", "busy"]), max_size=6)
plans = st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans(), fates, fates), min_size=1, max_size=6)


@settings(max_examples=300, deadline=None)
@given(st.booleans(), plans, fates)
def test_each_transaction_ends_once_as_asked(raises_epochs: bool, plan: list[Any], init_fates: list[str]) -> None:
    world = World(raises_epochs=raises_epochs)
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
def test_no_transaction_begins_while_the_outcome_of_an_end_is_unknown(raises_epochs: bool) -> None:
    world = World(raises_epochs=raises_epochs)
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


def spoiled() -> World:
    """A transaction of version 1 that has lost a record: its abort goes on with InitProducerId, for a new epoch."""
    world = World(raises_epochs=False)
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
    world = World(raises_epochs=True)
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
    world = World(raises_epochs=True)
    world.run(world.manager.initialize())
    world.manager.begin()
    world.send()
    pending = world.manager.end(is_commit=True)
    world.run(pending)
    world.manager.begin()
    world.send()
    assert world.manager.end(is_commit=True) is not pending


def test_calls_out_of_order_say_what_to_do() -> None:
    world = World(raises_epochs=True)
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
    world = World(raises_epochs=raises_epochs)
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
    world = World(raises_epochs=True)
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
    world = World(raises_epochs=True)
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
    world = World(raises_epochs=True)
    world.run(world.manager.initialize())
    world.manager.begin()
    world.send()
    assert world.manager.detach() == ("tx", 7, 0)
    assert not world.manager.is_open
    assert world.manager.step(10_000) == []
    assert world.coordinator.state == "Ongoing"


def test_client_that_knows_only_version_1_adds_partitions_itself() -> None:
    world = World(raises_epochs=True)
    world.manager.version_max = 1
    world.manager.state = State.READY
    world.manager.begin()
    assert not world.manager.is_implicit


def two_phase() -> World:
    return World(raises_epochs=True, transaction_two_phase_commit_enable=True)


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
    world = World(raises_epochs=True)
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
    world = World(raises_epochs=True)
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
