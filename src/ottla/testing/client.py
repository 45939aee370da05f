"""The client of the helpers: the Admin's functions and single requests over one connection, on the loop of the helpers.

The connection is opened when first needed and again when it was lost. A request that waits uses a second one (`Client.beside`).
A broker that is gone is an error at once, not after a time limit: the helpers' callers wait.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from ottla.client.admin.configs import ConfigResource, ConfigResourceType, alter_configs
from ottla.client.admin.offsets import list_offsets
from ottla.client.admin.topic_descriptions import list_topics
from ottla.client.admin.topics import BROKER_DEFAULT, NewTopic, create_topics, delete_topics
from ottla.client.cluster import open_cluster, topic_error
from ottla.client.world import real_client_world
from ottla.config.client import admin_settings
from ottla.errors import NotLeaderOrFollowerError, UnknownTopicIdError, UnknownTopicOrPartitionError
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition, Uuid
from ottla.records.kernels import partition_of_key
from ottla.testing.fault_rules import HELPER_CLIENT_ID
from ottla.testing.records import Record
from ottla.testing.settings import setting_text

TIMEOUT_MS: Final = 30_000
CONNECT_TIMEOUT_MS: Final = 2_000
"""In a cluster. A paused node takes connections and says nothing: the next one is asked after this time, not after 10 s.

A broker that runs alone has no next one, and a busy machine can keep it from its first answer for longer than this.
"""
SHARED_WAIT_MS: Final = 50
"""How long a fetch from several leaders waits: the answers of all are awaited, also when the first has records."""

LATE_LEADER_ATTEMPTS: Final = 40
LATE_LEADER_PAUSE_S: Final = 0.05
"""A node that has just become a leader refuses records until it has applied that metadata; it has appended nothing then."""

Headers = Sequence[tuple[str, bytes | None]]


class Topic:
    """A topic: name, id, and the leader of each partition."""

    __slots__ = ("id", "leaders", "name")

    def __init__(self, name: str, topic_id: Uuid, leaders: dict[int, int]) -> None:
        self.name = name
        self.id = topic_id
        self.leaders = leaders


class Client:
    """The helpers' connection to one run of a broker. Made and used on one loop."""

    def __init__(
        self,
        address: str,
        request_timeout_ms: int = TIMEOUT_MS,
        waits_for_brokers: bool = False,
        security: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`security` are the settings to log in with, by Kafka's names."""
        self._arguments = (address, request_timeout_ms, waits_for_brokers, security)
        times = {
            "request_timeout_ms": request_timeout_ms,
            "default_api_timeout_ms": TIMEOUT_MS,
            "socket_connection_setup_timeout_ms": CONNECT_TIMEOUT_MS if request_timeout_ms < TIMEOUT_MS else TIMEOUT_MS,
        }
        settings = admin_settings(address, config=dict(security), keywords={"client_id": HELPER_CLIENT_ID, **times})
        self.cluster = open_cluster(real_client_world(), settings, waits_for_brokers=waits_for_brokers)
        self._round_robin = 0

    def beside(self) -> Client:
        """A second client, not yet connected, for a request that waits: requests behind it on one connection would wait too."""
        return Client(*self._arguments)

    def close(self) -> None:
        self.cluster.close()

    async def set_for_all_brokers(self, name: str, value: str) -> None:
        """Change a broker setting at run time."""
        everywhere = ConfigResource(ConfigResourceType.BROKER, "")
        (await alter_configs(self.cluster, {everywhere: {name: value}})).raise_first()

    # Topics

    async def create_topic(
        self, name: str, partitions: int, config: Mapping[str, object], replication_factor: int | None = None
    ) -> None:
        factor = BROKER_DEFAULT if replication_factor is None else replication_factor
        topic = NewTopic(name, partitions, factor, configs={key: setting_text(value) for key, value in config.items()})
        (await create_topics(self.cluster, [topic])).raise_first()

    async def delete_topic(self, name: str) -> None:
        (await delete_topics(self.cluster, [name])).raise_first()

    async def topics(self) -> dict[str, int]:
        """Name → number of partitions, sorted by name; without internal topics."""
        return {name: topic.partitions for name, topic in (await list_topics(self.cluster)).items()}

    async def find_topic(self, name: str, may_create: bool = False) -> Topic:
        """A topic; `KafkaError` if it does not exist and, with `may_create`, cannot be created either."""
        try:
            found = await self.cluster.topic(name, may_create)
        except UnknownTopicOrPartitionError as error:
            raise UnknownTopicOrPartitionError(f"{error}. Topics that do: {', '.join(await self.topics()) or 'none'}") from None
        leaders = {each.partition_index: each.leader_id for each in found.partitions}
        return Topic(name, found.topic_id, dict(sorted(leaders.items())))

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
        from ottla.client.once import store_once
        from ottla.records.builder import build_produce_batch

        place = TopicPartition(topic.name, self._partition(topic, key) if partition is None else partition)
        if place.partition not in topic.leaders:
            there = f"the topic has partitions 0 to {len(topic.leaders) - 1}"
            raise UnknownTopicOrPartitionError(f"a record was not appended to {place}: {there}")
        timestamp = time.time_ns() // 1_000_000 if timestamp is None else timestamp
        batch = build_produce_batch([(timestamp, key, value, tuple(headers))])
        # Sent once only: after a lost response a second request would append the record twice.
        for attempt in range(LATE_LEADER_ATTEMPTS):
            try:
                stored = await store_once(self.cluster, _leader(topic, place.partition), place, topic.id, batch)
                break
            except (NotLeaderOrFollowerError, UnknownTopicIdError):
                if attempt == LATE_LEADER_ATTEMPTS - 1:
                    raise
                await asyncio.sleep(LATE_LEADER_PAUSE_S)  # nothing tells when the leader knows what the other node said of it
                topic = await self.find_topic(topic.name)
        if stored.log_append_time is not None:
            timestamp = stored.log_append_time
        return Record(*place, stored.offset, key, value, tuple(headers), timestamp)

    def _partition(self, topic: Topic, key: bytes | None) -> int:
        if key is not None:
            return partition_of_key(key, len(topic.leaders))
        self._round_robin += 1
        return (self._round_robin - 1) % len(topic.leaders)

    async def offsets(self, topic: Topic, place: str) -> dict[int, int]:
        """Partition → offset; `place` is `earliest` or `latest`."""
        found = await list_offsets(self.cluster, {(topic.name, index): place for index in topic.leaders})
        return {each.partition: offset.offset for each, offset in found.raise_first().items()}

    async def fetch(self, topic: Topic, positions: dict[int, int], wait_ms: int) -> tuple[list[Record], dict[int, int]]:
        """Records from `positions` on, and high watermarks; advances `positions`. Waits up to `wait_ms` for the first."""
        from ottla.client.once import fetch_once

        records: list[Record] = []
        ends: dict[int, int] = {}
        by_leader: dict[int, dict[TopicPartition, int]] = {}
        for index, offset in positions.items():
            by_leader.setdefault(_leader(topic, index), {})[TopicPartition(topic.name, index)] = offset
        if len(by_leader) > 1:
            wait_ms = min(wait_ms, SHARED_WAIT_MS)
        asking = [
            fetch_once(self.cluster, leader, places, {topic.name: topic.id}, wait_ms) for leader, places in by_leader.items()
        ]
        for each, fetched in (pair for answer in await asyncio.gather(*asking) for pair in answer.items()):
            if isinstance(fetched, Exception):
                raise fetched
            positions[each.partition], ends[each.partition] = fetched.next_offset, fetched.high_watermark
            records += [Record(*each, one.offset, one.key, one.value, one.headers, one.timestamp) for one in fetched.records]
        return records, ends


def _leader(topic: Topic, partition: int) -> int:
    leader = topic.leaders[partition]
    if leader < 0:
        raise topic_error(ErrorCode.LEADER_NOT_AVAILABLE, topic.name, partition)
    return leader
