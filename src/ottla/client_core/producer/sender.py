"""`Sender`: turns batches into Produce requests, and says what becomes of the batches.

A machine (`machine.py`). Each step takes what is due, per leader: one batch of each partition per request, up to
max.request.size, and up to max.in.flight.requests.per.connection requests per node. Order is kept in one of two ways: with
idempotence by sequence numbers (`idempotence.py`); without, by max.in.flight.requests.per.connection=1, which keeps a partition
out of further requests while one of its batches is in flight.

Batches leave the accumulator only for nodes whose connection is open. A node without one is connected to in the background
(`Connect`). Until then its batches take more records, and follow their partition if its leader moves.

A node that has not answered since its connection was lost gets one request at a time: if the connection is lost again while
several are handed to it, a later one must not arrive first.

Version notes (Produce): v13: topic ids; v12: adds partitions to a transaction of version 2; v10: leader hints (KIP-951).
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.client_core.machine import Connect, Request
from ottla.client_core.metadata import Metadata, Node
from ottla.client_core.metrics.producer import ProducerMetrics
from ottla.client_core.metrics.registry import MetricsRegistry
from ottla.client_core.pending_connections import Connecting
from ottla.client_core.producer.accumulator import NEVER_MS, Accumulator, Key, PartitionQueue
from ottla.client_core.producer.batch import ProducerBatch
from ottla.client_core.producer.collaborators import Gate, SenderSettings
from ottla.client_core.producer.idempotence import Idempotence
from ottla.env.backoff import Backoff
from ottla.errors import KafkaError, OutOfOrderSequenceError, TimeoutError, TransactionAbortedError, exception_of
from ottla.errors.codes import ErrorCode, error_meaning
from ottla.errors.texts import counted
from ottla.ids import ZERO_UUID, Uuid
from ottla.records.compression import Codec
from ottla.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

# `BatchOutcomes`: what becomes of a batch: stored, sent again, split, failed or expired, and why.
#
# The sender hands in each batch's answer or failure. Retries go back to the accumulator. Batches that are done wait in
# `finished` for the owner, which calls their callbacks.

_TOO_LARGE = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})

_MAY_BE_APPENDED = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)
"""What a leader may answer after it has appended the batch, while it waits for its followers."""

_REFUSED: dict[int, str] = {
    ErrorCode.NOT_ENOUGH_REPLICAS: "were refused, and none is stored",
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: "are stored on too few replicas and may be lost",
}
"""What an answer means for the records, where that is worth saying."""


class BatchOutcomes:
    """Ends the batches of an accumulator, or has them sent again."""

    def __init__(
        self,
        settings: SenderSettings,
        accumulator: Accumulator,
        metadata: Metadata,
        connecting: Connecting,
        random_below: Callable[[int], int],
        idempotence: Idempotence | None,
    ) -> None:
        self.metrics = ProducerMetrics(MetricsRegistry("producer"))
        """What sending records; the owner sets its own."""
        self.finished: list[ProducerBatch] = []
        """Batches that are done and whose callbacks are to be called; the owner takes them."""
        self.gate: Gate | None = None
        """The transaction, where there is one; the owner sets it."""
        self.step_ms = 0
        """When the sender stepped last."""
        self._settings = settings
        self._accumulator = accumulator
        self._metadata = metadata
        self._connecting = connecting
        self._random_below = random_below
        self._idempotence = idempotence

    # Answers

    def answered(self, batch: ProducerBatch, answer: PartitionProduceResponse, nodes: list[Node], now_ms: int) -> None:
        if answer.error_code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            is_stored_now = answer.error_code == ErrorCode.NONE
            self.complete(batch, answer.base_offset if is_stored_now else -1, answer.log_append_time_ms, now_ms)
            return
        said = answer.error_message or error_meaning(answer.error_code)
        how = _REFUSED.get(answer.error_code, "were refused")
        error = exception_of(answer.error_code, f"records for {batch.topic}-{batch.partition} {how}: {said}")
        error.record_errors = tuple((each.batch_index, each.batch_index_error_message or said) for each in answer.record_errors)
        leader = answer.current_leader
        topic = self._metadata.topic(batch.topic)
        # The epochs of a topic that was made again start over: a late hint about the former one would outlast all later news.
        if leader is not None and leader.leader_id >= 0 and topic is not None and topic.id == batch.topic_id:
            self._metadata.learn_leader(*batch.key, leader.leader_id, leader.leader_epoch, nodes)
        if answer.error_code in _TOO_LARGE and batch.count > 1:
            self._split(batch)
            self.metrics.batch_split(now_ms)
            return
        batch.is_uncertain = batch.is_uncertain or answer.error_code in _MAY_BE_APPENDED
        known = batch.attempts
        self.failed(batch, error, answer.log_start_offset, now_ms)
        if error.is_retriable and batch.attempts > known:
            self._metadata.refresh(f"{batch.topic}-{batch.partition}: {error}")

    def _split(self, batch: ProducerBatch) -> None:
        self._accumulator.split(batch)
        if self._idempotence is not None:
            self._idempotence.replace(batch, [part for _, part in batch.parts])

    def complete(self, batch: ProducerBatch, base_offset: int, append_time_ms: int, now_ms: int) -> None:
        if batch.is_done:
            return
        if self._idempotence is not None:
            self._idempotence.acked(batch, base_offset)
        batch.complete(base_offset, append_time_ms)
        self.finished.extend(self._accumulator.finish(batch))

    def failed(self, batch: ProducerBatch, error: KafkaError, log_start_offset: int, now_ms: int) -> None:
        """An attempt has failed: try again, or fail the batch for good."""
        if batch.is_done:
            queue = self._accumulator.queues[batch.key]
            if batch in queue.in_flight:
                queue.in_flight.remove(batch)
            return
        has_attempts = batch.attempts < self._settings.retries
        has_time = now_ms < batch.created_ms + self._settings.delivery_timeout_ms
        is_doomed = self.gate is not None and self.gate.is_fatal
        if has_attempts and has_time and not is_doomed and self._is_worth_retrying(batch, error, log_start_offset):
            batch.attempts += 1
            batch.retried_error = error
            backoff = Backoff(self._settings.retry_backoff_ms, self._settings.retry_backoff_max_ms, self._random_below)
            backoff.failures = batch.attempts - 1
            batch.retry_at_ms = now_ms + backoff.failed()
            self.metrics.batch_retried(batch.topic, batch.count, now_ms)
            self._accumulator.put_back(batch)
            return
        if (
            isinstance(error, OutOfOrderSequenceError)
            and self._idempotence is not None
            and self._idempotence.is_overtaken(batch)
        ):
            error = exception_of(
                error.code,
                f"records for {batch.topic}-{batch.partition} may be stored or not: the broker has later records of this "
                "producer, and nothing that tells whether it has these. They are not sent again, because they would be stored "
                "behind the later ones. Look for them in the topic, or accept the other order and send them again",
            )
        self._give_up(batch, error, is_known_unstored=not batch.is_uncertain and not error.is_retriable)

    def _is_worth_retrying(self, batch: ProducerBatch, error: KafkaError, log_start_offset: int) -> bool:
        if self._idempotence is not None:
            return self._idempotence.is_worth_retrying(batch, error, log_start_offset)
        return error.is_retriable

    def _give_up(self, batch: ProducerBatch, error: KafkaError, *, is_known_unstored: bool) -> None:
        if self._idempotence is not None and batch.has_sequence:
            if is_known_unstored:
                self._idempotence.failed(batch, error, is_known_unstored=True)
            else:
                self._idempotence.expired(batch)
        if self.gate is not None:
            self.gate.batch_failed(error)
        self.metrics.batch_failed(batch.topic, batch.count, self.step_ms)
        batch.fail(error)
        self.finished.extend(self._accumulator.finish(batch))

    def fail_unsent_to(self, node: int, error: KafkaError) -> None:
        """Fail what waits for a connection that will not be opened, as when the login is refused."""
        for batch in self._accumulator.unsent():
            if self._metadata.is_led_by(node, *batch.key):
                self._accumulator.drop(batch)
                self._give_up(batch, error, is_known_unstored=not batch.is_uncertain)

    def expire(self, now_ms: int) -> None:
        """Fail batches that are older than delivery.timeout.ms."""
        limit_ms = self._settings.delivery_timeout_ms
        while (batch := self._accumulator.oldest) is not None:
            if now_ms < batch.created_ms + limit_ms:
                return
            for each in batch.unfinished() or [batch]:  # a part that was split is done when its own parts are
                self._accumulator.drop(each)
                self._give_up(each, self._timed_out(each, now_ms), is_known_unstored=False)

    def _timed_out(self, batch: ProducerBatch, now_ms: int) -> KafkaError:
        waited = f"{batch.topic}-{batch.partition}: {now_ms - batch.created_ms} ms have passed since the batch was opened"
        return TimeoutError(f"{waited} (delivery.timeout.ms); {self.why_not_stored(batch)}. {self._fate(batch)}")

    def _fate(self, batch: ProducerBatch) -> str:
        """Whether the records of a batch that has expired can be stored, and what to do."""
        if batch.is_uncertain or batch in self._accumulator.queues[batch.key].in_flight:
            return "The records may be stored or not: look for them in the topic before you send them again"
        why = "every attempt was refused" if batch.attempts else "they were not sent"
        return f"None of the records is stored, because {why}: mend the cause, and send them again"

    def why_not_stored(self, batch: ProducerBatch) -> str:
        """What keeps a batch from being stored, as far as is known."""
        leader = self._metadata.leader(*batch.key)
        if leader is None:
            return str(self._metadata.topic_error(batch.topic) or self._metadata.failure or "its leader is not known").rstrip(
                "."
            )
        unreachable = self._connecting.failure(leader[0])
        if unreachable is not None:
            return f"node {leader[0]} is not connected: {str(unreachable).rstrip('.')}"
        if batch.attempts:
            return f"{counted(batch.attempts, 'attempt')} failed, the last one: {str(batch.retried_error).rstrip('.')}"
        return f"node {leader[0]} has not answered" if batch.sent_ms else f"it was not yet sent to node {leader[0]}"

    # For the owner

    def abort_unsent(self, error: KafkaError) -> None:
        """Fail the batches that are in no request, as when a transaction is aborted."""
        for batch in self._accumulator.unsent():
            self._accumulator.drop(batch)
            self._give_up(batch, error, is_known_unstored=not batch.has_sequence)

    def fail_all(self, error: KafkaError) -> None:
        """Fail everything that is not done, as when the producer is closed before it could send."""
        for batch in list(self._accumulator.incomplete):
            if not batch.is_done and not batch.parts:
                self._accumulator.drop(batch)
                self._give_up(batch, error, is_known_unstored=False)


_PRODUCE_VERSION_MAX_BEFORE_TV2 = 11
_CLIENT_WAITS_SINCE_VERSION = 6
"""Brokers that answer in an older version have waited themselves."""
_REQUEST_OVERHEAD = 64
"""A bound for what a partition adds to a request beside its batch and its topic's name."""


class _Sent:
    """One Produce request in flight."""

    __slots__ = ("batches", "is_over", "names", "node", "sent_ms")

    def __init__(self, node: int, sent_ms: int) -> None:
        self.node = node
        self.sent_ms = sent_ms
        self.batches: dict[Key, ProducerBatch] = {}
        self.names: dict[Uuid, str] = {}
        """The topics by their ids: responses from version 13 on have no names."""
        self.is_over = False


class Sender:
    """Sends the batches of an accumulator."""

    def __init__(
        self,
        settings: SenderSettings,
        accumulator: Accumulator,
        metadata: Metadata,
        random_below: Callable[[int], int],
        idempotence: Idempotence | None = None,
        *,
        transactional_id: str | None = None,
        level: int | None = None,
    ) -> None:
        self.connecting = Connecting(metadata, settings.retry_backoff_max_ms)
        self.outcomes = BatchOutcomes(settings, accumulator, metadata, self.connecting, random_below, idempotence)
        self._settings = settings
        self._accumulator = accumulator
        self._metadata = metadata
        self._idempotence = idempotence
        self._transactional_id = transactional_id
        self._level = level
        self._codec = Codec[settings.compression_type.upper()]
        self._acks = settings.acks
        self._in_flight: dict[int, int] = {}
        self._trusted: set[int] = set()
        """Nodes that have answered since their connection was last lost."""
        self._throttled_until_ms: dict[int, int] = {}
        """Nodes whose quota is used up. Their batches stay here until then, and take more records (KIP-219)."""
        self.node_tried: Callable[[int, int, bool], None] | None = None
        """Called with (node, now_ms, whether it takes a request) for each node that has batches; the owner may set it."""
        self._turn = 0
        self._deadline_ms: int | None = None

    # Machine

    def step(self, now_ms: int) -> list[Request]:
        self.outcomes.step_ms = now_ms
        accumulator = self._accumulator
        accumulator.looked(NEVER_MS)
        self.outcomes.expire(now_ms)
        self.connecting.look(now_ms)
        if self.outcomes.gate is not None and self.outcomes.gate.is_spoiled:
            self.outcomes.abort_unsent(TransactionAbortedError())  # a flush must not wait for what is never sent
        oldest = accumulator.oldest
        expires_ms = NEVER_MS if oldest is None else oldest.created_ms + self._settings.delivery_timeout_ms
        self._wake_by(expires_ms)
        if self._idempotence is not None and not self._prepare(self._idempotence):
            return []
        due_ms = NEVER_MS
        by_node: dict[int, list[PartitionQueue]] = {}
        for queue in list(accumulator.busy.values()):
            if not queue.batches:
                continue
            # Records do not pass through the core once their topic is known: without this it would count as unused after
            # metadata.max.idle.ms, and the next leader would never be asked for.
            self._metadata.want((queue.key[0],), now_ms)
            if not self._is_allowed(queue):
                continue
            leader = self._metadata.leader(*queue.key)
            if leader is None:
                self._metadata.refresh(f"{queue.key[0]}-{queue.key[1]} has records to send and no known leader")
                continue
            held_ms = self._throttled_until_ms.get(leader[0], 0)
            at_ms = accumulator.due_ms(queue)
            if held_ms > now_ms:
                due_ms = min(due_ms, held_ms)
                continue
            if at_ms > now_ms and not self._has_new_leader(queue.batches[0], leader[1]):
                due_ms = min(due_ms, at_ms)
                continue
            by_node.setdefault(leader[0], []).append(queue)
        accumulator.loop_wakes_ms = due_ms
        # Also if this step began without a batch: a thread that has opened one since relies on `loop_wakes_ms`.
        self._wake_by(min(due_ms, expires_ms))
        requests: list[Request] = []
        for node, queues in by_node.items():
            if self.node_tried is not None:
                can_send = self.connecting.is_open(node) and self._in_flight.get(node, 0) < self._in_flight_max(node)
                self.node_tried(node, now_ms, can_send)
            if self.connecting.is_open(node):
                self._drain(node, queues, requests, now_ms)
            else:
                requests += self.connecting.connect(node, now_ms)
        return requests

    def answered(self, request: Request, response: ProduceResponse | None, version: int, now_ms: int) -> None:
        if isinstance(request, Connect):
            self.connecting.answered(request)
            return
        sent: _Sent = request.context
        self._over(sent, is_answered=True)
        if response is None:  # acks=0
            for batch in list(sent.batches.values()):
                self.outcomes.complete(batch, -1, -1, now_ms)
            return
        self.outcomes.metrics.request_answered(now_ms - sent.sent_ms, response.throttle_time_ms, now_ms)
        if response.throttle_time_ms > 0 and version >= _CLIENT_WAITS_SINCE_VERSION:
            self._throttled_until_ms[sent.node] = now_ms + response.throttle_time_ms
        nodes = [Node(each.node_id, each.host, each.port, each.rack) for each in response.node_endpoints]
        for topic in response.responses:
            name = sent.names.get(topic.topic_id, topic.name)
            for partition in topic.partition_responses:
                answered = sent.batches.pop((name, partition.index), None)
                if answered is not None and not answered.is_done:
                    self.outcomes.answered(answered, partition, nodes, now_ms)
        for batch in list(sent.batches.values()):
            self.outcomes.failed(
                batch, exception_of(-1, f"the broker's answer leaves out {batch.topic}-{batch.partition}"), -1, now_ms
            )

    def failed(self, request: Request, error: KafkaError, now_ms: int) -> None:
        if isinstance(request, Connect):
            self.connecting.failed(request, error)
            if not error.is_retriable:
                self.outcomes.fail_unsent_to(request.node, error)
            return
        sent: _Sent = request.context
        self._over(sent, is_answered=False)
        self._trusted.discard(sent.node)
        if error.is_retriable:
            self._metadata.refresh(f"a Produce request to node {sent.node} failed: {error}")
        for batch in list(sent.batches.values()):
            batch.is_uncertain = batch.is_uncertain or not error.is_unsent
            self.outcomes.failed(batch, error, -1, now_ms)

    def next_deadline_ms(self) -> int | None:
        return self.connecting.next_deadline_ms(self._deadline_ms)

    def _wake_by(self, at_ms: int) -> None:
        self._deadline_ms = None if at_ms == NEVER_MS else at_ms

    # Sending

    def _prepare(self, idempotence: Idempotence) -> bool:
        """Settle sequence numbers; False if nothing may be sent now."""
        if not idempotence.resolve() and self.outcomes.gate is not None:
            text = "records were sent and not acknowledged in time, so they may be stored or not: abort the transaction"
            self.outcomes.gate.batch_failed(TimeoutError(text))
        # Answers that are still to come decide what a new epoch must carry. Other partitions go on.
        is_answered = not any(self._accumulator.queues[key].in_flight for key in idempotence.bump_keys)
        if idempotence.is_bump_due and idempotence.is_bump_safe and is_answered:
            idempotence.bump()
        return idempotence.has_id and (self.outcomes.gate is None or not self.outcomes.gate.is_fatal)

    def _is_allowed(self, queue: PartitionQueue) -> bool:
        if self._settings.max_in_flight_requests_per_connection == 1 and queue.in_flight:
            return False
        if self._idempotence is not None:
            asked = self._idempotence.to_ask_about(queue.key)
            if asked is not None and asked in queue.batches:
                self._accumulator.bring_forward(queue, asked)
            if not self._idempotence.may_send(queue.batches[0], self._topic_id(queue.key[0])):
                return False
        return self.outcomes.gate is None or self.outcomes.gate.may_send(queue.key)

    def _topic_id(self, topic: str) -> Uuid:
        info = self._metadata.topic(topic)
        return ZERO_UUID if info is None else info.id

    def _has_new_leader(self, batch: ProducerBatch, epoch: int) -> bool:
        """A retry does not wait if the leader has changed since (KIP-951)."""
        return batch.attempts > 0 and epoch > batch.leader_epoch >= 0

    def _in_flight_max(self, node: int) -> int:
        return self._settings.max_in_flight_requests_per_connection if node in self._trusted else 1

    def _drain(self, node: int, queues: list[PartitionQueue], requests: list[Request], now_ms: int) -> None:
        limit = self._in_flight_max(node)
        self._turn += 1
        start = self._turn % len(queues)
        waiting = queues[start:] + queues[:start]
        while waiting and self._in_flight.get(node, 0) < limit:
            taken: list[ProducerBatch] = []
            size = 0
            for queue in waiting:
                batch = queue.batches[0]
                size += batch.end + len(queue.key[0]) + _REQUEST_OVERHEAD
                if taken and size > self._settings.max_request_size:
                    break
                taken.append(self._accumulator.take(queue))
                if self._idempotence is not None:
                    self._idempotence.assign(taken[-1])
            requests.append(self._request(node, taken, now_ms))
            self._in_flight[node] = self._in_flight.get(node, 0) + 1
            waiting = [queue for queue in waiting if queue.batches and self._is_allowed(queue) and self._is_due(queue, now_ms)]

    def _is_due(self, queue: PartitionQueue, now_ms: int) -> bool:
        return self._accumulator.due_ms(queue) <= now_ms

    def _request(self, node: int, batches: list[ProducerBatch], now_ms: int) -> Request:
        sent = _Sent(node, now_ms)
        topics: dict[str, TopicProduceData] = {}
        for batch in batches:
            if not batch.is_sealed:
                batch.seal(self._codec, self._level, self._transactional_id is not None)
            batch.write_producer()
            batch.sent_ms = now_ms
            leader = self._metadata.leader(*batch.key)
            batch.leader_epoch = -1 if leader is None else leader[1]
            topic = topics.get(batch.topic)
            if topic is None:
                topic_id = self._topic_id(batch.topic)
                topic = topics[batch.topic] = TopicProduceData(name=batch.topic, topic_id=topic_id)
                if topic_id != ZERO_UUID:
                    sent.names[topic_id] = batch.topic
            batch.topic_id = topic.topic_id
            topic.partition_data.append(PartitionProduceData(index=batch.partition, records=batch.payload))
            sent.batches[batch.key] = batch
            size = len(batch.payload)
            self.outcomes.metrics.batch_sent(
                batch.topic,
                batch.count,
                size,
                now_ms - batch.created_ms,
                now_ms,
                uncompressed_bytes=batch.end,
                record_bytes_max=batch.record_bytes_max,
            )
        self.outcomes.metrics.request_sent(sum(batch.count for batch in batches), now_ms)
        message = ProduceRequest(
            transactional_id=self._transactional_id,
            acks=self._acks,
            timeout_ms=self._settings.request_timeout_ms,
            topic_data=list(topics.values()),
        )
        is_tv1 = self._transactional_id is not None and self.outcomes.gate is not None and not self.outcomes.gate.is_implicit
        return Request(
            message,
            node,
            context=sent,
            is_answered=self._acks != 0,
            version_max=_PRODUCE_VERSION_MAX_BEFORE_TV2 if is_tv1 else None,
        )

    def _over(self, sent: _Sent, *, is_answered: bool) -> None:
        if not sent.is_over:
            sent.is_over = True
            self._in_flight[sent.node] -= 1
        if is_answered:
            self._trusted.add(sent.node)
