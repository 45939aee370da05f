"""Transactional producers of any client library, controlled step by step; and what consumers read of their records.

    with Producers(java) as producers:
        one = producers.open("confluent", bootstrap, "payments")
        one.init()
        one.begin()
        one.send("t", 0, "value")
        one.commit()
    read("t", bootstrap, committed=True)

Libraries by name: `java` (tests/support/java/TransactionalProducers.java), `confluent`, `kafka-python` and `aiokafka`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import TracebackType
from typing import Protocol

from tests.support.peers.raw_client import RawClient
from tests.support.peers.topics import await_true

from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

TIMEOUT_MS = 60_000
UPGRADE, SAFE_DOWNGRADE = 1, 2
LIBRARIES = ("confluent", "java", "kafka-python", "aiokafka")


class TransactionFailed(Exception):
    """A step failed; `fenced` if another producer has taken the transactional id, or the coordinator has timed this one out."""

    def __init__(self, text: str, fenced: bool) -> None:
        super().__init__(text)
        self.fenced = fenced


class TransactionalProducer(Protocol):
    """One producer. Every step returns when it is done, or raises `TransactionFailed`."""

    def init(self) -> None: ...

    def begin(self) -> None: ...

    def send(self, topic: str, partition: int, value: str) -> None:
        """Returns when the record is acknowledged."""
        ...

    def send_offset(self, group: str, topic: str, partition: int, offset: int) -> None: ...

    def commit(self) -> None: ...

    def abort(self) -> None: ...

    def close(self) -> None: ...

    def abandon(self) -> None:
        """End without ending an open transaction."""
        ...


Open = Callable[[str, str, int, Mapping[str, str]], TransactionalProducer]
"""(bootstrap, transactional id, transaction timeout in ms, more settings)"""

_CLASSES = {
    "confluent": "ConfluentTransactions",
    "kafka-python": "KafkaPythonTransactions",
    "aiokafka": "AioKafkaTransactions",
}


class Producers:
    """The producers of a test; those still open are abandoned at its end."""

    def __init__(self, java: Callable[[], Open]) -> None:
        self._java = java
        self._open: list[TransactionalProducer] = []

    def open(
        self,
        library: str,
        bootstrap: str,
        transactional_id: str,
        timeout_ms: int = TIMEOUT_MS,
        more: Mapping[str, str] | None = None,
    ) -> TransactionalProducer:
        """A new producer; it has not contacted the coordinator yet."""
        if library == "java":
            opened = self._java()(bootstrap, transactional_id, timeout_ms, more or {})
        else:
            module = import_module("tests.support.peers.transactions_python")
            opened = getattr(module, _CLASSES[library])(bootstrap, transactional_id, timeout_ms, more or {})
        self._open.append(opened)
        return opened

    def __enter__(self) -> Producers:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for producer in self._open:
            try:
                producer.abandon()
            except TransactionFailed:
                pass


def set_transaction_version(bootstrap: str, level: int) -> None:
    """Set the feature transaction.version: 1, or 2 (KIP-890)."""
    update = FeatureUpdateKey(
        feature="transaction.version", max_version_level=level, upgrade_type=SAFE_DOWNGRADE if level < 2 else 1
    )
    with RawClient.to(bootstrap) as client:
        answer = client.request(UpdateFeaturesRequest(timeout_ms=10_000, feature_updates=[update]), 1)
    assert answer.error_code == 0, answer
    assert not any(result.error_code for result in answer.results), answer


def ends(bootstrap: str, topic: str, partitions: int, committed: bool) -> list[int]:
    """The last stable offset (`committed`) or the high watermark of each partition."""
    asked = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(partitions)]
    request = ListOffsetsRequest(
        replica_id=-1, isolation_level=int(committed), topics=[ListOffsetsTopic(name=topic, partitions=asked)]
    )
    found: list[int] = []

    def all_led() -> bool:
        with RawClient.to(bootstrap) as client:
            (answer,) = client.request(request, 7).topics
        parts = sorted(answer.partitions, key=lambda part: int(part.partition_index))
        found[:] = [part.offset for part in parts]
        return not any(part.error_code for part in parts)

    await_true(all_led, f"leaders of {topic}")  # a server that has just started may not lead yet
    return found


def await_all_decided(bootstrap: str, topic: str, partitions: int) -> None:
    """Return when no transaction is open in the topic."""
    await_true(
        lambda: ends(bootstrap, topic, partitions, True) == ends(bootstrap, topic, partitions, False),
        f"all transactions in {topic} to end",
    )


def read(bootstrap: str, topic: str, partitions: int, committed: bool) -> list[str]:
    """The values that a consumer reads now, partition after partition."""
    return [value for values in read_partitions(bootstrap, topic, partitions, committed) for value in values]


def read_partitions(bootstrap: str, topic: str, partitions: int, committed: bool) -> list[list[str]]:
    """The values that a consumer reads now of each partition, up to the end for its isolation level."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

    # Markers have offsets but no value, so the end is an offset and not a count.
    left = {index: end for index, end in enumerate(ends(bootstrap, topic, partitions, committed)) if end}
    found: dict[int, list[str]] = {index: [] for index in range(partitions)}
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in left])
    while left:
        message = consumer.poll(20)
        assert message is not None, f"{topic}: the ends {left} were not reached in 20 s"
        error = message.error()
        if error is None:
            found[message.partition()].append(message.value().decode())
        elif error.code() == KafkaError._PARTITION_EOF and message.offset() >= left.get(message.partition(), 0):
            left.pop(message.partition(), None)
    consumer.close()
    return list(found.values())


def committed_offset(bootstrap: str, group: str, topic: str, partition: int) -> int | None:
    """The committed offset of a group, once no open transaction may change it."""
    from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    asked = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, partition)])
    found = admin.list_consumer_group_offsets([asked], require_stable=True, request_timeout=30)[group].result()
    (part,) = found.topic_partitions
    return None if part.offset < 0 else part.offset
