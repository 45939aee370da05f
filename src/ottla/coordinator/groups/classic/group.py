"""ClassicGroup: the members and the generation of one classic group.

Owns the members' state (static ids, parked requests, common protocols) and implements the interface `Group`. `rebalance.py`
decides on changes of state, `records.py` converts the group from and to its record. Sets no timer, sends no answer.

    Empty ──join──▶ PreparingRebalance ──all joined, or time is up──▶ CompletingRebalance ──leader's assignment──▶ Stable
      ▲                  │      ▲                                            │                                       │
      └── no member left ┘      └────── a member joins, changes, leaves or is removed ───────────────────────────────┘
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from ottla.coordinator.contract import CoordinatorRecord, Instant, Reply, tombstone
from ottla.coordinator.groups.group import CLASSIC, check_instance_owner, unknown_member
from ottla.coordinator.groups.memory import MEMBER_BYTES, size_of
from ottla.errors import DecodeError, KafkaError
from ottla.errors.codes import ErrorCode
from ottla.errors.texts import counted
from ottla.wire.consumer_protocol import read_subscription
from ottla.wire.messages.classic_group_records import GroupMetadataKey
from ottla.wire.messages.list_groups import ListedGroup

if TYPE_CHECKING:
    from ottla.wire.messages.list_groups import ListedGroup

logger = logging.getLogger("ottla.coordinator")


# ClassicMember: one member of a classic group, with its recorded state, its parked requests and its session.


class Protocol(NamedTuple):
    """An assignment protocol that a member supports, with the member's metadata for the leader."""

    name: str
    metadata: bytes


class ClassicMember:
    """A member. `protocols` are in the member's order of preference; after a load only the chosen one is known."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "instance_id",
        "is_new",
        "join_reply",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session_ends_ms",
        "session_timeout_ms",
        "sync_reply",
    )

    def __init__(
        self,
        member_id: str,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: Iterable[Protocol],
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols: tuple[Protocol, ...] = ()
        self.set_protocols(protocols)
        self.assignment = assignment
        self.join_reply: Reply | None = None
        """The parked JoinGroup, until all members have joined."""
        self.sync_reply: Reply | None = None
        """The parked SyncGroup, until the leader has sent the assignment."""
        self.session_ends_ms = 0
        """The steady time at which the session expires, unless the member sends a request before."""
        self.is_new = False
        """Its first JoinGroup is parked: it may not know its id yet, and cannot send heartbeats."""

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    @property
    def is_kept_waiting(self) -> bool:
        """Whether a request of it is parked: then it sends nothing, and its session does not expire."""
        return not self.is_new and (self.join_reply is not None or self.sync_reply is not None)

    def set_protocols(self, protocols: Iterable[Protocol]) -> None:
        self.protocols = tuple({each.name: each for each in protocols}.values())

    def take_sync(self) -> Reply | None:
        """Take the parked SyncGroup, to answer it; None if there is none."""
        reply, self.sync_reply = self.sync_reply, None
        return reply

    def metadata(self, protocol_name: str | None) -> bytes:
        for name, metadata in self.protocols:
            if name == protocol_name:
                return metadata
        raise AssertionError(f"member {self.member_id} does not follow the protocol {protocol_name!r}")

    @property
    def size_bytes(self) -> int:
        """The approximate memory of the member."""
        parts = [part for protocol in self.protocols for part in protocol]
        return MEMBER_BYTES + size_of(self.member_id, self.instance_id, self.client_id, self.assignment, *parts)

    def heard(self, now: Instant) -> None:
        """Extend the session: a request of the member came."""
        self.session_ends_ms = now.steady_ms + self.session_timeout_ms

    def __repr__(self) -> str:
        static = f" (instance {self.instance_id})" if self.instance_id is not None else ""
        return f"{self.member_id}{static}"


# Decodes the topics that a classic member subscribes to from its protocol metadata.

CONSUMER_PROTOCOL = "consumer"
"""The protocol type of consumers; the metadata of others (connect, schema registries) is opaque to the broker."""

_COMMON_VERSION = 0  # every later version begins with it


def subscribed_topics(metadata: bytes) -> list[str]:
    """The topics in one member's subscription; `DecodeError` if it is malformed."""
    return read_subscription(metadata, _COMMON_VERSION).topics


EMPTY = "Empty"
PREPARING = "PreparingRebalance"
COMPLETING = "CompletingRebalance"
STABLE = "Stable"
DEAD = "Dead"
"""The state that DescribeGroups shows for an unknown group."""

NO_TIME_MS = -1


class ClassicGroup:
    """A group, empty at first. One with the protocol type "" and no members only holds offsets."""

    __slots__ = (
        "_protocol_counts",
        "generation",
        "group_id",
        "has_grown",
        "is_initial_rebalance",
        "is_unreadable",
        "joined_count",
        "leader_id",
        "members",
        "must_rebalance",
        "pending_joins",
        "pending_syncs",
        "protocol_name",
        "protocol_type",
        "state",
        "state_since_ms",
        "static_ids",
        "subscribed",
        "type",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.type = CLASSIC
        self.state = EMPTY
        self.state_since_ms = NO_TIME_MS
        """The wall time of the last change of state; `NO_TIME_MS` after an old record, which has none."""
        self.generation = 0
        self.protocol_type = ""
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, ClassicMember] = {}
        self.static_ids: dict[str, str] = {}
        """Member ids of the static members, by their instance ids."""
        self.pending_joins: dict[str, None] = {}
        """Member ids given with MEMBER_ID_REQUIRED whose clients have not joined with them yet; in order."""
        self.pending_syncs: dict[str, None] = {}
        """Members that have not sent SyncGroup in this generation; in order."""
        self.subscribed: frozenset[str] | None = None
        """The topics that members read; None if unknown."""
        self.is_unreadable = False
        """A warning about an undecodable subscription has been logged."""
        self.is_initial_rebalance = False
        """The current rebalance began with an empty group, and waits for more members to join."""
        self.has_grown = False
        """A member joined since the initial rebalance was last delayed."""
        self.must_rebalance = False
        """Loaded from the record of a downgrade: the rebalance that it began is in no record."""
        self.joined_count = 0
        """The number of members with a parked JoinGroup."""
        self._protocol_counts: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"<classic group {self.group_id} generation {self.generation} {self.state} members {list(self.members)}>"

    # -- Members

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL

    @property
    def rebalance_timeout_ms(self) -> int:
        """The time that all members have to join: the longest rebalance timeout of any member."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def have_all_joined(self) -> bool:
        return not self.pending_joins and self.joined_count == len(self.members)

    def is_leader(self, member_id: str) -> bool:
        return self.leader_id == member_id

    def add(self, member: ClassicMember, protocol_type: str) -> None:
        """Add a member; the first one becomes the leader."""
        assert member.member_id not in self.members, f"{member.member_id} is a member already"
        if not self.members:
            self.protocol_type = protocol_type
        if member.instance_id is not None:
            self.static_ids[member.instance_id] = member.member_id
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self._count(member.protocols, 1)
        self.pending_joins.pop(member.member_id, None)

    def remove(self, member_id: str) -> None:
        """Remove a member or a pending member id. If it was the leader, the next member leads."""
        member = self.members.pop(member_id, None)
        if member is not None:
            assert member.join_reply is member.sync_reply is None, f"{member_id} still waits for an answer"
            self._count(member.protocols, -1)
            if member.instance_id is not None:
                self.static_ids.pop(member.instance_id, None)
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        self.pending_joins.pop(member_id, None)
        self.pending_syncs.pop(member_id, None)

    def reset_members(self) -> None:
        """Remove all members."""
        self.members, self.static_ids, self.leader_id = {}, {}, None
        self._protocol_counts = {}

    def rename(self, member: ClassicMember, member_id: str) -> None:
        """Give a static member another member id. The old id is fenced from now on."""
        assert member.instance_id is not None, f"{member.member_id} is not static"
        old_id, member.member_id = member.member_id, member_id
        # Keep its place in the order: the next leader must not depend on which member was restarted.
        self.members = {member_id if each == old_id else each: known for each, known in self.members.items()}
        self.static_ids[member.instance_id] = member_id
        self.pending_syncs.pop(old_id, None)
        if self.leader_id == old_id:
            self.leader_id = member_id

    def park_join(self, member: ClassicMember, reply: Reply) -> None:
        """Park a JoinGroup until the other members have joined. One that is already parked must be taken first."""
        assert member.join_reply is None, f"{member.member_id} waits already"
        member.join_reply = reply
        self.joined_count += 1

    def take_join(self, member: ClassicMember) -> Reply | None:
        """Take the member's parked JoinGroup, to answer it; None if there is none."""
        reply, member.join_reply = member.join_reply, None
        if reply is not None:
            self.joined_count -= 1
        return reply

    def set_protocols(self, member: ClassicMember, protocols: Iterable[Protocol]) -> None:
        self._count(member.protocols, -1)
        member.set_protocols(protocols)
        self._count(member.protocols, 1)

    def choose_joined_leader(self) -> bool:
        """If the leader has not joined, make a member that has joined the leader. False if no member has joined."""
        leader = None if self.leader_id is None else self.members[self.leader_id]
        if leader is None:
            return False
        if leader.join_reply is None:
            joined = (member.member_id for member in self.members.values() if member.join_reply is not None)
            found = next(joined, None)
            if found is None:
                return False
            logger.info(
                "group %s: its leader %s did not rejoin in time (rebalance.timeout.ms of its members): %s leads now",
                self.group_id,
                leader,
                found,
            )
            self.leader_id = found
        return True

    # -- Protocols

    def _count(self, protocols: Iterable[Protocol], change: int) -> None:
        for name, _ in protocols:
            self._protocol_counts[name] = self._protocol_counts.get(name, 0) + change

    def can_follow(self, protocol_type: str, protocols: Iterable[Protocol]) -> bool:
        """Whether a member with these protocols may join: it must share one with all others."""
        if self.state == EMPTY:
            return bool(protocol_type) and any(True for _ in protocols)
        counts, size = self._protocol_counts, len(self.members)
        return self.protocol_type == protocol_type and any(counts.get(name, 0) == size for name, _ in protocols)

    def vote(self) -> str:
        """The protocol that most members prefer, among those that all support; the first one named if votes are equal."""
        size = len(self.members)
        candidates = {name for name, count in self._protocol_counts.items() if count == size}
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = next(name for name, _ in member.protocols if name in candidates)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=votes.__getitem__)

    def learn_subscriptions(self) -> None:
        """Decode the members' topics from their metadata for the chosen protocol."""
        self.subscribed = None
        if not self.uses_consumer_protocol:
            return
        if not self.members:
            self.subscribed = frozenset()
            return
        if self.protocol_name is None:
            return
        topics: set[str] = set()
        for member in self.members.values():
            try:
                topics.update(subscribed_topics(member.metadata(self.protocol_name)))
            except DecodeError as fault:
                logger.log(
                    logging.DEBUG if self.is_unreadable else logging.WARNING,
                    "group %s: the subscription of member %s cannot be read, so its topics are not known and no offsets of "
                    "the group expire: %s",
                    self.group_id,
                    member,
                    fault,
                )
                self.is_unreadable = True
                return
        self.subscribed, self.is_unreadable = frozenset(topics), False

    # -- States

    def move_to(self, state: str, now: Instant) -> None:
        self.state = state
        self.state_since_ms = now.wall_ms

    def begin_generation(self, now: Instant) -> None:
        """Begin the next generation with the current members: the joining is over."""
        self.generation += 1
        self.pending_syncs.clear()
        self.is_initial_rebalance = self.has_grown = False
        self.protocol_name = self.vote() if self.members else None
        self.learn_subscriptions()
        self.move_to(COMPLETING if self.members else EMPTY, now)

    def member_in(self, member_id: str, instance_id: str | None) -> ClassicMember:
        """The member by its ids. `KafkaError` if it is unknown, or another member has its instance id."""
        if instance_id is not None:
            check_instance_owner(self.group_id, instance_id, member_id, self.static_ids.get(instance_id))
        member = self.members.get(member_id)
        if member is None:
            raise unknown_member(self.group_id, member_id)
        return member

    def check_generation(self, generation: int) -> None:
        if generation != self.generation:
            raise KafkaError(
                ErrorCode.ILLEGAL_GENERATION,
                f"group {self.group_id} is in generation {self.generation}, not {generation}: join it again",
            )

    # -- The interface Group

    def listed(self) -> ListedGroup:
        return ListedGroup(
            group_id=self.group_id, protocol_type=self.protocol_type, group_state=self.state, group_type=self.type
        )

    def members_bytes(self) -> int:
        pending = sum(MEMBER_BYTES + size_of(member_id) for member_id in self.pending_joins)
        return pending + sum(member.size_bytes for member in self.members.values())

    def check_commit(
        self, member_id: str, instance_id: str | None, generation: int, version: int, is_transactional: bool, now: Instant
    ) -> None:
        if generation < 0 and self.state == EMPTY:
            return  # a consumer with manual assignment, or an operator's tool
        if generation >= 0 or member_id or instance_id is not None:
            member = self.member_in(member_id, instance_id)
            self.check_generation(generation)
            if is_transactional:
                return
            if self.state == COMPLETING:
                raise KafkaError(
                    ErrorCode.REBALANCE_IN_PROGRESS,
                    f"group {self.group_id} is between two assignments: commit again when the member has its next",
                )
            member.heard(now)
        elif not is_transactional and self.state != EMPTY:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"group {self.group_id} has members: only they may commit; other clients may when it is empty",
            )

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Any client may read the offsets of a classic group."""

    def check_offset_delete(self) -> None:
        if self.state != EMPTY and not self.uses_consumer_protocol:
            raise self._not_empty("its offsets cannot be deleted")

    def is_subscribed_to(self, topic: str) -> bool:
        if self.subscribed is None:
            return self.uses_consumer_protocol
        return topic in self.subscribed

    def check_delete(self) -> None:
        if self.state != EMPTY:
            raise self._not_empty("it cannot be deleted")

    def _not_empty(self, consequence: str) -> KafkaError:
        return KafkaError(
            ErrorCode.NON_EMPTY_GROUP,
            f"group {self.group_id} has {counted(len(self.members), 'member')} ({self.state}), so {consequence}: "
            "stop them first",
        )

    def tombstones(self) -> list[CoordinatorRecord]:
        return [tombstone(GroupMetadataKey(group=self.group_id))]

    def offsets_expire_from_ms(self, topic: str, commit_ms: int) -> int | None:
        if not self.protocol_type:
            return commit_ms
        if self.state == EMPTY:
            return commit_ms if self.state_since_ms == NO_TIME_MS else self.state_since_ms
        if self.state == STABLE and self.subscribed is not None and topic not in self.subscribed:
            return commit_ms
        return None
