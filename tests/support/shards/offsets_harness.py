"""Committed offsets without a host: decisions are replayed at once, responses are returned, and the test moves the time.

Records are encoded, decoded and kept, so that another harness can be loaded from any prefix of the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ottla.coordinator.contract import Caller, CoordinatorRecord, Effects, Instant, Producer, Reply
from ottla.coordinator.groups.classic.groups import ClassicGroups
from ottla.coordinator.groups.group import Group
from ottla.coordinator.groups.offsets.offsets import Offsets
from ottla.coordinator.groups.offsets.store import CommittedOffset, Place
from ottla.coordinator.groups.settings import GroupSettings
from ottla.coordinator.groups.table import GroupTable
from ottla.ids import Uuid
from ottla.wire.log_records import (
    InternalLog,
    decode_coordinator_key,
    decode_coordinator_value,
    encode_coordinator_key,
    encode_coordinator_value,
)
from ottla.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from ottla.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from ottla.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from ottla.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

WALL_AHEAD_MS = 1_700_000_000_000
CLASSIC_TYPE = 2
Codes = dict[tuple[str, int], int]
"""Error codes of a response, by topic and partition."""


LEADER_EPOCHS_SINCE = 6


class FixedTopics:
    """Topics with their numbers of partitions; the id of the first one is 1, and so on."""

    def __init__(self, counts: dict[str, int], first_id: int = 1) -> None:
        self._counts = counts
        self._ids = {name: Uuid((first_id + at).to_bytes(16, "big")) for at, name in enumerate(counts)}

    def names(self) -> Iterable[str]:
        return sorted(self._counts)

    def id_of(self, name: str) -> Uuid | None:
        return self._ids.get(name)

    def name_of(self, topic_id: Uuid) -> str | None:
        return next((name for name, known in self._ids.items() if known == topic_id), None)

    def partition_count(self, name: str) -> int:
        return self._counts.get(name, 0)

    def racks(self, name: str, partition: int) -> Sequence[str]:
        return ()


class LoggedRecord(NamedTuple):
    """A record of the log, or the end of a transaction where `key` is empty."""

    key: bytes
    value: bytes | None
    producer: Producer | None
    is_commit: bool = False


class OffsetsHarness:
    """The offsets of one shard. Topics: "t" with 4 partitions, "u" with 2. The default group of requests is "g"."""

    def __init__(self, settings: GroupSettings | None = None, log: Sequence[LoggedRecord] = ()) -> None:
        self.table = GroupTable(settings or GroupSettings(), FixedTopics({"t": 4, "u": 2}), lambda: Uuid(bytes(16)))
        self.offsets = Offsets(self.table)
        self._classic = ClassicGroups(self.table)
        self.now_ms = 0
        self.log: list[LoggedRecord] = []
        for each in log:
            self._replay(each)
        self.submit(self.offsets.loaded(self.now))

    @property
    def now(self) -> Instant:
        return Instant(WALL_AHEAD_MS + self.now_ms, self.now_ms)

    def state(self) -> tuple[dict[Place, CommittedOffset], dict[tuple[int, Place], CommittedOffset], list[str]]:
        """The whole state: committed offsets, those of open transactions, and the groups."""
        pending = {(producer_id, place): committed for producer_id, place, committed in self.offsets.pending}
        return dict(self.offsets.committed), pending, sorted(self.table.by_id)

    # -- the host's part

    def submit(self, effects: Effects) -> Any:
        """Carry out a decision; returns the response, if there is one."""
        for record in effects.records:
            value = None if record.value is None else encode_coordinator_value(*record.value)
            key = encode_coordinator_key(record.key)
            if record.value is not None and value is not None:
                read = decode_coordinator_value(InternalLog.GROUPS, record.key, value)
                assert read == record.value, "hosts replay what was decided, and at a start what was written"
            self._replay(LoggedRecord(key, value, effects.producer))
        return effects.answers[0].response if effects.answers else None

    def end(self, producer: Producer, is_commit: bool) -> None:
        """End the producer's transaction with a marker."""
        self._replay(LoggedRecord(b"", None, producer, is_commit))

    def _replay(self, logged: LoggedRecord) -> None:
        offset = len(self.log)
        self.log.append(logged)
        if not logged.key:
            assert logged.producer is not None
            self.offsets.replay_end(logged.producer, logged.is_commit)
            return
        key = decode_coordinator_key(InternalLog.GROUPS, logged.key)
        value = None if logged.value is None else decode_coordinator_value(InternalLog.GROUPS, key, logged.value)
        record = CoordinatorRecord(key, value)
        if key.KEY == CLASSIC_TYPE:
            self._classic.replay(record)
        else:
            self.offsets.replay(record, offset, logged.producer)

    def advance(self, time_ms: int) -> None:
        """Advance the time; timers on the way run at their deadlines."""
        until_ms = self.now_ms + time_ms
        while (deadline_ms := self.table.timers.next_deadline_ms) is not None and deadline_ms <= until_ms:
            self.now_ms = max(self.now_ms, deadline_ms)
            action = self.table.timers.pop_due(self.now)
            assert action is not None
            self.submit(action(self.now))
        self.now_ms = until_ms

    def put_group(self, group: Group) -> None:
        self.table.by_id[group.group_id] = group

    # -- requests, with shortened responses

    def ask_commit(self, request: OffsetCommitRequest, version: int = 9) -> Any:
        return self.submit(self.offsets.commit(request, Caller("client", "/host", version), Reply(), self.now))

    def commit(
        self, offsets: dict[tuple[str, int], int], group_id: str = "g", version: int = 9, metadata: str = "", **extra: Any
    ) -> Codes:
        """Commit one offset per partition; returns the error codes."""
        request = OffsetCommitRequest(group_id=group_id, **extra)
        leader_epoch = 3 if version >= LEADER_EPOCHS_SINCE else -1
        for (name, index), offset in offsets.items():
            part = OffsetCommitRequestPartition(
                partition_index=index, committed_offset=offset, committed_leader_epoch=leader_epoch, committed_metadata=metadata
            )
            request.topics.append(OffsetCommitRequestTopic(name=name, partitions=[part]))
        return codes_of(self.ask_commit(request, version))

    def commit_in_transaction(
        self, producer: Producer, offsets: dict[tuple[str, int], int], group_id: str = "g", version: int = 3, **extra: Any
    ) -> Codes:
        request = TxnOffsetCommitRequest(
            transactional_id="x", group_id=group_id, producer_id=producer.id, producer_epoch=producer.epoch, **extra
        )
        for (name, index), offset in offsets.items():
            part = TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
            request.topics.append(TxnOffsetCommitRequestTopic(name=name, partitions=[part]))
        caller = Caller("client", "/host", version)
        return codes_of(self.submit(self.offsets.commit_in_transaction(request, caller, Reply(), self.now)))

    def fetch(
        self,
        topics: dict[str, list[int]] | None = None,
        group_id: str = "g",
        require_stable: bool = False,
        version: int = 9,
        **extra: Any,
    ) -> dict[tuple[str, int], int]:
        """The committed offsets of partitions, or of all; an error is shown as -1000 - code."""
        wanted = None
        if topics is not None:
            wanted = [OffsetFetchRequestTopics(name=name, partition_indexes=indexes) for name, indexes in topics.items()]
        group = OffsetFetchRequestGroup(group_id=group_id, topics=wanted, **extra)
        answer = self.offsets.fetch(group, require_stable, version)
        return {
            (topic.name, each.partition_index): -1000 - each.error_code if each.error_code else each.committed_offset
            for topic in answer.topics
            for each in topic.partitions
        }

    def delete(self, partitions: Iterable[tuple[str, int]], group_id: str = "g") -> Codes:
        request = OffsetDeleteRequest(group_id=group_id)
        for name, index in partitions:
            part = OffsetDeleteRequestPartition(partition_index=index)
            request.topics.append(OffsetDeleteRequestTopic(name=name, partitions=[part]))
        return codes_of(self.submit(self.offsets.delete(request, Reply(), self.now)))

    def delete_group(self, group_id: str = "g") -> None:
        self.submit(self.offsets.delete_group(group_id, Reply()))


def codes_of(response: Any) -> Codes:
    return {(topic.name, each.partition_index): each.error_code for topic in response.topics for each in topic.partitions}
