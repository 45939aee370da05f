"""A program with a consumer in assign mode: the asyncio consumer that users run, in a simulated world.

Checkers get the records that `poll` returns, and the offsets of the partitions from the answers to its fetches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ottla.client.consumer.asynchronous import Consumer as RealConsumer
from ottla.client.consumer.core import ConsumerCore
from ottla.client.consumer.record import ConsumerRecord
from ottla.client_core.machine import Request
from ottla.errors import CorruptBatchError
from ottla.errors.codes import error_name
from ottla.ids import TopicPartition, Uuid
from ottla.sim.checkers.checker import Place, SeenRecord, Watermarks
from ottla.sim.clients.client import BACKOFF_S_MAX, CLIENT_SETTINGS, Client, ClientObserver, Stage, value_text
from ottla.sim.histories.history import Seen, Transaction
from ottla.wire.messages.fetch import FetchResponse
from ottla.wire.messages.list_offsets import ListOffsetsResponse
from ottla.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochResponse

PARTITION_BYTES_MAX = 4_000


@dataclass(frozen=True, slots=True)
class ConsumerPlan:
    """How one consumer behaves."""

    is_committed: bool
    max_wait_ms: int
    pause_s_max: float
    reset: str = "earliest"


class Consumer(Client):
    """Reads `places` until the run is ending."""

    def __init__(self, stage: Stage, name: str, plan: ConsumerPlan, places: list[Place]) -> None:
        super().__init__(stage, name)
        self.plan = plan
        self.read = 0
        self._places = {TopicPartition(place.topic.name, place.number): place for place in places}
        self._core: ConsumerCore | None = None
        self.next_offsets: dict[TopicPartition, int] = {}
        """Where the next record of a partition is expected; nothing after its position was reset."""
        self._is_rewound = False

    async def run(self) -> None:
        consumer = open_consumer(
            self,
            isolation_level="read_committed" if self.plan.is_committed else "read_uncommitted",
            fetch_max_wait_ms=self.plan.max_wait_ms,
            auto_offset_reset=self.plan.reset,
        )
        consumer.assign(list(self._places))
        for partition in self._places:
            consumer.seek(partition, 0)
        self.position_lost()
        self._core = consumer._core
        self._core.parts.runner.observer = _ConsumerObserver(self, list(self._places.values()))
        while not self.stage.is_ending:
            if self._is_rewound:
                self._is_rewound = False
                for partition in self._places:
                    consumer.seek(partition, 0)
                self.position_lost()
            try:
                self._report(await consumer.poll(0.5, self.random.randint(1, 50)))
            except CorruptBatchError as damaged:
                self.note("damaged", f"{damaged.topic}-{damaged.partition} at {damaged.offset}")
                if not self.stage.has_rot:
                    raise
                consumer.seek(TopicPartition(damaged.topic, damaged.partition), damaged.offset)
                await self.pause(BACKOFF_S_MAX)
            await self.pause(self.plan.pause_s_max)
        await consumer.close()

    def rewind(self) -> None:
        """Read everything again, from the next poll on."""
        self.note("rewind")
        self._is_rewound = True

    def hang_up(self) -> None:
        """Take what was fetched: it may not be there any more when the connections are back."""
        super().hang_up()
        while self._core is not None and (records := self._core.reader.take(1 << 30)):
            self._report(records)
        self.position_lost()

    def position_lost(self) -> None:
        """The next record of a partition may be any."""
        self.next_offsets.clear()
        self.stage.history.assigned(self.name, self._places)

    def _report(self, records: Sequence[ConsumerRecord[Any, Any]]) -> None:
        self.read += len(records)
        for record in records:
            partition = TopicPartition(record.topic, record.partition)
            start = self.next_offsets.get(partition, record.offset)
            if start < record.offset:
                is_committed = self.plan.is_committed
                self.stage.checkers.passed_over(self.name, self._places[partition], start, record.offset, is_committed)
            self.next_offsets[partition] = record.offset + 1
        report_seen(self, records, self._places, self.plan.is_committed)


def open_consumer(client: Client, **settings: Any) -> RealConsumer[bytes, bytes]:
    """A consumer in a process of its own."""
    return RealConsumer(
        client.stage.bootstrap_servers,
        world=client.world(),
        client_id=client.name,
        max_partition_fetch_bytes=PARTITION_BYTES_MAX,
        **(CLIENT_SETTINGS | settings),
    )


def report_seen(
    client: Client,
    records: Sequence[ConsumerRecord[Any, Any]],
    places: dict[TopicPartition, Place],
    is_committed: bool,
    group: str | None = None,
    transaction: Transaction | None = None,
) -> dict[Place, list[SeenRecord]]:
    """Tell checkers and history of records that a consumer has handed out. Returns them by partition.

    `transaction`: the one that they are dealt with in.
    """
    if records:
        seen_in_order = [
            Seen(TopicPartition(each.topic, each.partition), each.offset, value_text(each.value)) for each in records
        ]
        client.stage.history.polled(client.name, seen_in_order, group=group, is_committed=is_committed, transaction=transaction)
    by_partition: dict[TopicPartition, list[SeenRecord]] = {}
    for record in records:
        seen = SeenRecord(record.offset, record.value or b"", record.key)
        by_partition.setdefault(TopicPartition(record.topic, record.partition), []).append(seen)
    for partition, found in by_partition.items():
        place, first, last = places[partition], found[0].offset, found[-1].offset
        client.note("read", f"{place} {first}-{last}")
        client.stage.checkers.seen(place, found)
        if is_committed:
            client.stage.checkers.seen_committed(place, first, last + 1, found)
    return {places[partition]: found for partition, found in by_partition.items()}


class FetchObserver(ClientObserver):
    """Reports the offsets of partitions that fetches are answered with."""

    def __init__(self, client: Client, places: list[Place]) -> None:
        super().__init__(client)
        self._fetched: dict[tuple[Uuid, int], Place] = {(place.topic.topic_id, place.number): place for place in places}

    def on_answer(self, request: Request, message: Any, response: Any, sent_s: float) -> None:
        if not isinstance(response, FetchResponse):
            return
        for topic in response.responses:
            for part in topic.partitions:
                place = self._fetched.get((topic.topic_id, part.partition_index))
                if part.error_code:
                    self.client.note("refused", f"{place} {error_name(part.error_code)}")
                elif place is not None:
                    marks = Watermarks(part.log_start_offset, part.last_stable_offset, part.high_watermark)
                    # The next leader may have heard of a lower high watermark, in Kafka too: those of one node are compared.
                    self.stage.checkers.watermarks_answered(f"{self.client.connection} to {request.node}", place, marks)


class _ConsumerObserver(FetchObserver):
    """Also notices when positions are reset: what is skipped then is not missed."""

    def __init__(self, client: Consumer, places: list[Place]) -> None:
        super().__init__(client, places)
        self._consumer = client

    def on_answer(self, request: Request, message: Any, response: Any, sent_s: float) -> None:
        super().on_answer(request, message, response, sent_s)
        if isinstance(response, ListOffsetsResponse | OffsetForLeaderEpochResponse):
            self._consumer.position_lost()
