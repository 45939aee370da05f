"""The topics that a subscription stands for: the names given, or those that match a pattern now.

Owns which topics the membership wants metadata of.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ottla.client_core.group.collaborators import MetadataView
from ottla.client_core.group.membership import ServerRegex, Subscription

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
