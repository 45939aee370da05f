"""`BaseMember`: what a member of a consumer group is and does by either protocol: who it is, what it wants, how it leaves."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, Protocol

from ottla.client_core.group.membership import (
    NO_PARTITIONS,
    Assign,
    Event,
    LeaveOption,
    Lost,
    Partitions,
    Revoke,
    ServerRegex,
    Subscription,
)
from ottla.client_core.machine import Channel, Request
from ottla.env.backoff import Backoff
from ottla.errors import KafkaError
from ottla.ids import Uuid

# What membership machines need of the machines and settings around them.


class NodeView(Protocol):
    """A broker."""

    @property
    def rack(self) -> str | None: ...


class PartitionView(Protocol):
    """A partition."""

    @property
    def replicas(self) -> Sequence[int]: ...


class TopicView(Protocol):
    """A topic."""

    @property
    def name(self) -> str: ...
    @property
    def id(self) -> Uuid: ...
    @property
    def is_internal(self) -> bool: ...
    @property
    def partitions(self) -> Sequence[PartitionView]: ...


class MetadataView(Protocol):
    """The part of `Metadata` that memberships use."""

    @property
    def version(self) -> int: ...
    @property
    def full_responses(self) -> int: ...
    @property
    def nodes(self) -> Mapping[int, NodeView]: ...
    def topic(self, name: str, /) -> TopicView | None: ...
    def topic_of_id(self, uuid: Uuid, /) -> TopicView | None: ...
    def topic_names(self) -> Iterable[str]: ...
    def topic_error(self, name: str, /) -> KafkaError | None: ...
    def want(self, names: Collection[str], /) -> None: ...
    def unwant(self, names: Collection[str], /) -> None: ...
    def want_all(self, all_topics: bool, /) -> None: ...
    def refresh(self, reason: str, /) -> None: ...


class Coordinator(Protocol):
    """The part of `CoordinatorFinder` that memberships use: where the group's coordinator is."""

    @property
    def error(self) -> KafkaError | None: ...
    def want(self) -> None: ...
    @property
    def is_ready(self) -> bool: ...
    def node(self) -> int | None: ...
    def connected(self, channel: Channel, /) -> int | None: ...
    def lost(self, reason: str, /) -> None: ...


class GroupSettings(Protocol):
    """The settings of a consumer that its membership reads. They carry Kafka's names."""

    @property
    def group_id(self) -> str | None: ...
    @property
    def group_instance_id(self) -> str | None: ...
    @property
    def client_rack(self) -> str: ...
    @property
    def session_timeout_ms(self) -> int: ...
    @property
    def heartbeat_interval_ms(self) -> int: ...
    @property
    def max_poll_interval_ms(self) -> int: ...
    @property
    def request_timeout_ms(self) -> int: ...
    @property
    def retry_backoff_ms(self) -> int: ...
    @property
    def retry_backoff_max_ms(self) -> int: ...
    @property
    def exclude_internal_topics(self) -> bool: ...
    @property
    def group_remote_assignor(self) -> str | None: ...


# Who a member is to its coordinator: its member id and generation or epoch.

NO_GENERATION: Final = -1


class Identity:
    """A member id with the generation in which it is valid. Requests carry both; answers to older ones do not count."""

    def __init__(self, group_id: str, group_instance_id: str | None, member_id: str = "") -> None:
        self.group_id = group_id
        self.group_instance_id = group_instance_id
        self.member_id = member_id
        self.generation = NO_GENERATION
        self.losses = 0
        """How often a membership has ended."""

    @property
    def is_member(self) -> bool:
        """Whether the coordinator has given a generation, and not taken it back."""
        return self.generation != NO_GENERATION

    @property
    def now(self) -> tuple[str, int]:
        """To compare: has anything changed since?"""
        return self.member_id, self.generation

    def forget(self, *, keeps_id: bool = False) -> None:
        """The generation is not valid any more, and the member id neither unless it is kept."""
        self.losses += self.is_member
        self.generation = NO_GENERATION
        if not keeps_id:
            self.member_id = ""


# The topics that a subscription stands for: the names given, or those that match a pattern now.
#
# Owns which topics the membership wants metadata of.

NO_TOPICS: frozenset[str] = frozenset()


class SubscribedTopics:
    """A subscription and its topics."""

    def __init__(self, metadata: MetadataView, *, exclude_internal: bool) -> None:
        self.names = NO_TOPICS
        self.subscription: Subscription | None = None
        self._metadata = metadata
        self._exclude_internal = exclude_internal
        self._wanted = NO_TOPICS
        self._wants_all = False
        self._seen_version = -1

    @property
    def pattern(self) -> re.Pattern[str] | None:
        """The pattern that this client matches, if the subscription is one."""
        return self.subscription if isinstance(self.subscription, re.Pattern) else None

    def set(self, subscription: Subscription | None) -> None:
        """Subscribe, or with None unsubscribe."""
        self.subscription = subscription
        self._seen_version = -1
        self._want_all(self.pattern is not None)
        if subscription is None or isinstance(subscription, re.Pattern | ServerRegex):
            self.names = NO_TOPICS
        else:
            self.names = frozenset(subscription)
        self.want_also(())
        self.refresh()

    def refresh(self) -> None:
        """Match the pattern against the topics of newer metadata, if there is any."""
        pattern = self.pattern
        if pattern is None or self._seen_version == self._metadata.version:
            return
        self._seen_version = self._metadata.version
        self.names = frozenset(name for name in self._metadata.topic_names() if self.matches(name))

    def matches(self, name: str) -> bool:
        """Whether the subscription covers the topic."""
        pattern = self.pattern
        if pattern is None:
            return isinstance(self.subscription, ServerRegex) or name in self.names
        if pattern.fullmatch(name) is None:
            return False
        topic = self._metadata.topic(name)
        return topic is None or not (self._exclude_internal and topic.is_internal)

    def include(self, names: Iterable[str]) -> None:
        """Add topics of an assignment: its leader may have known of a matching topic earlier than this client."""
        self.names |= {name for name in names if self.matches(name)}

    def want_also(self, names: Iterable[str]) -> None:
        """Keep metadata of these topics as well as of the subscribed ones."""
        wanted = frozenset(names) | (self.names if self.pattern is None else NO_TOPICS)
        if unwanted := self._wanted - wanted:
            self._metadata.unwant(unwanted)
        if new := wanted - self._wanted:
            self._metadata.want(new)
        self._wanted = wanted

    def want_by_id(self, names: Iterable[str], *, is_complete: bool) -> None:
        """Keep metadata of assigned topics. While some are known by id only, ask for all: their names may be any."""
        if isinstance(self.subscription, ServerRegex):
            self.names = frozenset(names)
            self.want_also(())
            self._want_all(not is_complete)

    def _want_all(self, wants_all: bool) -> None:
        if wants_all != self._wants_all:
            self._metadata.want_all(wants_all)
            self._wants_all = wants_all


# What a member owns, and whose turn it is: the machine's, or the owner's to handle a `Revoke` or an `Assign`.


class Handover:
    """The assignment of a member, changed in steps that the owner takes part in."""

    def __init__(self) -> None:
        self.assigned: Partitions = NO_PARTITIONS
        self.events: list[Event] = []
        self._pending: Revoke | Assign | None = None

    @property
    def is_owners_turn(self) -> bool:
        """Whether a `Revoke` or an `Assign` waits for the owner."""
        return self._pending is not None

    def revoke(self, partitions: Partitions) -> bool:
        """Ask the owner to give up those of `partitions` that it has; False if it has none of them."""
        partitions &= self.assigned
        if not partitions:
            return False
        self._pending = Revoke(partitions)
        self.events.append(self._pending)
        return True

    def revoked(self) -> None:
        """The owner has given them up."""
        if isinstance(self._pending, Revoke):
            self.assigned -= self._pending.partitions
            self._pending = None

    def assign(self, partitions: Partitions) -> None:
        """Hand the owner what it now has. `partitions` include all that it has already."""
        added = partitions - self.assigned
        self.assigned = partitions
        self._pending = Assign(partitions, added)
        self.events.append(self._pending)

    def assignment_taken(self) -> None:
        """The owner has taken the last assignment."""
        if isinstance(self._pending, Assign):
            self._pending = None

    def lose(self, reason: str) -> None:
        """Take everything away at once, also what the owner is busy with."""
        self._pending = None
        if self.assigned:
            self.events.append(Lost(self.assigned, reason))
            self.assigned = NO_PARTITIONS

    def take_events(self) -> list[Event]:
        """The events since the last call."""
        events, self.events = self.events, []
        return events


PATTERN_WAIT_MS: Final = 5_000
"""How long the first join of a pattern waits for the list of topics."""


class BaseMember:
    """The part of a membership (`membership.py`) that does not depend on the protocol."""

    def __init__(
        self,
        settings: GroupSettings,
        metadata: MetadataView,
        coordinator: Coordinator,
        random_below: Callable[[int], int],
        member_id: str = "",
    ) -> None:
        self.group_id = settings.group_id or ""
        self.group_instance_id = settings.group_instance_id
        self._settings = settings
        self._metadata = metadata
        self._coordinator = coordinator
        self._identity = Identity(self.group_id, self.group_instance_id, member_id)
        self._topics = SubscribedTopics(metadata, exclude_internal=settings.exclude_internal_topics)
        self._handover = Handover()
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, random_below)
        self._is_poll_awaited = True
        """No join before the next `polled`."""
        self._is_fenced = False
        self._leave_as: LeaveOption | None = None
        """Set: the member is to leave, and how."""
        self._leave_reason = ""
        self._leaving: Request | None = None
        self._not_before_ms = 0
        self._pattern_until_ms = 0
        self._responses_before_pattern = 0

    # What the owner reads

    @property
    def member_id(self) -> str:
        return self._identity.member_id

    @property
    def generation_or_epoch(self) -> int:
        return self._identity.generation

    @property
    def losses(self) -> int:
        return self._identity.losses

    @property
    def assigned(self) -> Partitions:
        return self._handover.assigned

    @property
    def subscribed_topics(self) -> frozenset[str]:
        return self._topics.names

    def take_events(self) -> list[Event]:
        return self._handover.take_events()

    # What the owner does

    def subscribe(self, subscription: Subscription, now_ms: int) -> None:
        self._responses_before_pattern = self._metadata.full_responses
        self._pattern_until_ms = now_ms + PATTERN_WAIT_MS
        if self._topics.subscription is None or self._is_fenced:
            self._is_poll_awaited = True
            self._is_fenced = False
        self._topics.set(subscription)

    def unsubscribe(self, now_ms: int) -> None:
        self._ask_to_leave(LeaveOption.DEFAULT, "the consumer unsubscribed from all topics")

    def leave(self, now_ms: int, option: LeaveOption = LeaveOption.DEFAULT) -> None:
        self._ask_to_leave(option, "the consumer is being closed")

    def revoked(self, now_ms: int) -> None:
        self._handover.revoked()

    def assignment_taken(self, now_ms: int) -> None:
        self._handover.assignment_taken()

    # For the protocols

    @property
    def _is_wanted(self) -> bool:
        return self._topics.subscription is not None and not self._is_poll_awaited and self._leave_as is None

    def _want_to_join(self) -> None:
        """A poll has begun: the member may join."""
        if self._is_poll_awaited and not self._is_fenced and self._topics.subscription is not None:
            self._is_poll_awaited = False
            self._coordinator.want()

    def _ask_to_leave(self, option: LeaveOption, reason: str) -> None:
        self._handover.assignment_taken()
        self._topics.set(None)
        self._leave_as, self._leave_reason = option, reason

    def _leave_as_unpolled(self) -> str:
        """Begin to leave, because the application does not poll; returns the reason."""
        reason = (
            f"group {self.group_id}: no poll for max.poll.interval.ms={self._settings.max_poll_interval_ms}. The consumer "
            "joins again at the next poll; process fewer records between polls (max.poll.records) or raise the setting"
        )
        self._is_poll_awaited = True
        self._leave_as, self._leave_reason = LeaveOption.DEFAULT, reason
        return reason
