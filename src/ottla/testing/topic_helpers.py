"""The helpers for topics and records that `Broker` and `Cluster` share, for tests with and without an event loop."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.testing.arguments import Text
from ottla.testing.engine import Helpers
from ottla.testing.records import Record

__tracebackhide__ = True  # for pytest: a test that fails shows the line that called us


class TopicHelpers:
    """What `Broker` and `Cluster` do with topics and records. A refusal of the broker is a `KafkaError`."""

    def __init__(self, engine: Helpers) -> None:
        self._engine = engine

    def delete_topic(self, name: str) -> None:
        """Delete a topic with its records; `KafkaError` if it does not exist."""
        self._engine.run(self._engine.delete_topic(name))

    def topics(self) -> dict[str, int]:
        """Name → number of partitions, sorted by name; without internal topics."""
        return self._engine.run(self._engine.topics())

    def produce(
        self,
        topic: str,
        value: Text,
        key: Text = None,
        *,
        partition: int | None = None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        timestamp: int | None = None,
    ) -> Record:
        """Append one record; returns it with its partition and offset. The key chooses the partition as in Kafka's clients."""
        return self._engine.run(self._engine.produce(topic, value, key, partition, headers, timestamp))

    def records(self, topic: str) -> list[Record]:
        """All records that the topic has now, sorted by partition and offset."""
        return self._engine.run(self._engine.records(topic))

    def await_records(self, topic: str, count: int = 1, timeout: float = 10.0) -> list[Record]:
        """All records, as soon as there are at least `count`; the topic need not exist yet.

        `TimedOut`, with what was there, if that takes longer than `timeout` seconds. It may return more than `count` records,
        so that a test can see a record too many.
        """
        return self._engine.run(self._engine.await_records(topic, count, timeout))

    def end_offsets(self, topic: str) -> dict[int, int]:
        """Partition → log end offset."""
        return self._engine.run(self._engine.end_offsets(topic))


class AsyncTopicHelpers:
    """`TopicHelpers` as coroutines. They work on any event loop: the engine has its own."""

    def __init__(self, engine: Helpers) -> None:
        self._engine = engine

    async def delete_topic(self, name: str) -> None:
        """Delete a topic with its records; `KafkaError` if it does not exist."""
        await self._engine.wait(self._engine.delete_topic(name))

    async def topics(self) -> dict[str, int]:
        """Name → number of partitions, sorted by name; without internal topics."""
        return await self._engine.wait(self._engine.topics())

    async def produce(
        self,
        topic: str,
        value: Text,
        key: Text = None,
        *,
        partition: int | None = None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        timestamp: int | None = None,
    ) -> Record:
        """Append one record; returns it with its partition and offset. The key chooses the partition as in Kafka's clients."""
        return await self._engine.wait(self._engine.produce(topic, value, key, partition, headers, timestamp))

    async def records(self, topic: str) -> list[Record]:
        """All records that the topic has now, sorted by partition and offset."""
        return await self._engine.wait(self._engine.records(topic))

    async def await_records(self, topic: str, count: int = 1, timeout: float = 10.0) -> list[Record]:
        """All records, as soon as there are at least `count`; `TimedOut` if that takes longer than `timeout` seconds."""
        return await self._engine.wait(self._engine.await_records(topic, count, timeout))

    async def end_offsets(self, topic: str) -> dict[int, int]:
        """Partition → log end offset."""
        return await self._engine.wait(self._engine.end_offsets(topic))
