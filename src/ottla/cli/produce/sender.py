"""Batches to the leaders of their partitions: in order, again after failures that pass, until all are stored.

Of each partition one batch is on its way at a time, and of each broker one request; so order is kept whatever fails, and the
next batches are gathered meanwhile. A batch that is sent again carries the same sequence numbers, by which the broker knows it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from ottla.cli.common.cluster import Cluster, NoBroker, refusal, topic_refusal
from ottla.cli.produce.batches import Batch, Encoder, PartitionQueue
from ottla.cli.produce.options import ProduceOptions
from ottla.errors import KafkaError, OttlaError
from ottla.errors.codes import ErrorCode, error_of
from ottla.errors.texts import counted
from ottla.ids import ZERO_UUID
from ottla.link import LinkError, backoff_ms
from ottla.records.kernels import Row
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

REQUEST_BYTES_MAX = 8 * 1024 * 1024
TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)


class SendFailed(OttlaError):
    """Records could not be stored."""


@dataclass(slots=True)
class Stored:
    """What one partition has acknowledged."""

    records: int = 0
    first_offset: int = -1
    last_offset: int = -1


class Sender:
    """Everything between the rows of a topic and its brokers."""

    def __init__(self, cluster: Cluster, options: ProduceOptions, encoder: Encoder) -> None:
        self._cluster = cluster
        self._options = options
        self._encoder = encoder
        self._loop = asyncio.get_running_loop()
        self._topic_id = ZERO_UUID
        self._leaders: dict[int, int] = {}
        self._queues: dict[int, PartitionQueue] = {}
        self._busy: dict[int, asyncio.Task[None]] = {}
        self._needs_refresh = False
        self._changed = asyncio.Event()
        self._failure: Exception | None = None
        self.pending_bytes = 0
        self.stored: dict[int, Stored] = {}
        self.stored_bytes = 0

    @property
    def partitions(self) -> list[int]:
        """The partitions there are."""
        return sorted(self._queues)

    @property
    def available(self) -> list[int]:
        """Those that have a leader; all of them while none has."""
        return [each for each in self.partitions if self._leaders.get(each, -1) >= 0] or self.partitions

    @property
    def stored_records(self) -> int:
        return sum(each.records for each in self.stored.values())

    async def find_topic(self) -> None:
        """Wait until the topic is there with a leader; brokers make it if they are set so."""
        deadline_s = self._loop.time() + self._options.max_block_ms / 1000
        failures = 0
        while (refused := await self._look_for_topic()) is not None:
            failures += 1
            known = error_of(refused.code)
            if known is None or not known.retriable or not await self._cluster.wait(failures, deadline_s):
                raise refused

    async def _look_for_topic(self) -> KafkaError | None:
        topic = (await self._cluster.metadata([self._options.topic], auto_create=True)).topics[0]
        code = topic.error_code
        if not code and not any(each.leader_id >= 0 for each in topic.partitions):
            code = ErrorCode.LEADER_NOT_AVAILABLE
        if code:
            return topic_refusal(code, self._options.topic)
        self._topic_id = topic.topic_id
        self._leaders = {each.partition_index: each.leader_id for each in topic.partitions}
        for each in sorted(self._leaders):
            self._queues.setdefault(each, PartitionQueue(each))
        return None

    def add(self, partition: int, rows: Sequence[Row], size_bytes: int) -> bool:
        """Rows for a partition, in order; True if they completed a batch."""
        self.pending_bytes += size_bytes
        is_full = self._queues[partition].add(rows, size_bytes, self._options.batch_bytes)
        if is_full:
            self._send_what_can_go()
        return is_full

    def let_go(self) -> None:
        """Batches need not grow any further: send all there is."""
        for queue in self._queues.values():
            queue.complete()
        self._send_what_can_go()

    async def wait_below(self, limit_bytes: int) -> None:
        """Wait until no more than so much is on its way or waiting; `SendFailed` if it cannot be sent."""
        while self._failure is None and self.pending_bytes > limit_bytes:
            self.let_go()  # what only waits to grow must not be waited for
            self._changed.clear()
            await self._changed.wait()
        if self._failure is not None:
            await asyncio.gather(*self._busy.values(), return_exceptions=True)
            raise self._failure

    async def close(self) -> None:
        """Give up whatever is still on its way."""
        for task in self._busy.values():
            task.cancel()
        await asyncio.gather(*self._busy.values(), return_exceptions=True)

    # Inside

    def _send_what_can_go(self) -> None:
        if self._failure is not None:
            return
        if self._needs_refresh:
            self._start(-1, self._refresh())
            return
        now_s = self._loop.time()
        by_leader: dict[int, list[PartitionQueue]] = {}
        for queue in self._queues.values():
            if not queue.has_batch or queue.in_flight is not None:
                continue
            if queue.rest_until_s > now_s:
                continue  # a timer comes back to it
            leader = self._leaders.get(queue.partition, -1)
            if leader < 0:
                self._needs_refresh = True
            elif leader not in self._busy:
                by_leader.setdefault(leader, []).append(queue)
        for leader, queues in by_leader.items():
            self._start(leader, self._send(leader, queues))
        if self._needs_refresh:
            self._start(-1, self._refresh())

    def _start(self, key: int, work: object) -> None:
        assert asyncio.iscoroutine(work)
        if key in self._busy:
            work.close()
            return
        task = self._loop.create_task(work)
        self._busy[key] = task
        task.add_done_callback(lambda done: self._ended(key, done))

    def _ended(self, key: int, task: asyncio.Task[None]) -> None:
        del self._busy[key]
        if not task.cancelled():
            failure = task.exception()
            if isinstance(failure, Exception) and self._failure is None:
                self._failure = failure
        self._changed.set()
        self._send_what_can_go()

    async def _refresh(self) -> None:
        """Find the leaders again, with patience: a broker that starts anew is back in a moment."""
        deadline_s = self._loop.time() + self._options.delivery_timeout_ms / 1000
        failures = 0
        while True:
            failures += 1
            try:
                await self.find_topic()
            except NoBroker:
                if not await self._cluster.wait(failures, deadline_s):
                    raise
            else:
                self._needs_refresh = False
                return

    async def _send(self, leader: int, queues: list[PartitionQueue]) -> None:
        batches: list[tuple[PartitionQueue, Batch]] = []
        data: list[PartitionProduceData] = []
        size_bytes = 0
        for queue in queues:
            if size_bytes >= REQUEST_BYTES_MAX:
                break
            batch = queue.take()
            if not batch.deadline_s:
                batch.deadline_s = self._loop.time() + self._options.delivery_timeout_ms / 1000
            records = self._encoder.encode(queue, batch)
            size_bytes += len(records)
            data.append(PartitionProduceData(index=queue.partition, records=records))
            batches.append((queue, batch))
        topic = TopicProduceData(name=self._options.topic, topic_id=self._topic_id, partition_data=data)
        timeout_ms = self._cluster.settings.request_timeout_ms
        request = ProduceRequest(acks=self._options.acks, timeout_ms=timeout_ms, topic_data=[topic])
        try:
            link = await self._cluster.link_to(leader)
            if self._options.acks == 0:
                link.send_unanswered(request)
                # The next answer on this connection tells that the broker has dealt with what came before it.
                await link.request(MetadataRequest(topics=[]))
                response = None
            else:
                response = await link.request(request)
        except LinkError as error:
            for queue, batch in batches:
                self._try_again(queue, batch, error)
            return
        self._take_answer(batches, response)

    def _take_answer(self, batches: list[tuple[PartitionQueue, Batch]], response: ProduceResponse | None) -> None:
        if response is None:
            answers: dict[int, PartitionProduceResponse] = {
                queue.partition: PartitionProduceResponse(base_offset=-1) for queue, _ in batches
            }
        else:
            answers = {each.index: each for topic in response.responses for each in topic.partition_responses}
        for queue, batch in batches:
            answer = answers.get(queue.partition)
            if answer is None:
                raise SendFailed(f"the broker's answer leaves out partition {self._name(queue)}: it may not be Kafka's equal")
            if answer.error_code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                self._done(queue, batch, answer.base_offset)
            elif answer.error_code in TOO_LARGE and len(batch.rows) > 1:
                queue.put_back(*batch.halves())
            else:
                error = refusal(answer.error_code, self._about(queue, batch), _broker_text(answer))
                known = error_of(answer.error_code)
                if known is None or not known.retriable:
                    raise error
                self._try_again(queue, batch, error)

    def _done(self, queue: PartitionQueue, batch: Batch, base_offset: int) -> None:
        queue.in_flight = None
        stored = self.stored.setdefault(queue.partition, Stored())
        stored.records += len(batch.rows)
        if base_offset >= 0:
            stored.first_offset = base_offset if stored.first_offset < 0 else stored.first_offset
            stored.last_offset = base_offset + len(batch.rows) - 1
        self.stored_bytes += batch.size_bytes
        self.pending_bytes -= batch.size_bytes

    def _try_again(self, queue: PartitionQueue, batch: Batch, error: LinkError | KafkaError) -> None:
        batch.failures += 1
        now_s = self._loop.time()
        settings = self._cluster.settings
        wait_s = backoff_ms(batch.failures, settings.retry_backoff_ms, settings.retry_backoff_max_ms) / 1000
        is_hopeless = isinstance(error, LinkError) and not error.is_retriable
        if is_hopeless or batch.failures > self._options.retries or now_s + wait_s > batch.deadline_s:
            text = str(error) if isinstance(error, KafkaError) else f"{self._about(queue, batch)}: {error}"
            raise SendFailed(text)
        queue.put_back(batch)
        queue.rest_until_s = now_s + wait_s
        self._needs_refresh = True
        self._loop.call_later(wait_s, self._send_what_can_go)

    def _name(self, queue: PartitionQueue) -> str:
        return f"{self._options.topic}-{queue.partition}"

    def _about(self, queue: PartitionQueue, batch: Batch) -> str:
        return f"{counted(len(batch.rows), 'record')} could not be stored in partition {self._name(queue)}"


def _broker_text(answer: PartitionProduceResponse) -> str | None:
    """What the broker said, each thing once: records often have the same flaw, and the whole batch may have been told of it."""
    said = answer.error_message or ""
    for each in answer.record_errors[:3]:
        if each.batch_index_error_message and each.batch_index_error_message not in said:
            said = f"{said} {each.batch_index_error_message}".lstrip()
    return said or None
