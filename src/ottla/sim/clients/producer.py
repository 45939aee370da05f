"""A producer, plain or idempotent, with several requests in flight. It resends batches after a lost connection or answer.

It works in rounds. A round sends unanswered batches, oldest first, then new ones, up to `in_flight_max`; waits for all answers;
and keeps unacknowledged batches for the next round. So no batch overtakes an earlier one of the same partition, as with Kafka's
own producer.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

from ottla.errors.codes import ErrorCode, error_name, error_of
from ottla.ids import Uuid
from ottla.records.builder import build_produce_batch
from ottla.records.compression import Codec
from ottla.sim.checkers.checker import Batch, Place
from ottla.sim.clients.client import BACKOFF_S_MAX, Client, LinkError, Stage
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

OUT_OF_STEP = (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_EPOCH)
GONE = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
TOPIC_IDS_FROM = 13
VALUE_BYTES_MAX = 400
KEYS = [b"key%d" % number for number in range(5)]
"""Keys of records in compacted topics."""


@dataclass(frozen=True, slots=True)
class ProducerPlan:
    """How one producer behaves."""

    is_idempotent: bool
    acks: int
    in_flight_max: int
    pause_s_max: float
    version: int


@dataclass(eq=False)
class _Sent:
    """An unacknowledged batch with its bytes: a retry sends the same bytes."""

    batch: Batch
    data: bytes


class Producer(Client):
    """Writes to `places` until the run is ending and all is answered."""

    def __init__(self, stage: Stage, name: str, plan: ProducerPlan, places: list[Place]) -> None:
        super().__init__(stage, name)
        self.plan = plan
        self.acknowledged = 0
        self._places = list(places)
        self._waiting: dict[Place, deque[_Sent]] = {place: deque() for place in places}
        self._numbers: dict[Place, int] = dict.fromkeys(places, 0)
        self._sequences: dict[Place, int] = dict.fromkeys(places, 0)
        self._producer: tuple[int, int] | None = None

    def add_places(self, places: list[Place]) -> None:
        """Write to these partitions, too."""
        for place in places:
            self._places.append(place)
            self._waiting[place] = deque()
            self._numbers[place] = self._sequences[place] = 0

    async def run(self) -> None:
        while self._places and not (self.stage.is_ending and not any(self._waiting.values())):
            try:
                if self.plan.is_idempotent and self._producer is None:
                    await self._begin()
                else:
                    await self._round()
            except LinkError as error:
                self.note("cut off", type(error).__name__)
                await self.pause(BACKOFF_S_MAX)

    async def _begin(self) -> None:
        """Get a new producer id, and drop the unanswered batches of the old one."""
        answer = await self.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000))
        if answer.error_code:
            self.note("no id", error_name(answer.error_code))
            await self.pause(BACKOFF_S_MAX)
            return
        self.stage.checkers.producer_id_given(answer.producer_id, answer.producer_epoch)
        self.note("producer id", str(answer.producer_id))
        self._producer = (answer.producer_id, answer.producer_epoch)
        for place in self._places:
            self._waiting[place].clear()
            self._sequences[place] = 0

    # A round

    async def _round(self) -> None:
        link = await self.link()
        rounds = [self._fill() for _ in range(self.random.randint(1, self.plan.in_flight_max))]
        requests: list[list[_Sent]] = []
        positions = dict.fromkeys(self._places, 0)
        for wanted in rounds:
            request = [sent for place in wanted if (sent := self._next(place, positions)) is not None]
            if request:
                requests.append(request)
        if not requests:
            await self.pause(BACKOFF_S_MAX)
            return
        if self.plan.acks == 0:
            for request in requests:
                link.send_unanswered(self._message(request), version=self.plan.version)
            for place in self._places:
                self._waiting[place].clear()
        else:
            answers = [link.send(self._message(request), version=self.plan.version) for request in requests]
            failed: dict[Place, None] = {}
            for request, answer in zip(requests, answers, strict=True):
                try:
                    self._take(request, await answer, failed)
                except LinkError as error:
                    failed.update((sent.batch.place, None) for sent in request)
                    self.note("no answer", type(error).__name__)
            if failed:
                await self.pause(BACKOFF_S_MAX)
        await self.pause(self.plan.pause_s_max)

    def _fill(self) -> list[Place]:
        """The partitions of one request."""
        return self.random.sample(self._places, self.random.randint(1, min(3, len(self._places))))

    def _next(self, place: Place, positions: dict[Place, int]) -> _Sent | None:
        """The oldest batch of a partition that this round has not sent, or a new one."""
        waiting, at = self._waiting[place], positions[place]
        if at == len(waiting):
            if self.stage.is_ending or at >= self.plan.in_flight_max:
                return None
            waiting.append(self._make(place))
        positions[place] += 1
        sent = waiting[at]
        self.stage.checkers.sent(sent.batch)
        return sent

    def _make(self, place: Place) -> _Sent:
        number = self._numbers[place]
        self._numbers[place] += 1
        name = f"{self.name}/{place}/{place.topic.topic_id.hex()[:6]}/{number}"
        values = [
            f"{name}.{index}/".encode().ljust(self.random.randint(0, VALUE_BYTES_MAX), b".")
            for index in range(self.random.randint(1, 4))
        ]
        keys = [self.random.choice(KEYS) if place.topic.is_compacted else None for _ in values]
        now_ms = self.stage.now_ms()
        producer_id, epoch = self._producer or (-1, -1)
        data = build_produce_batch(
            [(now_ms, key, value, ()) for key, value in zip(keys, values, strict=True)],
            codec=self.random.choice((Codec.NONE, Codec.NONE, Codec.LZ4, Codec.GZIP)),
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=self._sequences[place] if self.plan.is_idempotent else -1,
        )
        self._sequences[place] += len(values)
        return _Sent(Batch(self.name, place, number, values, keys, self.plan.is_idempotent, self.plan.acks), bytes(data))

    def _message(self, request: list[_Sent]) -> ProduceRequest:
        topics: dict[Uuid, TopicProduceData] = {}
        for sent in request:
            place = sent.batch.place
            topic = topics.setdefault(place.topic.topic_id, TopicProduceData())
            if self.plan.version >= TOPIC_IDS_FROM:
                topic.topic_id = place.topic.topic_id
            else:
                topic.name = place.topic.name
            # A copy: the stream may keep the bytes until they are sent.
            topic.partition_data.append(PartitionProduceData(index=place.number, records=bytearray(sent.data)))
        self.note("send", " ".join(f"{sent.batch.place}:{sent.batch.number}" for sent in request))
        return ProduceRequest(acks=self.plan.acks, timeout_ms=2_000, topic_data=list(topics.values()))

    # Answers

    def _take(self, request: list[_Sent], answer: Any, failed: dict[Place, None]) -> None:
        results = {
            (topic.name, topic.topic_id, part.index): part for topic in answer.responses for part in topic.partition_responses
        }
        by_id = self.plan.version >= TOPIC_IDS_FROM
        for sent in request:
            topic, index = sent.batch.place
            key = ("", topic.topic_id, index) if by_id else (topic.name, bytes(16), index)
            self._settle(sent, results[key], failed)

    def _settle(self, sent: _Sent, result: Any, failed: dict[Place, None]) -> None:
        batch, code = sent.batch, result.error_code
        place = batch.place
        self.note("answer", f"{place}:{batch.number} {error_name(code)} at {result.base_offset}")
        if place not in self._waiting or not self._waiting[place] or self._waiting[place][0] is not sent:
            failed[place] = None  # an earlier batch has failed and must be resent first
            return
        if code == ErrorCode.NONE:
            self._waiting[place].popleft()
            self.acknowledged += len(batch.values)
            if not place.topic.is_leaving:
                self.stage.checkers.acknowledged(batch, result.base_offset)
        elif code in GONE:
            self._leave(place)
        elif code in OUT_OF_STEP and self.plan.is_idempotent:
            if not place.topic.is_leaving:
                self.stage.checkers.out_of_step(batch, code)
            self._producer = None
        else:
            failed[place] = None
            error = error_of(code)
            assert error is not None
            assert error.retriable, f"{place}: a producer got {error_name(code)}, which nothing explains"

    def _leave(self, place: Place) -> None:
        self._places = [each for each in self._places if each != place]
        self._waiting.pop(place)
