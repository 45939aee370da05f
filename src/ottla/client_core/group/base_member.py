"""`BaseMember`: what a member of a consumer group is and does by either protocol: who it is, what it wants, how it leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ottla.client_core.backoff import Backoff
from ottla.client_core.group.collaborators import Coordinator, GroupSettings, MetadataView
from ottla.client_core.group.handover import Handover
from ottla.client_core.group.identity import Identity
from ottla.client_core.group.membership import Event, LeaveOption, Partitions, Subscription
from ottla.client_core.group.subscribed_topics import SubscribedTopics
from ottla.client_core.machine import Request

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
