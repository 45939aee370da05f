"""`BatchOutcomes`: what becomes of a batch: stored, sent again, split, failed or expired, and why.

Part of the sender (`sender.py`), which hands in each batch's answer or failure. Retries go back to the accumulator. Batches
that are done wait in `finished` for the owner, which calls their callbacks.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.client_core.backoff import Backoff
from ottla.client_core.connecting import Connecting
from ottla.client_core.metadata import Metadata, Node
from ottla.client_core.metrics.producer import ProducerMetrics
from ottla.client_core.metrics.registry import MetricsRegistry
from ottla.client_core.producer.accumulator import Accumulator
from ottla.client_core.producer.batch import ProducerBatch
from ottla.client_core.producer.collaborators import Gate, SenderSettings
from ottla.client_core.producer.idempotence import Idempotence
from ottla.errors import KafkaError, OutOfOrderSequenceError, TimeoutError, exception_of
from ottla.errors.codes import ErrorCode, error_meaning
from ottla.errors.texts import counted
from ottla.wire.messages.produce import PartitionProduceResponse

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
