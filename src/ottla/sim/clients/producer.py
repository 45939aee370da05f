"""A program with a producer, plain or idempotent: the asyncio producer that users run, in a simulated world.

Checkers get every record when it is handed to `send`, in that order, and every delivery with its offset. So what holds for the
node and for the client is checked at once: whatever answers were lost, no delivered record is lost or doubled, and the order of
an idempotent producer is the order of its calls.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import Any

from ottla.client.producer.asynchronous import Producer as RealProducer
from ottla.client_core.machine import Request
from ottla.client_core.producer.batch import RecordMetadata
from ottla.client_core.producer.idempotence import Idempotence
from ottla.errors import KafkaError, OutOfOrderSequenceError
from ottla.errors import TimeoutError as KafkaTimeoutError
from ottla.errors.codes import ErrorCode, error_name
from ottla.sim.checkers.checker import Batch, Place, Violation
from ottla.sim.clients.client import CLIENT_SETTINGS, Client, ClientObserver, Stage, value_text
from ottla.sim.histories.history import Send
from ottla.wire.messages.init_producer_id import InitProducerIdResponse
from ottla.wire.messages.produce import ProduceResponse

OUT_OF_STEP = (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_EPOCH)
VALUE_BYTES_MAX = 400
RECORDS_MAX = 3
BATCH_BYTES = 1_000
KEYS = [b"key%d" % number for number in range(5)]
"""Keys of records in compacted topics."""
DELIVERY_TIMEOUT_MS = 120_000
"""Longer than all lives of a node together."""


@dataclass(frozen=True, slots=True)
class ProducerPlan:
    """How one producer behaves."""

    is_idempotent: bool
    acks: int
    in_flight_max: int
    pause_s_max: float
    linger_ms: int = 0
    compression: str = "none"


class Producer(Client):
    """Writes to `places` until the run is ending and all is delivered."""

    def __init__(self, stage: Stage, name: str, plan: ProducerPlan, places: list[Place]) -> None:
        super().__init__(stage, name)
        self.plan = plan
        self.acknowledged = 0
        self._places = list(places)
        self._numbers: dict[Place, int] = dict.fromkeys(places, 0)
        self._open: dict[Batch, Send] = {}
        """Batches whose delivery is unknown, as the history has them."""

    def add_places(self, places: list[Place]) -> None:
        """Write to these partitions, too."""
        for place in places:
            self._places.append(place)
            self._numbers[place] = 0

    def place(self, topic: str, number: int) -> Place | None:
        """The partition with this name, unless its topic is being deleted or was."""
        found = (place for place in self._places if (place.topic.name, place.number) == (topic, number))
        return next((place for place in found if not place.topic.is_leaving), None)

    async def run(self) -> None:
        producer: RealProducer[bytes, bytes] = RealProducer(
            self.stage.bootstrap_servers,
            world=self.world(),
            client_id=self.name,
            acks=self.plan.acks,
            enable_idempotence=self.plan.is_idempotent,
            max_in_flight_requests_per_connection=self.plan.in_flight_max,
            linger_ms=self.plan.linger_ms,
            compression_type=self.plan.compression,
            batch_size=BATCH_BYTES,
            delivery_timeout_ms=DELIVERY_TIMEOUT_MS,
            max_block_ms=2_000,
            **CLIENT_SETTINGS,
        )
        await producer.start()
        core = producer._start()
        core.runner.observer = _ProducerObserver(self, core.idempotence)
        while self._places and not self.stage.is_ending:
            for _ in range(self.random.randint(1, RECORDS_MAX)):
                await self._send(producer, self.random.choice(self._places))
            await self.pause(self.plan.pause_s_max)
        # Records of deleted topics wait until their delivery times out; they may stay undelivered.
        while any(not batch.place.topic.is_leaving for batch in self._open):
            await self.pause(0.1)
        await producer.close(0)

    async def _send(self, producer: RealProducer[bytes, bytes], place: Place) -> None:
        if place.topic.is_leaving:
            self._places.remove(place)
            return
        batch = self._make(place)
        self.stage.checkers.sent(batch)
        text, is_repeatable = value_text(batch.values[0]), not self.plan.is_idempotent
        send = self._open[batch] = self.stage.history.send(self.name, place.name, text, is_repeatable=is_repeatable)
        try:
            delivery = await producer.send(
                place.topic.name,
                batch.values[0],
                batch.keys[0],
                partition=place.number,
                timestamp=self.stage.now_ms(),
                on_delivery=partial(self._delivered, batch),
            )
            if batch.number % 3 == 2:
                delivery.batch.want()  # as a caller does who begins to wait; the outcome comes by the callback
        except (KafkaTimeoutError, ValueError) as error:
            # The topic's metadata did not come in time, or a deleted topic has come back with fewer partitions.
            del self._open[batch]
            send.failed()
            self.note("not sent", f"{place}:{batch.number} {type(error).__name__}")
            if isinstance(error, ValueError) and not place.topic.is_leaving:
                raise

    def _make(self, place: Place) -> Batch:
        number = self._numbers[place]
        self._numbers[place] += 1
        text = f"{self.name}/{place}/{place.topic.topic_id.hex()[:6]}/{number}/"
        value = text.encode().ljust(self.random.randint(0, VALUE_BYTES_MAX), b".")
        key = self.random.choice(KEYS) if place.topic.is_compacted else None
        return Batch(self.name, place, number, [value], [key], self.plan.is_idempotent, self.plan.acks)

    def _delivered(self, batch: Batch, metadata: RecordMetadata | None, error: KafkaError | None) -> None:
        # In a turn of its own: the producer logs what a callback raises, the loop reports it.
        asyncio.get_running_loop().call_soon(self._settle, batch, metadata, error)

    def _settle(self, batch: Batch, metadata: RecordMetadata | None, error: KafkaError | None) -> None:
        place = batch.place
        send = self._open.pop(batch, None)
        if metadata is None:
            self.note("failed", f"{place}:{batch.number} {type(error).__name__}")
            # Overtaken batches fail (`idempotence.py`). Whether the node may refuse them is for `in_step` to judge.
            if not place.topic.is_leaving and not isinstance(error, OutOfOrderSequenceError):
                raise Violation(f"{self.name} could not deliver record {batch.number} to {place}: {error}")
            return
        self.note("delivered", f"{place}:{batch.number} at {metadata.offset}")
        self.acknowledged += 1
        if not place.topic.is_leaving and metadata.offset >= 0:
            if send is not None:
                send.stored(metadata.offset)
            self.stage.checkers.acknowledged(batch, metadata.offset)


class _ProducerObserver(ClientObserver):
    """Reports producer ids, and refused sequences of the oldest batch of a partition."""

    def __init__(self, client: Producer, idempotence: Idempotence | None) -> None:
        super().__init__(client)
        self._producer = client
        self._idempotence = idempotence

    def on_answer(self, request: Request, message: Any, response: Any, sent_s: float) -> None:
        if isinstance(response, InitProducerIdResponse):
            if not response.error_code:
                self.client.note("producer id", str(response.producer_id))
                self.stage.checkers.producer_id_given(response.producer_id, response.producer_epoch)
        elif isinstance(response, ProduceResponse):
            for topic in response.responses:
                name = request.context.names.get(topic.topic_id, topic.name)
                for part in topic.partition_responses:
                    if part.error_code:
                        self._refused(request, (name, part.index), part.error_code)

    def _refused(self, request: Request, key: tuple[str, int], code: int) -> None:
        self.client.note("refused", f"{key[0]}-{key[1]} {error_name(code)}")
        place = self._producer.place(*key)
        if self._idempotence is None or code not in OUT_OF_STEP or place is None:
            return
        in_flight = self._idempotence.partitions[key].in_flight
        if in_flight and in_flight[0] is request.context.batches.get(key):
            oldest = Batch(self.client.name, place, in_flight[0].base_sequence, [], [], True, -1)
            self.stage.checkers.out_of_step(oldest, code)
