"""The interface of a group membership: what the consumer does with it, and the events that it gets from it.

Two machines implement it, `classic_member.py` (JoinGroup, SyncGroup, Heartbeat) and `consumer_member.py` (KIP-848,
ConsumerGroupHeartbeat). The consumer does not know which one runs.

The owner calls `take_events` after every turn and handles the events in order. A rebalance waits for the owner in two places:

- `Revoke`: the owner stops fetching the partitions, commits, runs its listener, then calls `revoked`. The partitions stay in
  `assigned` until then, and the member keeps sending heartbeats with its old generation, so that the commit is accepted.
- `Assign`: the owner runs its listener, starts to fetch what was added, then calls `assignment_taken`.

The machine emits no other `Revoke` or `Assign` before that call. `Lost`, `Left` and `Failed` need no answer; a `Lost` that
comes while the owner is busy with a `Revoke` or an `Assign` cancels it, and a later `revoked` or `assignment_taken` for it is
ignored.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from enum import Enum
from typing import NamedTuple, Protocol, TypeAlias

from ottla.client_core.machine import Channel, Machine
from ottla.errors import KafkaError
from ottla.ids import TopicPartition

Partitions: TypeAlias = frozenset[TopicPartition]
NO_PARTITIONS: Partitions = frozenset()


class Revoke(NamedTuple):
    """The member is about to give up `partitions`. The owner calls `revoked` when its listener has run."""

    partitions: Partitions


class Assign(NamedTuple):
    """The member now has exactly `partitions`; `added` are new, and may be none. The owner calls `assignment_taken`."""

    partitions: Partitions
    added: Partitions


class Lost(NamedTuple):
    """The group has taken `partitions` away, and another member may have them already: no commit is possible."""

    partitions: Partitions
    reason: str


class Left(NamedTuple):
    """The member is out of its group: as asked, or because the owner did not poll for max.poll.interval.ms.

    In the second case it joins again at the next `polled`.
    """

    reason: str


class Failed(NamedTuple):
    """The membership has ended with an error that no retry mends. The owner raises it; `subscribe` starts over."""

    error: KafkaError


Event: TypeAlias = Revoke | Assign | Lost | Left | Failed


class LeaveOption(Enum):
    """Whether a consumer that closes leaves its group (KIP-1092)."""

    DEFAULT = "default"
    """Dynamic members leave; static members (group.instance.id) stay until their session times out."""
    LEAVE_GROUP = "leave"
    REMAIN_IN_GROUP = "remain"


class ServerRegex(NamedTuple):
    """A pattern in RE2 syntax that the coordinator evaluates. Only the KIP-848 protocol has it."""

    regex: str


Subscription: TypeAlias = Collection[str] | re.Pattern[str] | ServerRegex
"""Topic names; a Python pattern that the client matches against whole topic names; or a pattern for the coordinator."""


class Membership(Machine, Protocol):
    """A member of a consumer group."""

    group_id: str
    group_instance_id: str | None

    @property
    def member_id(self) -> str:
        """What OffsetCommit and TxnOffsetCommit carry; "" before the coordinator has given one (classic)."""
        ...

    @property
    def generation_or_epoch(self) -> int:
        """The generation (classic) or member epoch (KIP-848) for commits; -1 while not in the group."""
        ...

    @property
    def losses(self) -> int:
        """How often a membership has ended: what was read in an earlier one must not be committed in this one."""
        ...

    @property
    def assigned(self) -> Partitions:
        """The partitions that the member owns now. The owner may fetch and commit these and no others."""
        ...

    @property
    def free_channel(self) -> Channel:
        """The connection for other requests to the coordinator: not the one on which it parks a JoinGroup or SyncGroup."""
        ...

    @property
    def is_stable(self) -> bool:
        """In the group with an assignment that the owner has taken, and no rebalance known or under way."""
        ...

    @property
    def subscribed_topics(self) -> frozenset[str]:
        """The names that the subscription stands for now; of a `ServerRegex`, the topics of the assignment."""
        ...

    def subscribe(self, subscription: Subscription, now_ms: int) -> None:
        """Become a member with this subscription, or change it. The first join waits for `polled`.

        Raises a `KafkaError` if the protocol cannot express the subscription.
        """
        ...

    def unsubscribe(self, now_ms: int) -> None:
        """Give up everything and leave: `Revoke` if something is assigned, then `Left`. `subscribe` may follow at any time."""
        ...

    def polled(self, now_ms: int) -> None:
        """The owner has called poll: max.poll.interval.ms starts again, and a member that it had put out joins again."""
        ...

    def polling(self, now_ms: int) -> None:
        """The owner waits inside of poll: max.poll.interval.ms starts again. Unlike `polled`, it starts no join: the owner has
        not seen yet why an earlier one failed.
        """
        ...

    def leave(self, now_ms: int, option: LeaveOption = LeaveOption.DEFAULT) -> None:
        """Close: like `unsubscribe`, with a choice. `Left` comes when the coordinator has answered, or cannot be reached."""
        ...

    def revoked(self, now_ms: int) -> None:
        """The owner has handled the last `Revoke`."""
        ...

    def assignment_taken(self, now_ms: int) -> None:
        """The owner has handled the last `Assign`."""
        ...

    def commit_refused(self, error: KafkaError, generation_or_epoch: int, now_ms: int) -> None:
        """A commit that carried `generation_or_epoch` was refused with `error`.

        If the code says that the membership is gone or that a rebalance runs, the machine acts on it. Others are ignored.
        """
        ...

    def rejoin(self, reason: str, now_ms: int) -> None:
        """Ask for a rebalance (Kafka's enforceRebalance). The KIP-848 protocol has none: there it does nothing."""
        ...

    def take_events(self) -> list[Event]:
        """The events since the last call, in order."""
        ...
