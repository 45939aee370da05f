"""The groups of one shard without a host: decisions are replayed at once, responses are kept, the test moves time and topics.

Records are encoded and decoded, so that another harness can be loaded from any prefix of the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tests.support.shards.classic_harness import LoggedRecord, decoded
from tests.support.shards.shard_harness import Asked, ShardHarness

from ottla.coordinator.contract import Caller, Effects
from ottla.coordinator.groups.classic.group import ClassicGroup
from ottla.coordinator.groups.consumer.group import ConsumerGroup
from ottla.coordinator.groups.settings import GroupSettings
from ottla.coordinator.groups.shard import GroupShard
from ottla.errors import KafkaError
from ottla.ids import Uuid
from ottla.wire.log_records import encode_coordinator_key, encode_coordinator_value
from ottla.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
)

Owned = Mapping[str, Iterable[int]] | Mapping[Uuid, Iterable[int]]
"""The partitions that a member owns, by topic name or id."""


def topic_id(number: int) -> Uuid:
    return Uuid(b"topic" + bytes(7) + number.to_bytes(4, "big"))


class BenchTopics:
    """A snapshot of the topics: names with their ids and numbers of partitions."""

    def __init__(self, version: int, known: Mapping[str, tuple[Uuid, int]], racks: Sequence[str] = ()) -> None:
        self.version = version
        self.known = dict(known)
        self._racks = racks

    def names(self) -> Iterable[str]:
        return sorted(self.known)

    def id_of(self, name: str) -> Uuid | None:
        return self.known[name][0] if name in self.known else None

    def name_of(self, topic_id: Uuid) -> str | None:
        return next((name for name, (known, _) in self.known.items() if known == topic_id), None)

    def partition_count(self, name: str) -> int:
        return self.known[name][1] if name in self.known else 0

    def racks(self, name: str, partition: int) -> Sequence[str]:
        return self._racks


class ConsumerHarness(ShardHarness):
    """One shard. Requests are about the group "g" unless another is named."""

    def __init__(
        self,
        topics: Mapping[str, int] | BenchTopics | None = None,
        settings: GroupSettings | None = None,
        log: Sequence[LoggedRecord] = (),
    ) -> None:
        self._uuids = 0
        self._topic_ids = 0
        self.settings = settings or GroupSettings(group_consumer_assignment_interval_ms=0)
        self.topics = BenchTopics(1, {}) if not isinstance(topics, BenchTopics) else topics
        self.may_describe: Callable[[str], bool] | None = None
        self.rules_version = 0
        self.shard = GroupShard(self.settings, self.topics, self._new_uuid)
        self.log: list[LoggedRecord] = []
        for key, value in log:
            self.shard.replay(decoded(key, value), len(self.log), None)
            self.log.append((key, value))
        self.submit(self.shard.loaded(self.now))
        if not isinstance(topics, BenchTopics):
            for name, count in (topics or {}).items():
                self.set_topic(name, count)

    def _new_uuid(self) -> Uuid:
        self._uuids += 1
        return Uuid(self._uuids.to_bytes(16, "big"))

    def group(self, group_id: str = "g") -> ConsumerGroup:
        group = self.shard.table.by_id[group_id]
        assert isinstance(group, ConsumerGroup)
        return group

    def classic_group(self, group_id: str = "g") -> ClassicGroup:
        group = self.shard.table.by_id[group_id]
        assert isinstance(group, ClassicGroup)
        return group

    # -- topics, settings, time

    def set_topic(self, name: str, count: int | None) -> None:
        """Create the topic, change its number of partitions, or (None) delete it."""
        known = dict(self.topics.known)
        if count is None:
            del known[name]
        elif name in known:
            known[name] = (known[name][0], count)
        else:
            self._topic_ids += 1
            known[name] = (topic_id(self._topic_ids), count)
        self._follow(BenchTopics(self.topics.version + 1, known), [name])

    def _follow(self, topics: BenchTopics, changed: list[str]) -> None:
        self.topics = topics
        self.submit(self.shard.follow(self.settings, topics, [], changed))

    def set_settings(self, settings: GroupSettings) -> None:
        self.settings = settings
        self._follow(self.topics, [])

    def submit(self, effects: Effects) -> None:
        for record in effects.records:
            value = None if record.value is None else encode_coordinator_value(*record.value)
            key = encode_coordinator_key(record.key)
            self.shard.replay(decoded(key, value), len(self.log), effects.producer)
            self.log.append((key, value))
        self.answer(effects)

    def reloaded(self, count: int | None = None) -> ConsumerHarness:
        """Another harness that has read the first `count` records of this one's log, or all of them."""
        return ConsumerHarness(self.topics, self.settings, self.log[:count])

    def written(self, start: int = 0) -> list[tuple[int, Any]]:
        """The records from number `start` on: the type of each, and its message or None."""
        records = [decoded(key, value) for key, value in self.log[start:]]
        return [(each.key.KEY, each.value and each.value.message) for each in records]

    # -- requests

    def ask(self, what: str, decide: Callable[[Asked], Effects]) -> Asked:
        asked = Asked(what)
        try:
            effects = decide(asked)
        except KafkaError as refused:
            assert not asked.is_answered
            asked.is_answered, asked.answer = True, refused
            return asked
        self.submit(effects)
        return asked

    def heartbeat(self, member_id: str, epoch: int, owned: Owned | None = None, *, version: int = 1, **fields: Any) -> Asked:
        """A ConsumerGroupHeartbeat; fields that are not named are left out."""
        request = ConsumerGroupHeartbeatRequest(member_id=member_id, member_epoch=epoch, **{"group_id": "g", **fields})
        if owned is not None:
            request.topic_partitions = [
                ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=self._id(name), partitions=list(partitions))
                for name, partitions in owned.items()
            ]
        caller = Caller("client", "/10.0.0.1", version, self.may_describe, self.rules_version)
        return self.ask(
            f"heartbeat of {member_id} in {epoch}",
            lambda reply: self.shard.consumer.heartbeat(request, caller, reply, self.now),
        )

    def _id(self, topic: str | Uuid) -> Uuid:
        if not isinstance(topic, str):
            return topic
        known = self.topics.id_of(topic)
        return topic_id(9999) if known is None else known

    def join(self, member_id: str, topics: Sequence[str] | None = ("t",), **fields: Any) -> ConsumerGroupHeartbeatResponse:
        """A member joins, which must succeed."""
        names = None if topics is None else list(topics)
        asked = self.heartbeat(member_id, 0, {}, **{"subscribed_topic_names": names, "rebalance_timeout_ms": 60_000, **fields})
        assert asked.code == 0, asked
        return self.response(asked)

    @staticmethod
    def response(asked: Asked) -> ConsumerGroupHeartbeatResponse:
        assert isinstance(asked.answer, ConsumerGroupHeartbeatResponse), asked
        return asked.answer

    def given(self, asked: Asked | ConsumerGroupHeartbeatResponse) -> dict[str, list[int]] | None:
        """The assignment in a response, by topic name; None if it has none."""
        response = self.response(asked) if isinstance(asked, Asked) else asked
        if response.assignment is None:
            return None
        return {
            self.topics.name_of(each.topic_id) or "?": sorted(each.partitions) for each in response.assignment.topic_partitions
        }


def told_by_records(shard: GroupShard) -> dict[str, Any]:
    """The part of a shard's consumer groups that is stored in records."""
    return {group_id: vars(group).copy() for group_id, group in shard.table.by_id.items() if isinstance(group, ConsumerGroup)}
