"""A program that consumes, transforms and produces within transactions, or only produces.

Its instances run the asyncio producer and consumer that users run. An instance that has initialised the transactional id
continues at the committed offsets. It may vanish at any point, leave a transaction open, exceed its timeout, or abort. A commit
that takes longer than max.block.ms is asked for again, until its outcome is known or the instance vanishes.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from ottla.client.consumer.asynchronous import Consumer
from ottla.client.producer.asynchronous import Producer
from ottla.client.producer.core import ProducerCore
from ottla.client_core.machine import Request
from ottla.client_core.producer.batch import RecordMetadata
from ottla.client_core.producer.transaction_requests import error_in
from ottla.errors import KafkaError
from ottla.errors import TimeoutError as KafkaTimeoutError
from ottla.errors.codes import ErrorCode, error_name
from ottla.errors.faults import without_frames
from ottla.ids import TopicPartition
from ottla.sim.checkers.checker import Batch, Commit, Handed, Place, Transaction, Violation
from ottla.sim.clients.client import BACKOFF_S_MAX, CLIENT_SETTINGS, Client, ClientObserver, Stage, value_text
from ottla.sim.clients.consumer import FetchObserver, open_consumer, report_seen
from ottla.sim.clients.group_client import GroupClient
from ottla.sim.histories.history import Send
from ottla.sim.histories.history import Transaction as RecordedTransaction
from ottla.sim.plan import AppPlan
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.messages.init_producer_id import InitProducerIdResponse
from ottla.wire.messages.offset_fetch import OffsetFetchResponse
from ottla.wire.messages.produce import ProduceResponse
from ottla.wire.messages.txn_offset_commit import TxnOffsetCommitRequest


@dataclass(eq=False)
class Ending:
    """A transaction that the program has asked to end, with the offsets that it sent to it."""

    transaction: Transaction
    offsets: dict[Place, int]
    is_commit: bool = True
    commits: list[Commit] = field(default_factory=list)
    """One for each attempt."""


class AppObserver(ClientObserver):
    """`ending` is set while the program waits for the end of its transaction."""

    def __init__(self, client: Client, transactional_id: str, group: str) -> None:
        super().__init__(client)
        self.ending: Ending | None = None
        self.unknown_endings = 0
        """How often an EndTxn got no answer."""
        self._transactional_id = transactional_id
        self._group = group

    def on_sent(self, message: Any) -> None:
        if not isinstance(message, EndTxnRequest):
            return
        self.stage.ending_sent.set()
        ending = self.ending
        if ending is None or ending.is_commit is not message.committed:
            asked = "nothing" if ending is None else f"to {'commit' if ending.is_commit else 'abort'} {ending.transaction.name}"
            raise Violation(
                f"{self.client.name} sends EndTxn with committed={message.committed}, and the program has asked {asked}"
            )
        if ending.is_commit:
            self.stage.checkers.commit_requested(ending.transaction)
            epoch = message.producer_epoch
            commit = Commit(self._group, "transaction", self.client.name, None, epoch, ending.offsets, self.stage.now_s())
            ending.commits.append(commit)
            self.stage.checkers.commit_sent(commit)

    def on_failure(self, message: Any) -> None:
        if isinstance(message, EndTxnRequest):
            self.unknown_endings += 1

    def on_answer(self, request: Request, message: Any, response: Any, sent_s: float) -> None:
        if isinstance(response, ProduceResponse):
            self._produced(request, response, sent_s)
            return
        kind = type(message).__name__.removesuffix("Request")
        if isinstance(message, EndTxnRequest | TxnOffsetCommitRequest) or isinstance(response, InitProducerIdResponse):
            error = error_in(response)
            if error is not None:
                self.client.note("refused", f"{kind} {error_name(error.code)}")
                return
        if isinstance(response, InitProducerIdResponse):
            self._handed(response, sent_s)
        elif isinstance(message, TxnOffsetCommitRequest) or (isinstance(message, EndTxnRequest) and message.committed):
            self._obeyed((message.producer_id, message.producer_epoch), sent_s)
        if isinstance(message, EndTxnRequest) and response.producer_id >= 0:
            self._handed(response, sent_s)

    def _produced(self, request: Request, response: ProduceResponse, sent_s: float) -> None:
        for topic in response.responses:
            name = request.context.names.get(topic.topic_id, topic.name)
            for part in topic.partition_responses:
                if part.error_code:
                    self.client.note("refused", f"{name}-{part.index} {error_name(part.error_code)}")
                else:
                    self._obeyed(request.context.batches[name, part.index].producer, sent_s)

    def _handed(self, answer: Any, sent_s: float) -> None:
        self.client.note("producer id", f"{answer.producer_id} epoch {answer.producer_epoch}")
        handed = Handed(self._transactional_id, answer.producer_id, answer.producer_epoch, sent_s, self.stage.now_s())
        self.stage.checkers.producer_handed(handed)

    def _obeyed(self, producer: tuple[int, int], sent_s: float) -> None:
        self.stage.checkers.producer_obeyed(self._transactional_id, *producer, sent_s)


T = TypeVar("T")

RECORDS_MAX = 8
PAUSE_S_MAX = 0.05
TAKEOVER_PAUSE_S_MAX = 1.0
VANISH_CHANCE = 0.2
FENCED = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)


class Vanished(Exception):
    """The process is gone; another instance starts."""


class App(GroupClient):
    """One instance of a program. Without `inputs` it only produces."""

    def __init__(self, stage: Stage, name: str, app: AppPlan, version: int, inputs: list[Place], outputs: list[Place]) -> None:
        super().__init__(stage, name, f"{app.name}-group")
        self.transactional_id = app.name
        self.inputs, self._outputs = inputs, outputs
        self._partitions = {TopicPartition(place.topic.name, place.number): place for place in inputs}
        self._version = version
        self._timeout_ms = app.timeout_ms
        # A commit after the coordinator has aborted a timed-out transaction gets INVALID_TXN_STATE.
        self._ended_by: tuple[ErrorCode, ...] = (*FENCED, ErrorCode.INVALID_TXN_STATE)
        if app.may_change_producer:
            self._ended_by += (ErrorCode.INVALID_PRODUCER_ID_MAPPING,)
        self._numbers: defaultdict[Place, int] = defaultdict(int)
        self._begun = 0
        self._recorded: RecordedTransaction | None = None
        """The current transaction, as the history has it."""
        self._reading: _InputObserver | None = None
        self.committed = 0
        self.unknown_endings = 0

    async def run(self) -> None:
        while not self.stage.is_ending:
            try:
                await self._live()
            except Vanished:
                self.note("over", "Vanished")
            except KafkaError as error:
                self.note("over", f"{type(error).__name__} {error_name(error.code)}")
                if not isinstance(error, KafkaTimeoutError):
                    self.explain("a transaction", error.code, *self._ended_by)
            await self.pause(TAKEOVER_PAUSE_S_MAX if self.random.random() < 0.5 else BACKOFF_S_MAX)

    async def _live(self) -> None:
        """One process, from its start to its end."""
        producer, observer = self._open_producer()
        core = producer._start()
        consumer = None
        try:
            await self._until_known("init_transactions", producer.init_transactions)
            if self.inputs:
                consumer = await self._open_consumer()
            while not self.stage.is_ending:
                if self.random.random() < 0.03:
                    raise Vanished
                await self._transact(producer, core, consumer, observer)
                await self.pause(PAUSE_S_MAX)
        finally:
            self.unknown_endings += observer.unknown_endings
            core.abandon()
            if consumer is not None:
                consumer._core.finish_close()
            self.die()

    def _open_producer(self) -> tuple[Producer[bytes, bytes], AppObserver]:
        producer: Producer[bytes, bytes] = Producer(
            self.stage.bootstrap_servers,
            world=self.world(),
            client_id=self.name,
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self._timeout_ms,
            max_block_ms=1_500,
            linger_ms=0,
            **CLIENT_SETTINGS,
        )
        core = producer._start()
        assert core.transactions is not None
        core.transactions.version_max = self._version  # 1: an older client, which does not know of later versions
        observer = core.runner.observer = AppObserver(self, self.transactional_id, self.group)
        return producer, observer

    async def _open_consumer(self) -> Consumer[bytes, bytes]:
        consumer = open_consumer(
            self,
            group_id=self.group,
            enable_auto_commit=False,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            default_api_timeout_ms=5_000,
        )
        consumer.assign(list(self._partitions))
        observer = self._reading = consumer._core.parts.runner.observer = _InputObserver(self)
        requested_s = self.stage.now_s()
        self.stage.history.assigned(self.name, self._partitions, self.group)
        found = await self._until_known("committed", lambda: consumer.committed(list(self._partitions)))
        offsets = {self._partitions[each]: -1 if value is None else value.offset for each, value in found.items()}
        self.note("offsets", f"{self.group} " + " ".join(f"{place}@{at}" for place, at in offsets.items()))
        if self.report_offsets(offsets, observer.requested_s, observer.coordinator):
            by_name = {place.name: offset for place, offset in offsets.items()}
            self.stage.history.offsets_found(self.group, by_name, requested_s)
        return consumer

    # A transaction

    async def _transact(
        self,
        producer: Producer[bytes, bytes],
        core: ProducerCore,
        consumer: Consumer[bytes, bytes] | None,
        observer: AppObserver,
    ) -> None:
        taken: list[tuple[Place | None, int]] = [(None, index) for index in range(self.random.randint(1, 3))]
        starts: dict[TopicPartition, int] = {}
        offsets: dict[TopicPartition, int] = {}
        transaction = Transaction(f"{self.name}.{self._begun}", self.transactional_id)
        if consumer is not None:
            records = await consumer.poll(BACKOFF_S_MAX, self.random.randint(1, RECORDS_MAX))
            if not records:
                return
            if self._reading is not None and self._reading.is_misled:
                raise Vanished  # with Kafka, too, it would process records again
            recorded = self._recorded = self.stage.history.transaction(self.name, transaction.name)
            report_seen(self, records, self._partitions, is_committed=True, group=self.group, transaction=recorded)
            taken = []
            for record in records:
                partition = TopicPartition(record.topic, record.partition)
                taken.append((self._partitions[partition], record.offset))
                starts.setdefault(partition, record.offset)
                offsets[partition] = record.offset + 1
        else:
            self._recorded = self.stage.history.transaction(self.name, transaction.name)
        self._begun += 1
        await producer.begin_transaction()
        ending = Ending(transaction, {self._partitions[each]: offset for each, offset in offsets.items()})
        ending.is_commit = self.random.random() < 0.8
        try:
            await self._write(producer, transaction, taken)
            if offsets:
                await self._until_known("offsets", lambda: producer.send_offsets_to_transaction(offsets, self.group))
            await self._delay_or_vanish()
            is_done = await self._end(producer, core, observer, ending)
        except KafkaError as error:
            is_done = await self._abort_after(error, producer, core, observer, ending)
        if not is_done and consumer is not None:
            for partition, offset in starts.items():
                consumer.seek(partition, offset)
            self.stage.history.assigned(self.name, starts)

    async def _write(
        self, producer: Producer[bytes, bytes], transaction: Transaction, taken: list[tuple[Place | None, int]]
    ) -> None:
        for origin, offset in taken:
            place = self.random.choice(self._outputs)
            value = f"{transaction.name}/{place}/{origin}@{offset}/".encode()
            if origin is not None:
                self.stage.checkers.transformed(self.transactional_id, origin, offset, value)
            batch = Batch(self.name, place, self._numbers[place], [value], [None], True, -1)
            self._numbers[place] += 1
            self.note("send", f"{place}:{batch.number} of {transaction.name}")
            self.stage.checkers.sent(batch)
            self.stage.checkers.transaction_wrote(transaction, batch)
            sent = self.stage.history.send(self.name, place.name, value_text(value), self._recorded)
            callback = partial(self._delivered, batch, sent)
            send = partial(producer.send, place.topic.name, value, partition=place.number, on_delivery=callback)
            await self._until_known("send", send)

    def _delivered(self, batch: Batch, sent: Send, metadata: RecordMetadata | None, error: KafkaError | None) -> None:
        # In a turn of its own: the producer logs what a callback raises, the loop reports it.
        asyncio.get_running_loop().call_soon(self._settle, batch, sent, metadata)

    def _settle(self, batch: Batch, sent: Send, metadata: RecordMetadata | None) -> None:
        if metadata is not None:
            self.note("delivered", f"{batch.place}:{batch.number} at {metadata.offset}")
            if metadata.offset >= 0:
                sent.stored(metadata.offset)
                self.stage.checkers.acknowledged(batch, metadata.offset)

    async def _delay_or_vanish(self) -> None:
        chance = self.random.random()
        if chance < 0.04:
            raise Vanished  # the transaction stays open
        if chance < 0.08:
            await asyncio.sleep(self._timeout_ms / 1000 * self.random.uniform(0.5, 1.5))

    async def _end(self, producer: Producer[bytes, bytes], core: ProducerCore, observer: AppObserver, ending: Ending) -> bool:
        """Commit or abort. Returns whether the transaction is committed."""
        self.note("end", f"{ending.transaction.name} {'commit' if ending.is_commit else 'abort'}")
        observer.ending = ending
        recorded = self._recorded
        assert recorded is not None
        if recorded.wanted is None:  # a commit that has failed may have taken effect
            recorded.asks("commit" if ending.is_commit else "abort")
        offsets = {place.name: offset for place, offset in ending.offsets.items() if ending.is_commit}
        committed = self.stage.history.commits(self.group, offsets)
        call = producer.commit_transaction if ending.is_commit else producer.abort_transaction
        await self._until_known("EndTxn", call)
        observer.ending = None
        self.note("ended", ending.transaction.name)
        if ending.is_commit or recorded.wanted == "abort":
            recorded.ended()
        if not ending.is_commit:
            return False
        committed.acknowledged()
        self.committed += 1
        self.stage.checkers.commit_answered(ending.transaction)
        for commit in ending.commits:
            self.stage.checkers.commit_acknowledged(commit, list(ending.offsets), self.stage.now_s())
        return True

    async def _abort_after(
        self, error: KafkaError, producer: Producer[bytes, bytes], core: ProducerCore, observer: AppObserver, ending: Ending
    ) -> bool:
        assert core.transactions is not None
        if core.transactions.is_fatal or core.fault is not None:
            raise without_frames(core.transactions.error or error)
        self.note("must abort", f"{type(error).__name__} {error_name(error.code)}")
        ending.is_commit = False
        return await self._end(producer, core, observer, ending)

    async def _until_known(self, what: str, call: Callable[[], Awaitable[T]]) -> T:
        """Repeat a call that only takes long."""
        begun_s = self.stage.now_s()
        while True:
            self.check_patience(what, begun_s)
            try:
                return await call()
            except KafkaTimeoutError:
                self.note("waits", what)
                if self.random.random() < VANISH_CHANCE:
                    raise Vanished from None
                if self.random.random() < 0.5:
                    await self.pause(TAKEOVER_PAUSE_S_MAX)  # the operation may be done when the call is repeated


class _InputObserver(FetchObserver):
    """Also notices which node answers with committed offsets."""

    def __init__(self, app: App) -> None:
        super().__init__(app, app.inputs)
        self._group = app.group
        self.coordinator, self.requested_s = -1, 0.0
        """Which node has answered last with committed offsets, and when it was asked."""
        self.is_misled = False
        """Whether one of them was deposed: the program may continue at offsets that are not the last ones."""

    def on_answer(self, request: Request, message: Any, response: Any, sent_s: float) -> None:
        super().on_answer(request, message, response, sent_s)
        if isinstance(response, OffsetFetchResponse) and not response.groups[0].error_code:
            self.coordinator, self.requested_s = request.node, sent_s
            self.is_misled = self.is_misled or not self.stage.is_coordinator(self._group, request.node, sent_s)
