"""A shard of classic groups without a host: decisions are replayed at once, responses are kept, and the test moves the time.

Records are encoded and decoded, so that another harness can be loaded from any prefix of the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tests.support.shards.shard_harness import Asked, ShardHarness

from ottla.coordinator.contract import Caller, CoordinatorRecord, Effects, Reply
from ottla.coordinator.groups.classic.group import ClassicGroup
from ottla.coordinator.groups.settings import GroupSettings
from ottla.coordinator.groups.shard import GroupShard
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.log_records import (
    InternalLog,
    decode_coordinator_key,
    decode_coordinator_value,
    encode_coordinator_key,
    encode_coordinator_value,
)
from ottla.wire.messages.classic_group_records import GroupMetadataKey
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from ottla.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

RANGE = (("range", b"r"),)
LoggedRecord = tuple[bytes, bytes | None]


class NoTopics:
    """A cluster without topics: classic groups do not use them."""

    def names(self) -> Iterable[str]:
        return ()

    def id_of(self, name: str) -> bytes | None:
        return None

    def name_of(self, topic_id: bytes) -> str | None:
        return None

    def partition_count(self, name: str) -> int:
        return 0

    def racks(self, name: str, partition: int) -> Sequence[str]:
        return ()


class ClassicHarness(ShardHarness):
    """The classic groups of one shard. Requests are about the group "g" unless another is named."""

    def __init__(self, settings: GroupSettings | None = None, log: Sequence[LoggedRecord] = ()) -> None:
        self._uuids = 0
        self.shard = GroupShard(settings or GroupSettings(), NoTopics(), self._new_uuid)
        self.table, self.classic = self.shard.table, self.shard.classic
        self.log: list[LoggedRecord] = []
        self.asked: list[Asked] = []
        for key, value in log:
            self.follow(key, value)
        self.submit(self.shard.loaded(self.now))

    def _new_uuid(self) -> bytes:
        self._uuids += 1
        return self._uuids.to_bytes(16, "big")

    @property
    def timers(self) -> list[Any]:
        """Names of the running timers, without the one for expired offsets."""
        return [name for name in self.table.timers._actions if name != ("offsets",)]

    def waiting(self) -> list[Reply]:
        """The requests that are parked."""
        lost = KafkaError(ErrorCode.NOT_COORDINATOR, "the coordinator has moved")
        return [answer.reply for answer in self.classic.refuse_waiting(lost)]

    def group(self, group_id: str = "g") -> ClassicGroup:
        group = self.table.by_id[group_id]
        assert isinstance(group, ClassicGroup)
        return group

    def follow(self, key: bytes, value: bytes | None) -> None:
        """Replay a record that this shard has not written."""
        self.shard.replay(decoded(key, value), len(self.log), None)
        self.log.append((key, value))

    def submit(self, effects: Effects) -> None:
        for record in effects.records:
            value = None if record.value is None else encode_coordinator_value(*record.value)
            self.log.append((encode_coordinator_key(record.key), value))
            self.shard.replay(record, len(self.log) - 1, None)
        self.answer(effects)

    def reloaded(self, count: int | None = None, settings: GroupSettings | None = None) -> ClassicHarness:
        """Another harness that has read the first `count` records of this one's log, or all of them."""
        again = ClassicHarness(settings or self.table.settings, self.log[:count])
        again._uuids = self._uuids  # no id is used twice
        return again

    def values(self, group_id: str = "g") -> list[Any]:
        """The records of the group: messages, None for a tombstone."""
        records = [decoded(key, value) for key, value in self.log]
        mine = (each for each in records if isinstance(each.key, GroupMetadataKey) and each.key.group == group_id)
        return [each.value and each.value.message for each in mine]

    # -- requests

    def ask(self, what: str, decide: Callable[[Asked], Effects]) -> Asked:
        asked = Asked(what)
        try:
            self.submit(decide(asked))
        except KafkaError as refused:
            assert not asked.is_answered
            asked.is_answered, asked.answer = True, refused
        self.asked.append(asked)
        return asked

    def join(
        self,
        member_id: str = "",
        protocols: Iterable[tuple[str, bytes]] = RANGE,
        *,
        group_id: str = "g",
        instance_id: str | None = None,
        version: int = 9,
        session_ms: int = 10_000,
        rebalance_ms: int = 60_000,
        protocol_type: str = "consumer",
        client_id: str = "c",
    ) -> Asked:
        request = JoinGroupRequest(
            group_id=group_id,
            member_id=member_id,
            group_instance_id=instance_id,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in protocols],
        )
        caller = Caller(client_id, "/127.0.0.1", version)
        return self.ask(f"join of {member_id!r}", lambda reply: self.shard.join(request, caller, reply, self.now))

    def sync(
        self,
        member_id: str,
        generation: int,
        assignments: dict[str, bytes] | None = None,
        *,
        group_id: str = "g",
        instance_id: str | None = None,
        protocol: tuple[str | None, str | None] = (None, None),
    ) -> Asked:
        request = SyncGroupRequest(
            group_id=group_id,
            member_id=member_id,
            generation_id=generation,
            group_instance_id=instance_id,
            protocol_type=protocol[0],
            protocol_name=protocol[1],
            assignments=[
                SyncGroupRequestAssignment(member_id=each, assignment=data) for each, data in (assignments or {}).items()
            ],
        )
        caller = Caller("c", "/127.0.0.1", 5)
        return self.ask(f"sync of {member_id!r}", lambda reply: self.shard.sync(request, caller, reply, self.now))

    def heartbeat(self, member_id: str, generation: int, group_id: str = "g", instance_id: str | None = None) -> int:
        request = HeartbeatRequest(
            group_id=group_id, member_id=member_id, generation_id=generation, group_instance_id=instance_id
        )
        caller = Caller("c", "/127.0.0.1", 4)
        return self.ask("heartbeat", lambda reply: self.shard.heartbeat(request, caller, reply, self.now)).code

    def leave(self, *members: str | tuple[str, str | None], group_id: str = "g") -> Asked:
        """Members by id, or by id and instance id."""
        named = [(each, None) if isinstance(each, str) else each for each in members]
        identities = [MemberIdentity(member_id=member_id, group_instance_id=instance) for member_id, instance in named]
        request = LeaveGroupRequest(group_id=group_id, members=identities)
        caller = Caller("c", "/127.0.0.1", 5)
        return self.ask("leave", lambda reply: self.shard.leave(request, caller, reply, self.now))

    def commit(
        self, member_id: str, generation: int, offset: int = 0, group_id: str = "g", instance_id: str | None = None
    ) -> int:
        """The error code of a commit for partition 0 of the topic "t"."""
        part = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        request = OffsetCommitRequest(
            group_id=group_id,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=instance_id,
            topics=[OffsetCommitRequestTopic(name="t", partitions=[part])],
        )
        caller = Caller("c", "/127.0.0.1", 9)
        asked = self.ask("commit", lambda reply: self.shard.offsets.commit(request, caller, reply, self.now))
        if isinstance(asked.answer, KafkaError):
            return asked.answer.code
        code: int = asked.answer.topics[0].partitions[0].error_code
        return code

    def committed(self, group_id: str = "g") -> int:
        """The offset committed for partition 0 of the topic "t"; -1 if there is none."""
        topics = [OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
        fetched = self.shard.offsets.fetch(OffsetFetchRequestGroup(group_id=group_id, topics=topics), False, 9)
        offset: int = fetched.topics[0].partitions[0].committed_offset
        return offset

    # -- common preparations

    def new_id(self, **join: Any) -> str:
        """A generated member id."""
        asked = self.join(**join)
        member_id: str = asked.answer.member_id
        return member_id

    def stable(self, count: int = 1, protocols: Iterable[tuple[str, bytes]] = RANGE, **join: Any) -> list[str]:
        """A stable group of `count` dynamic members, the leader first. Each is assigned its own id, as bytes."""
        protocols = tuple(protocols)
        ids = [self.new_id(protocols=protocols, **join) for _ in range(count)]
        for member_id in ids:
            self.join(member_id, protocols, **join)
        self.advance(self.table.settings.group_initial_rebalance_delay_ms * 2)
        self.settle()
        assert self.group().state == "Stable"
        return ids

    def settle(self) -> None:
        """Let every member of "g" sync; the leader last, which assigns to each its own id."""
        group = self.group()
        assert group.state == "CompletingRebalance", group
        assert group.leader_id is not None
        for member_id in [*(each for each in group.members if each != group.leader_id), group.leader_id]:
            instance_id = group.members[member_id].instance_id
            self.sync(member_id, group.generation, {each: each.encode() for each in group.members}, instance_id=instance_id)


def decoded(key: bytes, value: bytes | None) -> CoordinatorRecord:
    """Decode a record as a load does."""
    decoded_key = decode_coordinator_key(InternalLog.GROUPS, key)
    decoded_value = None if value is None else decode_coordinator_value(InternalLog.GROUPS, decoded_key, value)
    return CoordinatorRecord(decoded_key, decoded_value)
