"""Members of groups from the Python libraries, each in its own thread: confluent-kafka, kafka-python, aiokafka."""

import asyncio
import re
import threading
from collections.abc import Iterable
from typing import Any

from tests.support.peers.group_members import HEARTBEAT_MS, Member, MemberOptions, Taken

POLL_S = 0.05
KAFKA_PYTHON_POLL_S = 2
"""A poll of kafka-python that ends during a join may lose that join, and the member then sends nothing more."""
TOPIC_REFRESH_MS = 1000
CONFLUENT_STRATEGIES = {"eager": "range", "cooperative": "cooperative-sticky"}


class ThreadMember(Member):
    """A member whose client is used by one thread, `run`."""

    def __init__(self, name: str, bootstrap: str, options: MemberOptions) -> None:
        super().__init__(name)
        self.bootstrap = bootstrap
        self.options = options
        self.is_over = False
        threading.Thread(target=self._guarded, name=name, daemon=True).start()

    def begin_close(self) -> None:
        self.is_over = True

    def _guarded(self) -> None:
        try:
            self.run()
        except Exception as failure:
            self.fail(f"{type(failure).__name__}: {failure}")
        else:
            self.ended.set()

    def run(self) -> None:
        raise NotImplementedError

    def note_partitions(self, what: str, partitions: Iterable[Any]) -> None:
        self.note(what, [(each.topic, each.partition) for each in partitions])


class ConfluentMember(ThreadMember):
    """confluent-kafka: classic and, with librdkafka 2.10 or newer, the new protocol."""

    def run(self) -> None:
        from confluent_kafka import Consumer, KafkaException

        consumer = Consumer(self._settings())
        topics = [f"^{self.options.pattern}"] if self.options.pattern else list(self.options.topics)
        consumer.subscribe(
            topics,
            on_assign=lambda _, partitions: self.note_partitions("assigned", partitions),
            on_revoke=lambda _, partitions: self.note_partitions("revoked", partitions),
            on_lost=lambda _, partitions: self.note_partitions("lost", partitions),
        )
        while not self.is_over:
            message = consumer.poll(POLL_S)
            if message is None:
                continue
            error = message.error()
            if error is not None:
                if error.fatal():
                    raise KafkaException(error)
                continue  # transient: the library retries by itself
            where = (message.topic(), message.partition())
            self.records.append(Taken(where, message.offset(), message.value().decode()))
        consumer.close()

    def _settings(self) -> dict[str, Any]:
        options = self.options
        chosen: dict[str, Any] = {
            "bootstrap.servers": self.bootstrap,
            "group.id": options.group,
            "auto.offset.reset": "earliest",
            "topic.metadata.refresh.interval.ms": TOPIC_REFRESH_MS,
            "reconnect.backoff.max.ms": 200,
            "log_level": 0,
        }
        if options.protocol == "consumer":
            chosen["group.protocol"] = "consumer"
        else:
            chosen["partition.assignment.strategy"] = CONFLUENT_STRATEGIES[options.protocol]
            chosen["session.timeout.ms"] = options.session_ms
            chosen["heartbeat.interval.ms"] = HEARTBEAT_MS
        if options.instance_id:
            chosen["group.instance.id"] = options.instance_id
        return chosen | options.more


class KafkaPythonMember(ThreadMember):
    """kafka-python: classic."""

    def run(self) -> None:
        from kafka import ConsumerRebalanceListener, KafkaConsumer
        from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
        from kafka.coordinator.assignors.range import RangePartitionAssignor

        member = self

        class Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # the library is not typed
            def on_partitions_assigned(self, assigned: Any) -> None:
                member.note_partitions("assigned", assigned)

            def on_partitions_revoked(self, revoked: Any) -> None:
                member.note_partitions("revoked", revoked)

            def on_partitions_lost(self, lost: Any) -> None:
                member.note_partitions("lost", lost)

        strategies = {"eager": RangePartitionAssignor, "cooperative": CooperativeStickyAssignor}
        consumer = KafkaConsumer(
            bootstrap_servers=self.bootstrap,
            group_id=self.options.group,
            group_instance_id=self.options.instance_id or None,
            auto_offset_reset="earliest",
            partition_assignment_strategy=[strategies[self.options.protocol]],
            session_timeout_ms=self.options.session_ms,
            heartbeat_interval_ms=HEARTBEAT_MS,
            metadata_max_age_ms=TOPIC_REFRESH_MS,
        )
        # It assigns the partitions it knows, and may hang if it learns of more right after.
        for topic in self.options.topics:
            consumer.partitions_for_topic(topic)
        if self.options.pattern:
            consumer.subscribe(pattern=self.options.pattern, listener=Listener())
        else:
            consumer.subscribe(list(self.options.topics), listener=Listener())
        while not self.is_over:
            for where, records in consumer.poll(timeout_ms=KAFKA_PYTHON_POLL_S * 1000).items():
                self.records += [Taken((where.topic, where.partition), each.offset, each.value.decode()) for each in records]
        consumer.close()


class AioKafkaMember(ThreadMember):
    """aiokafka: classic, eager."""

    def run(self) -> None:
        asyncio.run(self._consume())

    async def _consume(self) -> None:
        from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
        from aiokafka.coordinator.assignors.range import RangePartitionAssignor

        member = self

        class Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # the library is not typed
            def on_partitions_assigned(self, assigned: Any) -> None:
                member.note_partitions("assigned", assigned)

            def on_partitions_revoked(self, revoked: Any) -> None:
                member.note_partitions("revoked", revoked)

        assert self.options.protocol == "eager", "aiokafka knows no other"
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap,
            group_id=self.options.group,
            group_instance_id=self.options.instance_id or None,
            auto_offset_reset="earliest",
            partition_assignment_strategy=[RangePartitionAssignor],
            session_timeout_ms=self.options.session_ms,
            heartbeat_interval_ms=HEARTBEAT_MS,
            metadata_max_age_ms=TOPIC_REFRESH_MS,
        )
        if self.options.pattern:
            consumer.subscribe(pattern=re.compile(self.options.pattern).pattern, listener=Listener())
        else:
            consumer.subscribe(list(self.options.topics), listener=Listener())
        await consumer.start()
        try:
            while not self.is_over:
                for where, records in (await consumer.getmany(timeout_ms=int(POLL_S * 1000))).items():
                    rows = [Taken((where.topic, where.partition), each.offset, each.value.decode()) for each in records]
                    self.records += rows
        finally:
            await consumer.stop()
