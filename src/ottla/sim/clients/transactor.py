"""The requests of one transactional producer, in transaction versions 1 and 2, each retried until its outcome is known.

With version 1 (also in clusters of version 0) partitions and groups are added to a transaction before the first write. With
version 2 the write adds them, and every EndTxn answer has the producer's next epoch. `Fenced`, `Vanished` and `MustAbort` are
raised when the producer cannot continue.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from ottla.errors.codes import ErrorCode, error_name
from ottla.records.builder import build_produce_batch
from ottla.sim.checkers.checker import Batch, Commit, Handed, Place, Transaction
from ottla.sim.clients.client import BACKOFF_S_MAX, LinkError, Stage
from ottla.sim.clients.group_client import GROUP, TRANSACTION, UNAVAILABLE, GroupClient
from ottla.sim.coordination import AppPlan
from ottla.wire.base import Message
from ottla.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

FENCED = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)
RETRIED = (
    *UNAVAILABLE,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.LEADER_NOT_AVAILABLE,
)
VANISH_CHANCE = 0.2
PRODUCE_VERSIONS = {1: 11, 2: 12}
TXN_OFFSET_COMMIT_VERSIONS = {1: 4, 2: 5}
END_VERSIONS = {1: 4, 2: 5}


class Fenced(Exception):
    """Another instance has the transactional id, or the transaction took too long."""


class Vanished(Exception):
    """The process is gone; another instance starts."""


class MustAbort(Exception):
    """The transaction can only be aborted."""


class Transactor(GroupClient):
    """One instance of a program with a transactional id."""

    def __init__(self, stage: Stage, name: str, app: AppPlan, version: int) -> None:
        super().__init__(stage, name, f"{app.name}-group")
        self.transactional_id = app.name
        self._newest_version = self._version = version
        self._timeout_ms = app.timeout_ms
        self._fenced_by = (*FENCED, ErrorCode.INVALID_PRODUCER_ID_MAPPING) if app.may_change_producer else FENCED
        self._producer = (-1, -1)
        self._numbers: defaultdict[Place, int] = defaultdict(int)
        self._sequences: defaultdict[Place, int] = defaultdict(int)

    def begin(self) -> None:
        """Choose the version of the next transaction: the newest that cluster and program both know."""
        self._version = max(1, min(self._newest_version, self.stage.transaction_version))

    async def initialise(self) -> None:
        """Initialise the transactional id, which fences other instances."""
        await self.find_coordinator(TRANSACTION, self.transactional_id)
        await self.find_coordinator(GROUP, self.group)
        request = InitProducerIdRequest(transactional_id=self.transactional_id, transaction_timeout_ms=self._timeout_ms)
        answer, sent_s = await self._do("InitProducerId", request, 4, _one_code)
        self._hand(answer, sent_s)

    def _hand(self, answer: Any, sent_s: float) -> None:
        self._producer = (answer.producer_id, answer.producer_epoch)
        self._sequences.clear()
        self.note("producer id", f"{answer.producer_id} epoch {answer.producer_epoch}")
        handed = Handed(self.transactional_id, *self._producer, sent_s, self.stage.now_s())
        self.stage.checkers.producer_handed(handed)

    async def write(self, transaction: Transaction, values: dict[Place, list[bytes]]) -> None:
        """Write `values` in the transaction."""
        if self._version == 1:
            await self._add_partitions(list(values))
        batches = {place: self._make(transaction, place, made) for place, made in values.items()}

        def message() -> ProduceRequest:
            # A copy each time: the stream may keep the bytes until they are sent.
            topics: dict[str, TopicProduceData] = {}
            for place, (_, data) in batches.items():
                topic = topics.setdefault(place.topic.name, TopicProduceData(name=place.topic.name))
                topic.partition_data.append(PartitionProduceData(index=place.number, records=bytearray(data)))
            return ProduceRequest(
                transactional_id=self.transactional_id, acks=-1, timeout_ms=2_000, topic_data=list(topics.values())
            )

        def settle(answer: Any) -> int:
            """The worst error code. Acknowledged batches are not sent again."""
            worst = 0
            for topic in answer.responses:
                for part in topic.partition_responses:
                    place = next(place for place in batches if (place.topic.name, place.number) == (topic.name, part.index))
                    batch = batches[place][0]
                    self.note("answer", f"{place}:{batch.number} {error_name(part.error_code)} at {part.base_offset}")
                    if part.error_code == ErrorCode.NONE:
                        del batches[place]
                        self.stage.checkers.acknowledged(batch, part.base_offset)
                    else:
                        worst = part.error_code if worst in (0, *RETRIED) else worst
            return worst

        _, sent_s = await self._do("Produce", message, PRODUCE_VERSIONS[self._version], settle)
        self.stage.checkers.producer_obeyed(self.transactional_id, *self._producer, sent_s)

    def _make(self, transaction: Transaction, place: Place, values: list[bytes]) -> tuple[Batch, bytes]:
        batch = Batch(self.name, place, self._numbers[place], values, [None] * len(values), True, -1)
        self._numbers[place] += 1
        data = build_produce_batch(
            [(self.stage.now_ms(), None, value, ()) for value in values],
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            base_sequence=self._sequences[place],
            transactional=True,
        )
        self._sequences[place] += len(values)
        self.note("send", f"{place}:{batch.number} of {transaction.name}")
        self.stage.checkers.sent(batch)
        self.stage.checkers.transaction_wrote(transaction, batch)
        return batch, bytes(data)

    async def _add_partitions(self, places: list[Place]) -> None:
        topics: dict[str, AddPartitionsToTxnTopic] = {}
        for topic, index in places:
            topics.setdefault(topic.name, AddPartitionsToTxnTopic(name=topic.name)).partitions.append(index)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self._producer[0],
            v3_and_below_producer_epoch=self._producer[1],
            v3_and_below_topics=list(topics.values()),
        )

        def code(answer: Any) -> int:
            results = [part for topic in answer.results_by_topic_v3_and_below for part in topic.results_by_partition]
            return _worst([part.partition_error_code for part in results])

        await self._do("AddPartitionsToTxn", request, 3, code)

    async def commit_offsets(self, offsets: dict[Place, int]) -> None:
        """Add offset commits to the transaction."""
        producer_id, epoch = self._producer
        if self._version == 1:
            request: Message = AddOffsetsToTxnRequest(
                transactional_id=self.transactional_id, producer_id=producer_id, producer_epoch=epoch, group_id=self.group
            )
            await self._do("AddOffsetsToTxn", request, 3, _one_code)
        topics: dict[str, TxnOffsetCommitRequestTopic] = {}
        for (topic, index), offset in offsets.items():
            wanted = topics.setdefault(topic.name, TxnOffsetCommitRequestTopic(name=topic.name))
            wanted.partitions.append(TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=offset))
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=self.group,
            producer_id=producer_id,
            producer_epoch=epoch,
            topics=list(topics.values()),
        )

        def code(answer: Any) -> int:
            return _worst([part.error_code for topic in answer.topics for part in topic.partitions])

        _, sent_s = await self._do("TxnOffsetCommit", request, TXN_OFFSET_COMMIT_VERSIONS[self._version], code)
        self.stage.checkers.producer_obeyed(self.transactional_id, producer_id, epoch, sent_s)

    async def end(self, transaction: Transaction, offsets: dict[Place, int], is_commit: bool) -> None:
        """Commit or abort the transaction."""
        producer_id, epoch = self._producer
        request = EndTxnRequest(
            transactional_id=self.transactional_id, producer_id=producer_id, producer_epoch=epoch, committed=is_commit
        )
        commit = Commit(self.group, "transaction", self.name, None, epoch, offsets, self.stage.now_s())
        self.note("end", f"{transaction.name} {'commit' if is_commit else 'abort'}")
        if is_commit:
            self.stage.checkers.commit_requested(transaction)
            self.stage.checkers.commit_sent(commit)
        answer, sent_s = await self._do("EndTxn", request, END_VERSIONS[self._version], _one_code)
        self.note("ended", transaction.name)
        if is_commit:
            self.stage.checkers.commit_answered(transaction)
            self.stage.checkers.commit_acknowledged(commit, list(offsets), self.stage.now_s())
            self.stage.checkers.producer_obeyed(self.transactional_id, producer_id, epoch, sent_s)
        if self._version > 1:
            self._hand(answer, sent_s)

    async def _do(
        self, what: str, request: Message | Callable[[], Message], version: int, code_of: Callable[[Any], int]
    ) -> tuple[Any, float]:
        """Send the request, with retries. Returns the answer, and when the answered request was sent."""
        begun_s = self.stage.now_s()
        while True:
            self.check_patience(what, begun_s)
            try:
                link, sent_s = await self.link(), self.stage.now_s()
                answer = await link.request(request if isinstance(request, Message) else request(), version=version)
            except LinkError as error:
                self.note("cut off", type(error).__name__)
                if self.random.random() < VANISH_CHANCE:
                    raise Vanished from error
                await self.pause(BACKOFF_S_MAX)
                continue
            code = code_of(answer)
            if code == ErrorCode.NONE:
                return answer, sent_s
            has_timed_out = code == ErrorCode.INVALID_TXN_STATE and what == "EndTxn" and self._version > 1
            if code in self._fenced_by or has_timed_out:
                # A commit after the coordinator has aborted a timed-out transaction gets INVALID_TXN_STATE.
                self.note("fenced", f"{what} {error_name(code)}")
                raise Fenced
            if code == ErrorCode.TRANSACTION_ABORTABLE:
                self.note("must abort", what)
                raise MustAbort
            self.explain(what, code, *RETRIED)
            if code not in RETRIED:
                raise Vanished
            await self.pause(BACKOFF_S_MAX)


def _one_code(answer: Any) -> int:
    code: int = answer.error_code
    return code


def _worst(codes: list[int]) -> int:
    """The error code that decides: a permanent error before a retriable one."""
    return next((code for code in codes if code and code not in RETRIED), next((code for code in codes if code), 0))
