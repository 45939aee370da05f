"""Transactional producers of the Python libraries: confluent-kafka, kafka-python, aiokafka."""

from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.support.peers.transactions import TransactionFailed
from tests.support.servers.loop_thread import LoopThread

STEP_S = 60
INVALID_PRODUCER_EPOCH, PRODUCER_FENCED = 47, 90


class ConfluentTransactions:
    """confluent-kafka."""

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int, more: Mapping[str, str]) -> None:
        from confluent_kafka import Producer

        self._producer: Any = Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                "reconnect.backoff.max.ms": 200,
                "linger.ms": 0,
                "log_level": 0,
            }
            | dict(more)
        )

    def init(self) -> None:
        with _confluent_errors():
            self._producer.init_transactions(STEP_S)

    def begin(self) -> None:
        with _confluent_errors():
            self._producer.begin_transaction()

    def send(self, topic: str, partition: int, value: str) -> None:
        from confluent_kafka import KafkaException

        failed: list[Any] = []
        with _confluent_errors():
            self._producer.produce(
                topic, value.encode(), partition=partition, on_delivery=lambda error, _: failed.append(error)
            )
            self._producer.flush(STEP_S)
            if failed != [None]:
                raise KafkaException(failed[0])

    def send_offset(self, group: str, topic: str, partition: int, offset: int) -> None:
        from confluent_kafka import Consumer, TopicPartition

        metadata = Consumer({"group.id": group, "bootstrap.servers": ""}).consumer_group_metadata()
        with _confluent_errors():
            self._producer.send_offsets_to_transaction([TopicPartition(topic, partition, offset)], metadata, STEP_S)

    def commit(self) -> None:
        with _confluent_errors():
            self._producer.commit_transaction(STEP_S)

    def abort(self) -> None:
        with _confluent_errors():
            self._producer.abort_transaction(STEP_S)

    def close(self) -> None:
        self._producer.flush(STEP_S)
        self._producer = None

    def abandon(self) -> None:
        if self._producer is not None:
            self._producer.purge()
        self._producer = None


@contextmanager
def _confluent_errors() -> Iterator[None]:
    from confluent_kafka import KafkaError, KafkaException

    try:
        yield
    except KafkaException as failure:
        error = failure.args[0]
        fenced = error.code() in (INVALID_PRODUCER_EPOCH, PRODUCER_FENCED, KafkaError._FENCED)
        raise TransactionFailed(str(error), fenced) from None


class KafkaPythonTransactions:
    """kafka-python."""

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int, more: Mapping[str, str]) -> None:
        from kafka import KafkaProducer

        self._producer: Any = KafkaProducer(
            bootstrap_servers=bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            reconnect_backoff_max_ms=200,
            linger_ms=0,
        )

    def init(self) -> None:
        self._do(lambda: self._producer.init_transactions())

    def begin(self) -> None:
        self._do(lambda: self._producer.begin_transaction())

    def send(self, topic: str, partition: int, value: str) -> None:
        self._do(lambda: self._producer.send(topic, value.encode(), partition=partition).get(STEP_S))

    def send_offset(self, group: str, topic: str, partition: int, offset: int) -> None:
        from kafka import OffsetAndMetadata, TopicPartition

        offsets = {TopicPartition(topic, partition): OffsetAndMetadata(offset, "by a transaction", -1)}
        self._do(lambda: self._producer.send_offsets_to_transaction(offsets, group))

    def commit(self) -> None:
        self._do(lambda: self._producer.commit_transaction())

    def abort(self) -> None:
        self._do(lambda: self._producer.abort_transaction())

    def close(self) -> None:
        self._producer.close(STEP_S)

    def abandon(self) -> None:
        self._producer.close(0)

    def _do(self, step: Callable[[], object]) -> None:
        from kafka.errors import InvalidProducerEpochError, KafkaError, ProducerFencedError

        try:
            step()
        except KafkaError as failure:
            fenced = isinstance(failure, InvalidProducerEpochError | ProducerFencedError)
            raise TransactionFailed(f"{type(failure).__name__}: {failure}", fenced) from None


class AioKafkaTransactions:
    """aiokafka, on its own event loop."""

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int, more: Mapping[str, str]) -> None:
        self._loop = LoopThread()
        self._settings = {
            "bootstrap_servers": bootstrap,
            "transactional_id": transactional_id,
            "transaction_timeout_ms": timeout_ms,
        }
        self._producer: Any = None

    def init(self) -> None:
        async def start() -> None:
            from aiokafka import AIOKafkaProducer

            self._producer = AIOKafkaProducer(**self._settings)
            await self._producer.start()  # this library's start is also its init

        self._do(start())

    def begin(self) -> None:
        self._do(self._producer.begin_transaction())

    def send(self, topic: str, partition: int, value: str) -> None:
        self._do(self._producer.send_and_wait(topic, value.encode(), partition=partition))

    def send_offset(self, group: str, topic: str, partition: int, offset: int) -> None:
        from aiokafka import TopicPartition

        self._do(self._producer.send_offsets_to_transaction({TopicPartition(topic, partition): offset}, group))

    def commit(self) -> None:
        self._do(self._producer.commit_transaction())

    def abort(self) -> None:
        self._do(self._producer.abort_transaction())

    def close(self) -> None:
        if self._producer is not None:
            self._do(self._producer.stop())
        self._loop.stop()

    def abandon(self) -> None:
        """Cancel its tasks at once."""
        if not self._loop.loop.is_closed():  # else it was closed by the test
            self._loop.loop.call_soon_threadsafe(self._loop.loop.stop)

    def _do(self, step: Coroutine[Any, Any, object]) -> None:
        from aiokafka.errors import InvalidProducerEpoch, KafkaError, ProducerFenced

        try:
            self._loop.run(lambda: step, STEP_S)
        except KafkaError as failure:
            fenced = isinstance(failure, InvalidProducerEpoch | ProducerFenced)
            raise TransactionFailed(f"{type(failure).__name__}: {failure}", fenced) from None
