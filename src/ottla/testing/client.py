"""The client of the helpers: sends their requests to the broker over the real protocol, on the loop of the helpers.

It has one connection, opened when first needed and again when it was lost. A request that waits uses a second one
(`Client.beside`). The broker is the only one of its cluster, so it leads all partitions and gets all requests.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ottla.env.real.net import RealNetwork
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode, error_meaning, error_name
from ottla.ids import Uuid
from ottla.link import Link, LinkError, LinkOptions
from ottla.testing.fault_rules import HELPER_CLIENT_ID
from ottla.testing.records import Record
from ottla.testing.settings import setting_text
from ottla.wire.base import Message

REQUEST_TIMEOUT_MS: Final = 30_000
FETCH_BYTES: Final = 16 * 1024 * 1024
_ATTEMPTS: Final = 3

Headers = Sequence[tuple[str, bytes | None]]


class Topic:
    """A topic: name, id and partitions."""

    __slots__ = ("id", "name", "partitions")

    def __init__(self, name: str, topic_id: Uuid, partitions: list[int]) -> None:
        self.name = name
        self.id = topic_id
        self.partitions = partitions


class Client:
    """The helpers' connection to one run of a broker."""

    def __init__(self, address: str) -> None:
        self._address = address
        host, _, port = address.rpartition(":")
        self._host, self._port = host.strip("[]"), int(port)
        self._network = RealNetwork()
        self._link: Link | None = None
        self._opening = asyncio.Lock()
        self._round_robin = 0

    async def connect(self) -> Link:
        async with self._opening:
            if self._link is None or self._link.is_over:
                options = LinkOptions(client_id=HELPER_CLIENT_ID, request_timeout_ms=REQUEST_TIMEOUT_MS)
                self._link = await Link.connect(self._network, self._host, self._port, options)
            return self._link

    def beside(self) -> Client:
        """A second client, not yet connected, for a request that waits: requests behind it on one connection would wait too."""
        return Client(self._address)

    def close(self) -> None:
        if self._link is not None:
            self._link.close()

    async def _ask(self, message: Message) -> Any:
        """The response to a request that may be sent twice: it is sent again if the connection was lost."""
        for attempt in range(1, _ATTEMPTS + 1):
            link = await self.connect()
            try:
                return await link.request(message)
            except LinkError as error:
                if attempt == _ATTEMPTS or not error.is_retriable:
                    raise
        raise AssertionError("unreachable: the last attempt returns or raises")

    # Topics

    async def create_topic(self, name: str, partitions: int, config: Mapping[str, object]) -> None:
        from ottla.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest

        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=-1)
        topic.configs = [CreatableTopicConfig(name=key, value=setting_text(value)) for key, value in config.items()]
        request = CreateTopicsRequest(topics=[topic], timeout_ms=REQUEST_TIMEOUT_MS)
        result = (await (await self.connect()).request(request)).topics[0]
        if result.error_code:
            raise _refusal(result.error_code, f"topic {name} was not created", result.error_message)

    async def delete_topic(self, name: str) -> None:
        from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=REQUEST_TIMEOUT_MS)
        result = (await (await self.connect()).request(request)).responses[0]
        if result.error_code:
            raise _refusal(result.error_code, f"topic {name} was not deleted", result.error_message)

    async def topics(self) -> dict[str, int]:
        """Name → number of partitions, sorted by name; without internal topics."""
        from ottla.wire.messages.metadata import MetadataRequest

        response = await self._ask(MetadataRequest(topics=None, allow_auto_topic_creation=False))
        found = {topic.name: len(topic.partitions) for topic in response.topics if not topic.is_internal}
        return dict(sorted(found.items()))

    async def find_topic(self, name: str, may_create: bool = False) -> Topic:
        """A topic; `KafkaError` if it does not exist and, with `may_create`, cannot be created either."""
        from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

        request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=may_create)
        found = (await self._ask(request)).topics[0]
        if found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            there = ", ".join(await self.topics()) or "none"
            raise KafkaError(found.error_code, f"topic {name} does not exist. Topics that do: {there}")
        if found.error_code:
            raise _refusal(found.error_code, f"topic {name}")
        return Topic(name, found.topic_id, sorted(each.partition_index for each in found.partitions))

    # Records

    async def produce(
        self,
        topic: Topic,
        partition: int | None,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        timestamp: int | None,
    ) -> Record:
        from ottla.records.builder import build_produce_batch
        from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

        index = self._partition(topic, key) if partition is None else partition
        timestamp = time.time_ns() // 1_000_000 if timestamp is None else timestamp
        batch = build_produce_batch([(timestamp, key, value, tuple(headers))])
        data = TopicProduceData(name=topic.name, topic_id=topic.id)
        data.partition_data = [PartitionProduceData(index=index, records=memoryview(batch))]
        request = ProduceRequest(acks=-1, timeout_ms=REQUEST_TIMEOUT_MS, topic_data=[data])
        # Sent once only: after a lost response a second request would append the record twice.
        response = await (await self.connect()).request(request)
        answer = response.responses[0].partition_responses[0]
        if answer.error_code:
            about = f"a record was not appended to {topic.name}-{index}"
            why = answer.error_message
            if answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                why = f"the topic has partitions {topic.partitions[0]} to {topic.partitions[-1]}"
            raise _refusal(answer.error_code, about, why)
        if answer.log_append_time_ms >= 0:
            timestamp = answer.log_append_time_ms
        return Record(topic.name, index, answer.base_offset, key, value, tuple(headers), timestamp)

    def _partition(self, topic: Topic, key: bytes | None) -> int:
        from ottla.records.partitioning import partition_of_key

        if key is not None:
            return partition_of_key(key, len(topic.partitions))
        self._round_robin += 1
        return (self._round_robin - 1) % len(topic.partitions)

    async def offsets(self, topic: Topic, place: int) -> dict[int, int]:
        """Partition → offset; `place` is -1 for the end, -2 for the beginning."""
        from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

        asked = [ListOffsetsPartition(partition_index=index, timestamp=place) for index in topic.partitions]
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic.name, partitions=asked)])
        found = {}
        for each in (await self._ask(request)).topics[0].partitions:
            if each.error_code:
                raise _refusal(each.error_code, f"{topic.name}-{each.partition_index}")
            found[each.partition_index] = each.offset
        return dict(sorted(found.items()))

    async def fetch(self, topic: Topic, positions: dict[int, int], wait_ms: int) -> list[Record]:
        """Records from `positions` on; advances `positions`. Waits at most `wait_ms` for the first record."""
        from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic

        asked = [
            FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=FETCH_BYTES)
            for index, offset in positions.items()
        ]
        request = FetchRequest(max_wait_ms=wait_ms, min_bytes=1, max_bytes=FETCH_BYTES, session_epoch=-1)
        request.topics = [FetchTopic(topic=topic.name, topic_id=topic.id, partitions=asked)]
        records: list[Record] = []
        for entry in (await self._ask(request)).responses:
            for data in entry.partitions:
                if data.error_code:
                    raise _refusal(data.error_code, f"{topic.name}-{data.partition_index} cannot be read")
                records += _take(topic.name, data, positions)
        return records


def _take(topic: str, data: Any, positions: dict[int, int]) -> list[Record]:
    """The records of a fetched partition, from its position on."""
    from ottla.records.batch import iterate_batches
    from ottla.records.reader import iterate_records

    index, fetched = data.partition_index, data.records or b""
    records: list[Record] = []
    for view in iterate_batches(fetched, allow_cut_end=True):
        if not view.is_control:
            records += [
                Record(topic, index, each.offset, each.key, each.value, each.headers, each.timestamp)
                for each in iterate_records(view)
                if each.offset >= positions[index]
            ]
        positions[index] = max(positions[index], view.base_offset + view.last_offset_delta + 1)
    return records


def _refusal(code: int, about: str, text: str | None = None) -> KafkaError:
    return KafkaError(code, f"{about}: {text or error_meaning(code)} ({error_name(code)})")
