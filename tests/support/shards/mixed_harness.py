"""A shard with members of both protocols, for tests of upgrades and downgrades: `ConsumerHarness` with the classic requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from struct import pack

from tests.support.shards.consumer_harness import ConsumerHarness
from tests.support.shards.shard_harness import Asked

from ottla.coordinator.contract import Caller
from ottla.wire.codec import encode_bytes
from ottla.wire.consumer_protocol import read_assignment
from ottla.wire.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
    ConsumerProtocolSubscriptionTopicPartition,
)
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

Held = Mapping[str, Sequence[int]]
VERSION = 3


def subscription(topics: Sequence[str], owned: Held | None = None, generation: int = -1) -> bytes:
    """The subscription of a member."""
    message = ConsumerProtocolSubscription(
        topics=list(topics),
        owned_partitions=[
            ConsumerProtocolSubscriptionTopicPartition(topic=name, partitions=list(held))
            for name, held in (owned or {}).items()
        ],
        generation_id=generation,
    )
    return pack(">h", VERSION) + encode_bytes(message, VERSION)


def assignment(held: Held, user_data: bytes | None = None) -> bytes:
    """The assignment that a leader gives a member."""
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignmentTopicPartition(topic=name, partitions=list(partitions))
            for name, partitions in held.items()
        ],
        user_data=user_data,
    )
    return pack(">h", VERSION) + encode_bytes(message, VERSION)


def held_by(data: bytes) -> dict[str, list[int]]:
    return {each.topic: each.partitions for each in read_assignment(data).assigned_partitions}


class MixedHarness(ConsumerHarness):
    """Requests are about the group "g"."""

    def classic_join(
        self,
        member_id: str = "",
        topics: Sequence[str] = ("t",),
        owned: Held | None = None,
        *,
        instance_id: str | None = None,
        version: int = 9,
        session_ms: int = 10_000,
        protocols: Sequence[str] = ("range",),
        protocol_type: str = "consumer",
        owned_generation: int = -1,
    ) -> Asked:
        request = JoinGroupRequest(
            group_id="g",
            member_id=member_id,
            group_instance_id=instance_id,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=60_000,
            protocol_type=protocol_type,
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=subscription(topics, owned, owned_generation))
                for name in protocols
            ],
        )
        caller = Caller("classic", "/10.0.0.2", version)
        return self.ask(f"join of {member_id!r}", lambda reply: self.shard.join(request, caller, reply, self.now))

    def classic_sync(
        self, member_id: str, generation: int, given: Mapping[str, bytes] | None = None, instance_id: str | None = None
    ) -> Asked:
        request = SyncGroupRequest(
            group_id="g",
            member_id=member_id,
            generation_id=generation,
            group_instance_id=instance_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[SyncGroupRequestAssignment(member_id=each, assignment=data) for each, data in (given or {}).items()],
        )
        caller = Caller("classic", "/10.0.0.2", 5)
        return self.ask(f"sync of {member_id!r}", lambda reply: self.shard.sync(request, caller, reply, self.now))

    def classic_heartbeat(self, member_id: str, generation: int) -> int:
        request = HeartbeatRequest(group_id="g", member_id=member_id, generation_id=generation)
        caller = Caller("classic", "/10.0.0.2", 4)
        return self.ask("heartbeat", lambda reply: self.shard.heartbeat(request, caller, reply, self.now)).code

    def classic_leave(self, member_id: str, instance_id: str | None = None) -> int:
        request = LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id=member_id, group_instance_id=instance_id)])
        caller = Caller("classic", "/10.0.0.2", 5)
        asked = self.ask("leave", lambda reply: self.shard.leave(request, caller, reply, self.now))
        code: int = asked.code or asked.answer.members[0].error_code
        return code

    def new_id(self) -> str:
        """A generated member id."""
        member_id: str = self.classic_join().answer.member_id
        return member_id

    def stable_classic(self, held: Sequence[Held]) -> list[str]:
        """A stable classic group in generation 1, whose members have these assignments. The leader comes first."""
        ids = [self.new_id() for _ in held]
        for member_id in ids:
            self.classic_join(member_id)
        self.advance(2 * self.settings.group_initial_rebalance_delay_ms)
        given = {member_id: assignment(each) for member_id, each in zip(ids, held, strict=True)}
        for member_id in ids:
            self.classic_sync(member_id, 1, given)
        assert self.classic_group().state == "Stable"
        return ids
