"""Reads topics for tests: all records now, or as soon as there are enough."""

from __future__ import annotations

import asyncio
from typing import Final

from ottla.errors import KafkaError, NetworkError, OffsetOutOfRangeError, UnreachableError
from ottla.errors.codes import ErrorCode
from ottla.testing.client import Client, Topic
from ottla.testing.errors import TimedOut
from ottla.testing.records import Record

_WAIT_MS: Final = 500
_LOOK_AGAIN_S: Final = 0.02
_NOT_THERE_YET: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID)
_SHOWN: Final = 5
_VALUE_SHOWN: Final = 60


class TopicReader:
    """Reads one topic from its beginning, and keeps its positions."""

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._waiting: Client | None = None
        self._name = name
        self._topic: Topic | None = None
        self._positions: dict[int, int] = {}
        self._ends: dict[int, int] = {}
        self.records: list[Record] = []

    @property
    def partitions(self) -> list[int]:
        return [] if self._topic is None else list(self._topic.leaders)

    def in_order(self) -> list[Record]:
        """The records read so far, sorted by partition and offset."""
        return sorted(self.records, key=lambda record: (record.partition, record.offset))

    async def look(self) -> None:
        """Find the topic, and the first offset of new partitions. A topic that was created again is read from its beginning."""
        topic = await self._client.find_topic(self._name)
        if self._topic is None or topic.id != self._topic.id:
            self._positions, self.records = {}, []
        self._topic = topic
        if len(self._positions) < len(topic.leaders):
            self._positions = await self._client.offsets(topic, "earliest") | self._positions

    async def read(self, wait_ms: int = 0) -> None:
        """Fetch once; waits up to `wait_ms` if there are no records."""
        assert self._topic is not None
        client = self._client_for(wait_ms)
        try:
            records, self._ends = await client.fetch(self._topic, self._positions, wait_ms)
            self.records += records
        except (NetworkError, UnreachableError):
            if client is self._client:
                raise
            client.close()
            self._waiting = self._client  # new connections may be refused by a fault: use the existing one
        except OffsetOutOfRangeError:
            self._topic = None  # records were deleted: start over

    def _client_for(self, wait_ms: int) -> Client:
        if not wait_ms:
            return self._client
        if self._waiting is None:
            self._waiting = self._client.beside()
        return self._waiting

    async def read_on(self, wait_ms: int) -> None:
        """Fetch once, and wait up to `wait_ms` if there were no records. Only the wait uses the second connection."""
        before = len(self.records)
        await self.read()
        if wait_ms and self._topic is not None and len(self.records) == before:
            await self.read(wait_ms)

    def close(self) -> None:
        if self._waiting is not None and self._waiting is not self._client:
            self._waiting.close()

    async def read_to_end(self) -> None:
        """Read up to the current end of every partition."""
        while True:
            await self.look()
            await self.read()
            ends = self._ends
            while self._topic is not None and any(self._positions[index] < end for index, end in ends.items()):
                await self.read()
            if self._topic is not None:
                return


async def read_now(client: Client, name: str) -> list[Record]:
    """All records of a topic, sorted by partition and offset."""
    reader = TopicReader(client, name)
    await reader.read_to_end()
    return reader.in_order()


async def await_records(client: Client, name: str, count: int, timeout_s: float) -> list[Record]:
    """All records of a topic as soon as there are `count` of them or more; `TimedOut` if that takes too long."""
    reader = TopicReader(client, name)
    try:
        return await _await_records(reader, name, count, timeout_s)
    finally:
        reader.close()


async def _await_records(reader: TopicReader, name: str, count: int, timeout_s: float) -> list[Record]:
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + timeout_s
    missing: KafkaError | None = None
    while True:
        left_s = deadline_s - loop.time()
        try:
            await reader.look()
            missing = None
            if len(reader.records) < count:
                await reader.read_on(max(0, min(_WAIT_MS, int(left_s * 1000))))
            if len(reader.records) >= count:
                await reader.read_to_end()
                return reader.in_order()
        except KafkaError as error:
            if error.code not in _NOT_THERE_YET:
                raise
            missing = error
        if left_s <= 0:
            raise TimedOut(_late(reader, name, count, timeout_s, missing))
        if missing is not None:
            await asyncio.sleep(min(_LOOK_AGAIN_S, left_s))  # polling: the protocol has no notification of new topics


def _late(reader: TopicReader, name: str, count: int, timeout_s: float, missing: KafkaError | None) -> str:
    awaited = f"{count} record{'s' * (count != 1)} of topic {name} did not come within {timeout_s:g} s"
    if missing is not None:
        return f"{awaited}: {missing}"
    records = reader.in_order()
    if not records:
        return f"{awaited}: it is empty (partitions: {len(reader.partitions)})"
    by_partition = {index: sum(record.partition == index for record in records) for index in reader.partitions}
    spread = ", ".join(f"{have} in partition {index}" for index, have in by_partition.items())
    last = "\n".join(f"  {_shown(record)}" for record in records[-_SHOWN:])
    return f"{awaited}: there are {len(records)} ({spread}), the last of them\n{last}"


def _shown(record: Record) -> str:
    value = repr(record.value)
    if len(value) > _VALUE_SHOWN:
        value = f"{value[:_VALUE_SHOWN]}… ({len(record.value or b'')} bytes)"
    return f"{record.topic}-{record.partition} at {record.offset}: key {record.key!r}, value {value}"
